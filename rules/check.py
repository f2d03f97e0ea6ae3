"""Soundness checks derived from rule declarations: both sides evaluated on hostile values and compared.

A rule is instantiated at random: dtypes, round modes and saturations for its variables, elements for its
values; every value of a source of at most 16 bits (every pair, for two operands of at most 8), else values
chosen to trip conversions. Its conditions select: dtype conditions the instances, value conditions
(``fits``, ``finite``) the elements. Both sides are then computed with the declared meanings of their
operations and compared bit for bit, NaN payloads aside. Road rules take their instances from the road search
itself; inexact roads may differ from their request by no more than their stated error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.convert import all_values, decode, encode, same_bits
from ..ir.diagnostics import TileggError
from ..ir.dtypes import DTYPES, DType
from ..ir.inputs import extreme_values
from ..ir.samples import hostile, random_bits
from ..ir.tilearray import Arr
from ..ir.types import ScalarType
from . import library as _library  # noqa: F401  (declares the rules)
from .check_bound import bound_failures, operand_of
from .check_choices import OTHER_CHOICES
from .check_conditions import LITERAL_CONDITIONS, VALUE_CONDITIONS, codes_of, value_condition
from .check_contracted import contracted_failures
from .check_dims import AS_BEFORE, IN_ONE_ROW, OF_A_ROW, OF_SOME_ROWS, reduces
from .check_draw import aim, sides_of
from .check_eval import (
    Assignment,
    Role,
    Unfit,
    Valued,
    evaluate,
    operations_of,
    scalar_variables,
    value_variables,
)
from .computed import can_have_rows
from .facts import FACTS, GIVEN, LAID, circumvented, dtype_holds, infinity_kept, literal_holds
from .rule import RULES, Condition, Rule, Term, Var
from .terms import CODE_DTYPES, CODE_MODES, CODE_SATURATIONS, DTYPE_CODES, MODE_CODES

#: Elements of one instance where a source has too many values to list.
WIDTH = 4096
#: Draws per wanted instance before giving up on a rule whose conditions hardly ever hold.
_PATIENCE = 40


@dataclass(frozen=True)
class RuleCheck:
    """What checking one rule covered.

    ``instances``: instantiations whose conditions held for some element; ``values``: elements compared;
    ``exhaustive``: instances that ran over every value of their sources; ``inexact``: elements on which an
    inexact road differed within its stated error; ``failures``: the first disagreements, as text.
    """

    rule: str
    instances: int
    values: int
    exhaustive: int
    inexact: int
    failures: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True when something was compared and nothing disagreed."""
        return self.instances > 0 and not self.failures


class _Tally:
    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.instances = self.values = self.exhaustive = self.inexact = 0
        self.failures: list[str] = []

    def result(self) -> RuleCheck:
        failures = tuple(self.failures[:10])
        return RuleCheck(self.rule.name, self.instances, self.values, self.exhaustive, self.inexact, failures)


def check_rule(rule: Rule, samples: int = 200, seed: int = 0) -> RuleCheck:
    """Check a rule on ``samples`` instances drawn from ``seed``."""
    from .check_roads import check_road_rule, is_road_rule
    from .check_scalars import check_scalar_rule, is_scalar_rule

    rng = np.random.default_rng([seed, *rule.name.encode()])
    tally = _Tally(rule)
    if is_road_rule(rule):
        check_road_rule(rule, samples, rng, tally)
        return tally.result()
    if is_scalar_rule(rule):
        check_scalar_rule(rule, samples, rng, tally)
        return tally.result()
    for _ in range(samples * _PATIENCE):
        if tally.instances >= samples or len(tally.failures) >= 10:
            break
        _instance(rule, rng, tally)
    return tally.result()


def check_all(samples: int = 200, seed: int = 0) -> list[RuleCheck]:
    """Check every declared rule."""
    return [check_rule(rule, samples, seed) for rule in RULES.values()]


def summary(checks: Iterable[RuleCheck]) -> str:
    """Return the checks as a table with a total."""
    rows = list(checks)
    lines = [f"{'rule':<36} {'instances':>9} {'exhaustive':>10} {'values':>12} {'inexact':>9}  result"]
    for c in rows:
        result = "ok" if c.ok else f"{len(c.failures)} failures" if c.failures else "never applies"
        lines.append(f"{c.rule:<36} {c.instances:>9} {c.exhaustive:>10} {c.values:>12} {c.inexact:>9}  {result}")
    good = sum(c.ok for c in rows)
    total = sum(c.values for c in rows)
    lines.append(f"{good} of {len(rows)} rules hold on {total} values in {sum(c.instances for c in rows)} instances")
    return "\n".join(lines)


