"""Rules as declarations: a named equation with its conditions, its reason and its numeric contract.

    x, sh = value("x"), shape("sh")
    a, b, c = dtypes("a b c")
    rule(
        "cast.fuse.widening-first",
        lhs=cast(cast(x, a, b, m1, s1, sh), b, c, m2, s2, sh),
        rhs=cast(x, a, c, m2, s2, sh),
        when=[fits(x, b)],
        contract="exact",
        reason="...",
    )

The e-graph rule, the row in ``tilegg rules`` and the soundness check are derived from the declaration. A
pattern is an operation of ``ir/ops`` applied to patterns and variables; its extra arguments (dtype, shape,
round mode, ...) are variables or constants too, in the order of :func:`tilegg.rules.terms.signature`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from .terms import LITERAL, literal_value

Contract = Literal["exact", "faithful", "contracted", "bounded", "relaxed"]

#: Contracts from strictest to loosest; a run loads the rules up to the contract it admits.
CONTRACTS: dict[str, str] = {
    "exact": "bit for bit, NaN payload aside",
    "faithful": "a cast may take the cheapest legal chain, double rounding reported; all else bit for bit",
    "contracted": "fewer roundings than written (fused multiply-add)",
    "bounded": "a recipe with a stated error bound on a stated domain",
    "relaxed": "reassociation and reciprocals",
}

VarKind = Literal["value", "dtype", "mode", "saturation", "shape", "rest", "int"]


@dataclass(frozen=True)
class Var:
    """A pattern variable; everything but values is an integer code in the e-graph."""

    name: str
    kind: VarKind


@dataclass(frozen=True)
class Term:
    """An operation pattern: declared operation name, argument codes, child patterns."""

    op: str
    args: tuple[Var | int, ...]
    children: tuple[Pattern, ...]

    def __hash__(self) -> int:
        # Kept: recipes share subpatterns, so that hashing anew at every level would take exponential time.
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = hash((self.op, self.args, self.children))
            object.__setattr__(self, "_hash", known)
        return known


Pattern = Term | Var


@dataclass(frozen=True)
class Bound:
    """What a rule of contract "bounded" promises of its right side, compared with the left side.

    ``errors``: pairs (limit, error) by growing limit: where the operand's magnitude is at most ``limit``, the
    absolute error is at most ``error``. NaN gives NaN. ``special`` says in words what else is known.
    """

    errors: tuple[tuple[float, float], ...]
    special: str = ""

    @property
    def limit(self) -> float:
        """The largest magnitude anything is promised for."""
        return self.errors[-1][0]

    def __str__(self) -> str:
        return "; ".join(f"error at most {error:.3g} for |x| <= {limit:.6g}" for limit, error in self.errors)


@dataclass(frozen=True)
class Condition:
    """A fact a rule needs: a relation of the e-graph and what it is applied to.

    ``relation`` is the name of a fact table (see ``rules/facts.py``), or ``!=`` for unequal codes.
    """

    relation: str
    args: tuple[Var | Term | int, ...]

    def __str__(self) -> str:
        words = [str(a) if isinstance(a, int) else show(a) for a in self.args]
        return (
            f" {self.relation} ".join(words)
            if self.relation == "!="
            else f"{self.relation}({', '.join(words)})"
        )


#: Rules of the phase "compose" load where the road search offers the conversion they stand for.
Phase = Literal["normalise", "lower", "compose"]


@dataclass(frozen=True)
class Rule:
    """One declared rule; ``number`` is its provenance code, ``bound`` belongs to the contract "bounded".

    ``file``: the module that declares it, without its package.

    ``apart``: the operands of the left side's root must be different values. Of equal ones it is the value itself,
    which other rules say; each round this one would join every two ways to make it to a further way.
    """

    name: str
    lhs: Term
    rhs: Pattern
    when: tuple[Condition, ...]
    contract: Contract
    reason: str
    phase: Phase
    number: int
    bound: Bound | None = None
    apart: bool = False
    meets: bool = False
    file: str = ""

    @property
    def equation(self) -> str:
        """The rule in one line; of a recipe, how many operations it takes."""
        if self.bound is not None:
            return f"{show(self.lhs)} ≈ {len(_made_of(self.rhs))} operations{self._conditions}"
        return f"{show(self.lhs)} = {show(self.rhs)}{self._conditions}"

    @property
    def _conditions(self) -> str:
        return f"  when {' and '.join(map(str, self.when))}" if self.when else ""


#: Every declared rule by name, in declaration order.
RULES: dict[str, Rule] = {}


def rule(
    name: str,
    *,
    lhs: Term,
    rhs: Pattern,
    when: Sequence[Condition] = (),
    contract: Contract,
    reason: str,
    phase: Phase = "normalise",
    bound: Bound | None = None,
    apart: bool = False,
    meets: bool = False,
) -> Rule:
    """Declare a rule; raises ``ValueError`` for a repeated name or an unbound variable on the right."""
    if (contract == "bounded") != (bound is not None):
        raise ValueError(f"rule {name}: a bound belongs to the contract bounded, and only to that")
    if name in RULES:
        raise ValueError(f"rule {name} is declared twice")
    known = set(variables(lhs)) | {a for c in when for a in c.args if isinstance(a, Var)}
    loose = [v.name for v in variables(rhs) if v not in known]
    if loose:
        raise ValueError(f"rule {name}: {', '.join(loose)} not bound on the left")
    file = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]
    made = Rule(name, lhs, rhs, tuple(when), contract, reason, phase, len(RULES) + 1, bound, apart, meets, file)
    RULES[name] = made
    return made


def rule_names() -> dict[int, str]:
    """Return the names of the rules that there are, by their numbers."""
    return _names(len(RULES))


@lru_cache(maxsize=2)
def _names(_count: int) -> dict[int, str]:
    return {r.number: r.name for r in RULES.values()}


#: Operations of recipes that are no instruction.
_NAMES_ONLY = frozenset({LITERAL, "tile.approx", "tile.reinterpret_view"})


def _made_of(p: Pattern) -> set[Term]:
    """Return the distinct operations of a recipe that are instructions."""
    if isinstance(p, Var):
        return set()
    found: set[Term] = set().union(*map(_made_of, p.children))
    return found if p.op in _NAMES_ONLY else found | {p}


def variables(p: Pattern) -> Iterator[Var]:
    """Yield the variables of a pattern, in order of occurrence, with repetitions."""
    if isinstance(p, Var):
        yield p
        return
    yield from (a for a in p.args if isinstance(a, Var))
    for child in p.children:
        yield from variables(child)


def show(p: Pattern) -> str:
    """Return a pattern as text; casts show their dtypes and modes."""
    if isinstance(p, Var):
        return p.name
    words = [a.name if isinstance(a, Var) else str(a) for a in p.args]
    if p.op == LITERAL:
        return _show_literal(p)
    inner = ", ".join(show(c) for c in p.children)
    if p.op == "tile.cast":
        dst, _, src, mode, sat, road = words
        kind = "" if road == "0" else " approx"
        return f"cast{kind}[{src}→{dst}, {mode}, {sat}]({inner})"
    return f"{p.op.removeprefix('tile.')}({inner})"


def _show_literal(p: Term) -> str:
    kind, bits = p.args
    if not (isinstance(kind, int) and isinstance(bits, int)):
        return "literal"
    value, _ = literal_value(kind, bits)
    return f"{value:.9g}" if isinstance(value, float) else str(value)


@dataclass
class Names:
    """Variable makers for rule files."""

    kind: VarKind
    made: dict[str, Var] = field(default_factory=dict)

    def __call__(self, names: str) -> list[Var]:
        return [self.made.setdefault(n, Var(n, self.kind)) for n in names.split()]


values = Names("value")
dtypes = Names("dtype")
modes = Names("mode")
saturations = Names("saturation")
shapes = Names("shape")
rests = Names("rest")
integers = Names("int")
