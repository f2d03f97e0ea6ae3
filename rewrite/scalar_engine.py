"""The e-graph of the scalar lowering: tile and scalar terms side by side, rewritten by the scalar rules."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..ir.op import OPS
from ..ir.program import Const, Value
from ..rules.rule import Pattern, Rule, Term, Var
from ..rules.scalars import SCALAR_FACTS, SCALAR_RULES, never_negative, power_of, scalar_dtype_rows
from ..rules.terms import child_params, constructor, literal_codes, signature
from .encode import read_graph, region_text
from .engine import Budget, Engine, _condition, _query
from .graph import Graph
from .knowledge import Knowledge
from .region import Region


def _operations(p: Pattern) -> Iterator[str]:
    if isinstance(p, Term):
        yield p.op
        for child in p.children:
            yield from _operations(child)


#: Operations the scalar rules mention.
MENTIONED = tuple(sorted({n for r in SCALAR_RULES.values() for p in (r.lhs, r.rhs) for n in _operations(p)}))


def compile_scalar_rule(rule: Rule) -> str:
    """Return the egglog text of a rule."""
    query: list[str] = []
    names: dict[Term, str] = {}
    root = _query(rule.lhs, query, names)
    query += [_condition(c, names) for c in rule.when]
    action = f"(union {root} {_made(rule.rhs)})"
    return f'(rule ({" ".join(query)})\n  ({action})\n  :ruleset {rule.phase} :name "{rule.name}")'


def _made(p: Pattern) -> str:
    if isinstance(p, Var):
        return p.name
    args = [a.name if isinstance(a, Var) else str(a) for a in p.args]
    return f"({' '.join([constructor(p.op), *args, *map(_made, p.children)])})"


def _declared(name: str) -> str:
    decl = OPS[name]
    sorts = " ".join(["i64"] * len(signature(decl)) + ["V"] * len(child_params(decl)))
    return f"(constructor {constructor(name)} ({sorts}) V)"


class ScalarEngine(Engine):
    """An engine whose template holds the scalar rules; other operations are declared as regions have them."""

    def _fresh(self) -> None:
        self._egraph = self._bindings.EGraph()
        out = ["(sort V)", "(constructor Inp (i64) V)", "(constructor Lit (i64 i64) V)", "(constructor Absent () V)",
               "(function val (i64) V :no-merge)", "(ruleset normalise)", "(ruleset lower)"]  # fmt: skip
        for name, (kinds, _) in SCALAR_FACTS.items():
            out.append(f"(relation {name} ({' '.join('V' if k == 'value' else 'i64' for k in kinds)}))")
        out += [_declared(name) for name in MENTIONED]
        out += [compile_scalar_rule(r) for r in self._rules]
        out += [f"({relation} {code})" for relation, code in scalar_dtype_rows()]
        self._load(out)
        self._uses = 0
        self._declared: set[str] = set()
        self._active: set[str] = set()
        self._load(["(push)"])

    def declare(self, names: Iterable[str], without: frozenset[str] = frozenset()) -> None:
        """Make operations available until the next reset; the scalar rules are always loaded."""
        missing = set(names).difference(MENTIONED, self._declared)
        self._declared.update(missing)
        self._load([_declared(name) for name in sorted(missing)])


_local = threading.local()


def scalar_engine() -> ScalarEngine:
    """Return this thread's engine."""
    if not hasattr(_local, "engine"):
        _local.engine = ScalarEngine(SCALAR_RULES.values())
    made: ScalarEngine = _local.engine
    return made


def saturate_scalars(region: Region, knowledge: Knowledge, budget: Budget, extrema: bool = True) -> Graph:
    """Return the e-graph of a region with every form the scalar rules give.

    ``extrema``: whether the target has maximum and minimum of float scalars.
    """
    eng = scalar_engine()
    try:
        text, codes = region_text(region)
        eng.declare(op.name for op in region.ops)
        eng.add(text + _facts(region, knowledge) + ([] if extrema else ["(lacks_extrema)"]))
        outcome = eng.run("lower", budget)
        return replace(read_graph(region, codes, eng.rows(), {}), stopped=outcome.stopped)
    finally:
        eng.reset()


def _facts(region: Region, knowledge: Knowledge) -> list[str]:
    rows: dict[str, None] = {}
    number = {v.name: i for i, v in enumerate(region.leaves)}
    number.update({op.result.name: len(region.leaves) + i for i, op in enumerate(region.ops)})
    for op in region.ops:
        if not op.name.startswith("scalar."):
            continue
        for o in op.operands:
            if isinstance(o, Value) and never_negative(knowledge.of(o)):
                rows[f"(nonneg (val {number[o.name]}))"] = None
            elif isinstance(o, Const):
                rows.update(dict.fromkeys(_literal_rows(o)))
    return list(rows)


def _literal_rows(c: Const) -> Sequence[str]:
    found = []
    k = power_of(c.value)
    if k is not None and c.dtype.is_int and c.value <= c.dtype.max_value:
        found.append(f"(power {_text(c)} {_text(Const(k, c.dtype))} {_text(Const((1 << k) - 1, c.dtype))})")
    if c.dtype.is_int and c.value >= 0:
        found.append(f"(nonneg {_text(c)})")
    return found


def _text(c: Const) -> str:
    kind, bits = literal_codes(c.value, c.dtype)
    return f"(Lit {kind} {bits})"