# -- one instance ------------------------------------------------------------------------------------------


def _instance(rule: Rule, rng: np.random.Generator, tally: _Tally) -> None:
    codes = draw_codes(rule, rng)
    for _ in range(_PATIENCE):
        if all(can_have_rows(c, codes) for c in rule.when):
            break
        codes = draw_codes(rule, rng)
    if not saturations_fit(rule.lhs, codes) or not all(code_condition(c, codes) for c in rule.when):
        return
    try:
        where = roles(rule, codes, rng)
        values, exhaustive = draw_values(where, _dtypes_of(codes), rng)
        aimed = aim(rule, codes, values, rng)
        exhaustive &= not aimed
        together = bool(sides_of(rule)) or reduces(rule.lhs)
        if together:
            _mend(rule, codes, values)
        keep = _selected(rule, codes, values, together)
        if keep is not None:
            values = {v: x.select(keep) for v, x in values.items()}
        count = max((x.size for v, x in values.items() if v in where and where[v][0] == "tile"), default=1)
        if not count or (keep is not None and not keep.any()):
            return
        values.update({v: Valued.mask(count, rng) for v, (kind, _) in where.items() if kind == "mask"})
        left = evaluate(rule.lhs, codes, values)
    except Unfit:
        return
    tally.instances += 1
    tally.exhaustive += exhaustive
    tally.values += left.size
    try:
        right = evaluate(rule.rhs, codes, values)
    except Unfit as problem:
        why = problem.__cause__ or "it has another type than it says"
        tally.failures.append(f"{rule.name} with {show_codes(codes)}: no program contains the right side: {why}")
        return
    compare(rule, codes, values, left, right, tally)
    if (operations_of(rule.lhs) | operations_of(rule.rhs)) & set(OTHER_CHOICES):
        left, right = (evaluate(side, codes, values, other=True) for side in (rule.lhs, rule.rhs))
        compare(rule, codes, values, left, right, tally)


def compare(
    rule: Rule, codes: Assignment, values: Mapping[Var, Valued], left: Valued, right: Valued, tally: _Tally
) -> None:
    """Record a failure where the two sides differ in type or bits."""
    shown = show_codes(codes)
    if rule.bound is not None:
        tally.failures += bound_failures(rule.name, rule.bound, operand_of(rule, values), left, right)
        return
    if rule.contract == "contracted":
        tally.failures += contracted_failures(rule, values, left, right)
        return
    if left.type != right.type:
        tally.failures.append(f"{rule.name} with {shown}: {left.type} on the left, {right.type} on the right")
        return
    differ = ~same_bits(left.data, right.data, left.dtype)
    if not differ.any():
        return
    at = int(np.flatnonzero(differ.reshape(-1))[0])
    sources = ", ".join(f"{v.name}={x.element(at, differ.size)}" for v, x in values.items())
    tally.failures.append(
        f"{rule.name} with {shown}, {sources}: {left.element(at)} on the left, {right.element(at)} on the right"
        f" ({int(differ.sum())} of {differ.size} values)"
    )


def show_codes(codes: Assignment) -> str:
    """Return an assignment of code variables as text."""
    names: dict[str, Callable[[int], object]] = {
        "dtype": lambda c: CODE_DTYPES[c].name,
        "mode": lambda c: CODE_MODES[c],
        "saturation": lambda c: CODE_SATURATIONS[c],
    }
    return ", ".join(f"{v.name}={names[v.kind](c)}" for v, c in codes.items() if v.kind in names)


def _dtypes_of(codes: Assignment) -> list[DType]:
    return [CODE_DTYPES[c] for v, c in codes.items() if v.kind == "dtype"]


def code_variables(rule: Rule) -> list[Var]:
    """Return the variables of a rule that stand for codes, in order of occurrence."""
    found: dict[Var, None] = {}
    stack: list[Any] = [rule.lhs, rule.rhs, *(a for c in rule.when for a in c.args)]
    while stack:
        p = stack.pop(0)
        if isinstance(p, Var) and p.kind != "value":
            found[p] = None
        elif isinstance(p, Term):
            stack = [*p.args, *p.children, *stack]
    return list(found)


