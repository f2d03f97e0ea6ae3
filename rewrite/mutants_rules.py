"""Wrong rules and wrong road rows.

Not made, since they are no mistakes: another round mode or saturation on the right of the ``irrelevant``
rules (neither can act there), a dropped ``is_float`` there (it only picks the canonical spelling of a
saturation that cannot act), a condition replaced by one that is as good (see ``_no_mistake``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..ir.predicates import compares
from ..rules import check_roads
from ..rules.casts import road_words
from ..rules.facts import LAID
from ..rules.paths import Road
from ..rules.rule import RULES, Pattern, Rule, Term, Var, variables
from ..rules.select import INVERSE
from ..rules.terms import CODE_DTYPES, DTYPE_CODES, LITERAL, MODE_CODES, SATURATION_CODES, literal_codes, literal_value
from . import offers
from .mutate import Mutant

#: Conditions whose loss is no mistake, by rule.
_SPELLING: dict[str, str | tuple[str, ...]] = {
    "cast.mode.irrelevant-float": "is_float",
    "cast.mode.irrelevant-float.finite": "is_float",
    # What a target's instruction approximates, which no meaning tells.
    "fuse.rsqrt": "rooted",
    # The table of products has rows for floating-point dtypes only.
    "fuse.muls.muls": "is_float",
    # Both forms do with NaN what one instruction does; whether two do the same is what the rule leaves open.
    "relu.maximums.positive": "ordered",
    # The rectifier's meaning is that maximum; documents leave open whether its instruction is for NaN and -0.
    "relu.maximums": ("is_float", "ordered", "one_zero"),
    # The meaning wraps where the least integer is divided by -1; documents do not say what instructions do.
    "divs.neg": "is_float",
    # Integers divide and wrap in both forms alike; the rules are for floats since nothing else needs them.
    **{f"scalar.{name}": "is_float" for name in ("div.full", "div.expands", "sub.full-first", "sub.expands-first")},
    # Floats that FP32 holds keep their order too; the rule is for integers only since nothing else needs it.
    **{f"cmp.integer.{word}.as-float": "is_integer" for word in ("lt", "le", "gt", "ge")},
}
#: Conditions on what a target has, and on shapes, which instances of one shape cannot tell apart; ``typed`` and what is
#: read of a column bind variables besides.
_STRUCTURE = (
    "typed", "planar", "windows", "offers", "repeats", "mirrored", "lacks_extrema", "lacking", "mixed", "argument",
    "max_of", "max_of_and", "min_of", "min_of_and",
)  # fmt: skip
_X = Var("x", "value")


def rule_mutants() -> list[Mutant]:
    """Return the mutants of every declared rule, and of the rows that road rules read."""
    out: list[Mutant] = []
    for rule in RULES.values():
        if rule.name.startswith("cast.road."):
            out += _road_rule(rule)
        else:
            out += _dropped(rule)
            out += _other_variables(rule)
            out += _right_sides(rule)
    return [*out, *_rows()]


def _mutant(rule: Rule, what: str, **changes: Any) -> Mutant:
    return Mutant(f"{rule.name}: {what}", "rule", ((RULES, rule.name, replace(rule, **changes)),), rule=rule.name)


def _dropped(rule: Rule) -> Iterator[Mutant]:
    """Without one of its conditions."""
    for i, c in enumerate(rule.when):
        if c.relation not in (*_STRUCTURE, *_harmless(rule)):
            rest = (*rule.when[:i], *rule.when[i + 1 :])
            yield _mutant(rule, f"without {c}", when=rest)


def _harmless(rule: Rule) -> tuple[str, ...]:
    found = _SPELLING.get(rule.name, ())
    return (found,) if isinstance(found, str) else found


def _other_variables(rule: Rule) -> Iterator[Mutant]:
    """A condition about another dtype or saturation variable of the rule."""
    bound = list(dict.fromkeys(variables(rule.lhs)))
    for i, c in enumerate(rule.when):
        for j, old in enumerate(c.args):
            if not isinstance(old, Var) or old.kind not in ("dtype", "saturation"):
                continue
            for new in bound:
                if new.kind != old.kind or new == old or _no_mistake(c.relation, new):
                    continue
                args = (*c.args[:j], new, *c.args[j + 1 :])
                when = (*rule.when[:i], replace(c, args=args), *rule.when[i + 1 :])
                yield _mutant(rule, f"{c} about {new.name} for {old.name}", when=when)


def _no_mistake(relation: str, new: Var) -> bool:
    """Tell whether a condition about another variable still makes the rule right.

    ``is_float`` only picks a spelling, and whether the source is an integer or float decides about infinities
    as well as the destination. A source dtype (``a``) without infinity has none to clamp, and a source within
    the range of the first integer destination passes it unchanged. A tile has one dtype, so that a condition that
    binds its shape beside another one never holds; nor is a dtype narrower than itself. Facts about tiles that stand as
    one row say what is cheaper.
    """
    if relation in ("is_float", "is_integer", "bound", *LAID, *_STRUCTURE):
        return True
    return relation in ("keeps_infinity", "narrows") and new.name == "a"


def _right_sides(rule: Rule) -> Iterator[Mutant]:
    """Round modes, saturations or dtypes exchanged on the right; an operand itself instead; another operation."""
    rhs = rule.rhs
    bound = list(dict.fromkeys(variables(rule.lhs)))
    if not isinstance(rhs, Term):
        dtype, shape = rule.lhs.args[:2]
        # Bytes of a mask are their own magnitudes.
        unsigned = isinstance(dtype, int) and CODE_DTYPES[dtype].kind == "uint"
        for op in ("tile.neg", *(() if unsigned else ("tile.abs",)), "tile.relu"):
            yield _mutant(rule, f"{op} on the right", rhs=Term(op, (dtype, shape), (rhs,)))
        return
    for i, old in enumerate(rhs.args):
        if not isinstance(old, Var) or old.kind == "shape":
            continue
        for new in bound:
            if new.kind == old.kind and new != old:
                changed = replace(rhs, args=(*rhs.args[:i], new, *rhs.args[i + 1 :]))
                yield _mutant(rule, f"{new.name} for {old.name} at {i} on the right", rhs=changed)
    (*_, last) = (v for v in bound if v.kind == "value")
    yield _mutant(rule, "an operand on the right", rhs=last)
    # A single step of a recipe may be wrong and the result still within the stated error: change every one.
    changed_by = _first_changed if rule.bound is None else _every_changed
    for what, change in _TERM_CHANGES.items():
        wrong = changed_by(rhs, change)
        if wrong is not None and wrong != rule.lhs:
            yield _mutant(rule, f"{what} on the right", rhs=wrong)


def _first_changed(p: Pattern, change: Callable[[Term], Term | None]) -> Term | None:
    """Return the pattern with the first term that can be changed replaced, outermost first."""
    if isinstance(p, Var):
        return None
    changed = change(p)
    if changed is not None:
        return changed
    for i, child in enumerate(p.children):
        inner = _first_changed(child, change)
        if inner is not None:
            return replace(p, children=(*p.children[:i], inner, *p.children[i + 1 :]))
    return None


def _every_changed(p: Pattern, change: Callable[[Term], Term | None]) -> Term | None:
    """Return the pattern with every term replaced that can be changed."""

    def rebuilt(q: Pattern) -> Pattern:
        if isinstance(q, Var):
            return q
        inner = replace(q, children=tuple(map(rebuilt, q.children)))
        return change(inner) or inner

    made = rebuilt(p)
    return made if isinstance(made, Term) and made != p else None


_TURNED = {"tile.sel": (0, 2, 1), "tile.sub": (1, 0)}
_OTHER = {
    "tile.maximum": "tile.minimum", "tile.minimum": "tile.maximum", "tile.maximums": "tile.minimums",
    "tile.minimums": "tile.maximums", "tile.add": "tile.sub", "tile.adds": "tile.subs", "tile.xor": "tile.or_",
}  # fmt: skip


def _turned(t: Term) -> Term | None:
    order = _TURNED.get(t.op)
    return None if order is None else replace(t, children=tuple(t.children[i] for i in order))


def _other_operation(t: Term) -> Term | None:
    return replace(t, op=_OTHER[t.op]) if t.op in _OTHER else None


def _other_comparison(t: Term) -> Term | None:
    if not compares(t.op) or not isinstance(t.args[2], int):
        return None
    return replace(t, args=(*t.args[:2], INVERSE[t.args[2]]))


def _other_literal(t: Term) -> Term | None:
    if t.op != LITERAL:
        return None
    kind, bits = t.args
    assert isinstance(kind, int) and isinstance(bits, int)
    value, dtype = literal_value(kind, bits)
    wrong = value * 1.001 if isinstance(value, float) else value + 1
    return replace(t, args=literal_codes(wrong, dtype))


_TERM_CHANGES: dict[str, Callable[[Term], Term | None]] = {
    "operands exchanged": _turned,
    "the opposite operation": _other_operation,
    "the inverse comparison": _other_comparison,
    "a literal a little off": _other_literal,
}


def _road_rule(rule: Rule) -> Iterator[Mutant]:
    """A hop in another mode, hops exchanged, the exactness mark wrong."""
    hops = _hops(rule.rhs)
    exact = ".exact." in rule.name
    for i in range(len(hops)):
        yield _mutant(rule, f"hop {i + 1} truncates", rhs=_rebuilt(hops, i, 3, MODE_CODES["trunc"]))
        yield _mutant(rule, f"hop {i + 1} rounds up", rhs=_rebuilt(hops, i, 3, MODE_CODES["ceil"]))
    if len(hops) > 1:
        yield _mutant(rule, "mode of the second hop at the first", rhs=_rebuilt(hops, 0, 3, hops[1].args[3]))
    last = len(hops) - 1
    yield _mutant(rule, "the last hop keeps low bits", rhs=_rebuilt(hops, last, 4, SATURATION_CODES["off"]))
    if exact:
        yield _mutant(rule, "called inexact", rhs=_rebuilt(hops, last, 5, 1))
    else:
        yield _mutant(rule, "called exact", rhs=_rebuilt(hops, last, 5, 0))


def _hops(p: Pattern) -> list[Term]:
    """Return the casts of a chain, first hop first."""
    out: list[Term] = []
    while isinstance(p, Term):
        out.append(p)
        p = p.children[0]
    return out[::-1]


def _rebuilt(hops: list[Term], at: int, position: int, arg: Var | int) -> Pattern:
    chain: Pattern = _X
    for i, hop in enumerate(hops):
        args = hop.args
        if i == at:
            args = (*args[:position], arg, *args[position + 1 :])
        chain = Term(hop.op, args, (chain,))
    return chain


# -- rows --------------------------------------------------------------------------------------------------

Words = Callable[[Road], tuple[int, ...]]


def _rows() -> list[Mutant]:
    words: dict[str, Words] = {
        "the first hop truncates": _with_mode(0, "trunc"),
        "the last hop rounds to nearest": _with_mode(-1, "rint"),
        "the last hop rounds down": _with_mode(-1, "floor"),
        "the requested mode, honoured or not": lambda r: _cells(r, [h.mode for h in r.hops]),
        "the last hop keeps low bits": _with_saturation(-1, "off"),
        "the last hop clamps": _with_saturation(-1, "on"),
        "every hop clamps": lambda r: _cells(r, saturations=["on"] * len(r.hops)),
        "the first hop keeps low bits": _with_saturation(0, "off"),
        "intermediate dtypes reversed": lambda r: _cells(r, dtypes=[h.dst.name for h in r.hops[-2::-1]]),
        "an intermediate FP16 for FP32": lambda r: _cells(r, dtypes=_exchanged(r, "FP32", "FP16")),
        "an intermediate INT16 for INT32": lambda r: _cells(r, dtypes=_exchanged(r, "INT32", "INT16")),
        "an intermediate BF16 for FP16": lambda r: _cells(r, dtypes=_exchanged(r, "FP16", "BF16")),
    }
    out = [
        Mutant(f"road rows: {name}", "row", ((offers, "road_words", w), (check_roads, "road_words", w)),
               rule="cast.road.exact.2" if "intermediate" in name else "cast.road.exact.1")
        for name, w in words.items()
    ]  # fmt: skip
    return [*out, *_row_sources()]


def _cells(
    road: Road, modes: list[str] | None = None, saturations: list[str] | None = None, dtypes: list[str] | None = None
) -> tuple[int, ...]:
    cells = list(road_words(road))
    between = len(road.hops) - 1
    for i in range(len(road.hops)):
        if modes is not None:
            cells[between + 2 * i] = MODE_CODES[modes[i]]
        if saturations is not None:
            cells[between + 2 * i + 1] = SATURATION_CODES[saturations[i]]
    if dtypes is not None:
        cells[:between] = [DTYPE_CODES[d] for d in dtypes]
    return tuple(cells)


def _with_mode(at: int, mode: str) -> Words:
    def words(road: Road) -> tuple[int, ...]:
        modes = [h.effective for h in road.hops]
        modes[at] = mode
        return _cells(road, modes)

    return words


def _with_saturation(at: int, word: str) -> Words:
    def words(road: Road) -> tuple[int, ...]:
        cells = list(road_words(road))
        cells[len(road.hops) - 1 + 2 * (at % len(road.hops)) + 1] = SATURATION_CODES[word]
        return tuple(cells)

    return words


def _exchanged(road: Road, old: str, new: str) -> list[str]:
    return [new if h.dst.name == old else h.dst.name for h in road.hops[:-1]]


def _row_sources() -> list[Mutant]:
    """Roads looked up for other values, other requests, put in the wrong table, or taken for alike."""
    from ..ir import valueset
    from ..rules.casts import road_table
    from ..rules.paths import roads

    row = offers._row

    def narrowed(target: Any, src: Any, dst: Any, mode: Any, saturation: Any, values: Any, **kw: Any) -> Any:
        return roads(target, src, dst, mode, saturation, valueset.interval(0, 1, 0), **kw)

    def one_mode(target: Any, src: Any, dst: Any, mode: Any, saturation: Any, values: Any, **kw: Any) -> Any:
        return roads(target, src, dst, "trunc", saturation, values, **kw)

    def default_saturation(target: Any, src: Any, dst: Any, mode: Any, sat: Any, values: Any, **kw: Any) -> Any:
        return roads(target, src, dst, mode, None, values, **kw)

    def no_specials(target: Any, src: Any, dst: Any, mode: Any, sat: Any, values: Any, **kw: Any) -> Any:
        plain = replace(values, nan=False, inf=False, negative_zero=False)
        return roads(target, src, dst, mode, sat, plain, **kw)

    def all_exact(asked: offers.Asked, road: Road) -> str:
        words = map(str, (*asked.codes, *road_words(road)))
        return f"({road_table(len(road.hops), True)} {asked.text} {' '.join(words)})"

    def one_number(asked: offers.Asked, road: Road) -> str:
        return row(asked._replace(number=1), road)

    def without_modes(values: Any, road: Road) -> tuple[offers.Step, ...]:
        return tuple((hop.dst.name,) for hop in road.hops)

    found: dict[str, tuple[str, Any]] = {
        "found for values in [0, 1]": ("roads", narrowed),
        "found for truncation": ("roads", one_mode),
        "found for the default saturation": ("roads", default_saturation),
        "found without special values": ("roads", no_specials),
        "all in the exact tables": ("_row", all_exact),
        "one number for all requests": ("_row", one_number),
        "alike whatever they round": ("steps_of", without_modes),
    }
    return [Mutant(f"road rows: {name}", "row", ((offers, where, fn),)) for name, (where, fn) in found.items()]