ARITHMETIC = tuple(
    DTYPE_CODES[name] for name, d in DTYPES.items() if d.is_numeric and not d.is_coded and d.kind != "bool"
)
NUMERIC = tuple(DTYPE_CODES[name] for name, d in DTYPES.items() if d.is_numeric)


def draw_codes(rule: Rule, rng: np.random.Generator) -> Assignment:
    """Draw dtypes, modes and saturations for a rule's variables; shapes are all the same one."""
    out: Assignment = {}
    whole = {a for c in rule.when if c.relation in ("tall", "beside") for a in c.args}
    for v in code_variables(rule):
        match v.kind:
            case "dtype":
                out[v] = int(rng.choice(_dtypes_for(v, rule)))
            case "mode":
                out[v] = int(rng.choice(list(MODE_CODES.values())))
            case "saturation":
                out[v] = int(rng.integers(len(CODE_SATURATIONS)))
            case "rest":
                out[v] = int(rng.integers(OF_SOME_ROWS if v in whole else OF_A_ROW))
            case _:
                out[v] = 0
    for c in rule.when:
        if c.relation == "beside":
            out[c.args[3]] = out[c.args[1]] % 2 + OF_A_ROW  # type: ignore[index]
        if c.relation == "halves":
            out.update({c.args[1]: 0, c.args[2]: 1})  # type: ignore[dict-item]
        if c.relation in LAID:
            there, _, back = c.args[-3:]
            out.update({there: IN_ONE_ROW, back: AS_BEFORE})  # type: ignore[dict-item]
    return out


def _dtypes_for(v: Var, rule: Rule) -> list[int]:
    """Return the codes of the dtypes for which what the rule asks of this one dtype holds."""
    asked = [c.relation for c in rule.when if c.args == (v,)]
    return [c for c in NUMERIC if all(dtype_holds(relation, (CODE_DTYPES[c],)) for relation in asked)]


def saturations_fit(p: Any, codes: Assignment) -> bool:
    """Tell whether every cast has a saturation code that the encoding can give it (none for integers only)."""
    if not isinstance(p, Term):
        return True
    if p.op == "tile.cast":
        dst, saturation = (codes[a] if isinstance(a, Var) else a for a in (p.args[0], p.args[4]))
        if saturation == 0 and not CODE_DTYPES[dst].is_float:
            return False
    return all(saturations_fit(c, codes) for c in p.children)


def roles(rule: Rule, codes: Assignment, rng: np.random.Generator) -> dict[Var, Role]:
    """Return what each value variable stands for in an instance, by the pattern and the conditions."""
    named = {c.args[0] for c in rule.when if c.relation in LITERAL_CONDITIONS}
    literals = frozenset(v for v in named | scalar_variables(rule.lhs) if isinstance(v, Var))
    free = CODE_DTYPES[int(rng.choice(ARITHMETIC))]
    found = value_variables(rule.lhs, codes, literals, free)
    for c in rule.when:
        subject = c.args[0] if c.args else None
        if c.relation not in ("typed", "windows") or not isinstance(subject, Var):
            continue
        if found.get(subject, ("tile",))[0] == "tile":
            (code, *_) = codes_of(c, codes)
            found[subject] = ("tile", CODE_DTYPES[code])
    return found


# -- conditions --------------------------------------------------------------------------------------------


def code_condition(c: Condition, codes: Assignment) -> bool:
    """Decide a condition on codes; conditions on values come later."""
    args = [codes[a] if isinstance(a, Var) and a in codes else a for a in c.args]
    if c.relation == "!=":
        return args[0] != args[1]
    kinds = FACTS[c.relation][0]
    if "value" in kinds:
        return True
    if c.relation in ("offers", *LAID) or c.relation in GIVEN:
        return True
    if c.relation == "lacking":
        operation, dtype = args
        assert isinstance(operation, int) and isinstance(dtype, int)
        return circumvented(operation, CODE_DTYPES[dtype])
    if c.relation == "keeps_infinity":
        dtype, saturation = args
        assert isinstance(dtype, int) and isinstance(saturation, int)
        return infinity_kept(CODE_DTYPES[dtype], saturation)
    return dtype_holds(c.relation, tuple(CODE_DTYPES[a] for a in args if isinstance(a, int)))


def _selected(rule: Rule, codes: Assignment, values: Mapping[Var, Valued], together: bool) -> Arr | None:
    """Return which elements satisfy the rule's value conditions (``None``: it has none).

    ``together``: elements depend on each other's places, so that all must satisfy them or none is taken.
    """
    keep: Arr | None = None
    for c in rule.when:
        if c.relation not in VALUE_CONDITIONS and c.relation not in LITERAL_CONDITIONS:
            continue
        subject = c.args[0]
        assert isinstance(subject, Var | Term)
        value = evaluate(subject, codes, values)
        if isinstance(value.type, ScalarType):
            if not literal_holds(c.relation, decode(value.data, value.dtype)[0].item()):
                raise Unfit
            continue
        holds = value_condition(c.relation, value.data.reshape(-1), value.dtype, codes_of(c, codes))
        if together:
            if not holds.all():
                raise Unfit
            continue
        keep = holds if keep is None else keep & holds
    return keep


def _mend(rule: Rule, codes: Assignment, values: dict[Var, Valued]) -> None:
    """Put 1 in place of elements that break a condition, where elements cannot be left out one by one."""
    for c in rule.when:
        if c.relation not in VALUE_CONDITIONS:
            continue
        v = c.args[0]
        if not isinstance(v, Var) or isinstance(values[v].type, ScalarType):
            continue
        was = values[v]
        holds = value_condition(c.relation, was.data.reshape(-1), was.dtype, codes_of(c, codes))
        one = encode(np.ones(1), was.dtype)[0]
        values[v] = Valued(np.where(holds.reshape(was.data.shape), was.data, one), was.type)


# -- values ------------------------------------------------------------------------------------------------


def draw_values(
    where: Mapping[Var, Role], others: list[DType], rng: np.random.Generator
) -> tuple[dict[Var, Valued], bool]:
    """Draw elements for the value variables, and tell whether they are all there are.

    ``where``: what each variable stands for; masks are left out. ``others``: dtypes whose boundaries matter.
    """
    tiles = [v for v, (kind, _) in where.items() if kind == "tile"]
    out = {v: Valued.scalar(_one(dtype, others, rng), dtype) for v, (kind, dtype) in where.items()
           if kind == "scalar"}  # fmt: skip
    exhaustive = all(kind != "scalar" for kind, _ in where.values()) and _listable([where[v][1] for v in tiles])
    if exhaustive:
        grids = np.meshgrid(*[all_values(where[v][1]) for v in tiles], indexing="ij")
        arrays = [g.reshape(-1) for g in grids]
    else:
        arrays = [_any(where[v][1], others, WIDTH, rng) for v in tiles]
        for i, v in enumerate(tiles[1:], 1):
            if where[v] == where[tiles[0]]:
                arrays[i] = _neighbours(arrays[0], arrays[i], where[v][1], rng)
    out.update({v: Valued.tile(a, where[v][1]) for v, a in zip(tiles, arrays)})
    return out, exhaustive


def _neighbours(first: Arr, array: Arr, dtype: DType, rng: np.random.Generator) -> Arr:
    """Return an array of which a quarter equals another one's elements or is next to them, for comparisons."""
    near = first.copy()
    if dtype.is_int and dtype.bits >= 8:
        with np.errstate(all="ignore"):
            near = near + rng.integers(0, 2, near.size).astype(near.dtype)
    result: Arr = np.where(rng.random(array.size) < 0.25, near, array)
    return result


def _one(dtype: DType, others: list[DType], rng: np.random.Generator) -> Any:
    """Return one element for a scalar: half of them zeros, ends, infinities and NaN."""
    pool = extreme_values(dtype) if rng.random() < 0.5 else _any(dtype, others, 8, rng)
    return rng.choice(pool)


def _listable(dtypes: list[DType]) -> bool:
    return bool(dtypes) and sum(d.bits for d in dtypes) <= 16


def _any(dtype: DType, others: list[DType], count: int, rng: np.random.Generator) -> Arr:
    """Return hostile elements of a dtype: extremes, boundaries of the other dtypes, random bits."""
    parts = [rng.choice(extreme_values(dtype), max(1, count // 8)), random_bits(dtype, rng, max(1, count // 8))]
    share = max(1, count - sum(p.size for p in parts)) // max(1, len(others)) + 1
    try:
        parts += [hostile(dtype, other, rng, share) for other in others]
    except TileggError:
        parts += [random_bits(dtype, rng, count)]
    whole: Arr = rng.permutation(np.concatenate(parts))[:count]
    return whole
