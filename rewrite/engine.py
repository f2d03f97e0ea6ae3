"""The e-graph engine behind one small interface; nothing else in the project imports egglog.

An :class:`Engine` holds a schema, rules and fixed fact rows as a template. For each region: ``add`` terms
and facts as text, ``run`` a rule phase within a budget, ``rows`` to read tables back, ``reset`` to return
to the template. Terms are egglog text in small pieces: one large text costs quadratic time in the parser of
egglog 13.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..ir import ops as _ops  # noqa: F401  (registers the operations)
from ..ir.op import OPS, OpDecl
from ..rules import facts
from ..rules import library as _library  # noqa: F401  (declares the rules)
from ..rules.casts import MAX_HOPS, road_columns, road_table
from ..rules.rule import RULES, Condition, Pattern, Rule, Term, Var
from ..rules.terms import LITERAL, child_params, constructor, signature
from .native import bindings

PIECE = 40  # statements per parsed text
ROUNDS = 4  # rule rounds between two looks at the budget


@dataclass(frozen=True)
class Budget:
    """Bounds of a saturation: e-nodes over all tables, and rule rounds."""

    nodes: int = 200_000
    rounds: int = 60


@dataclass(frozen=True)
class Outcome:
    """How a phase ended: ``stopped`` is "saturated", or names the exhausted budget."""

    stopped: str
    rounds: int


def is_term(decl: OpDecl) -> bool:
    """Return whether the operation is written as a term: pure, and known to give a tile or a scalar."""
    if not decl.pure:
        return False
    plain = decl.scalar is not None and (decl.scalar.group in ("B", "C") or decl.name.startswith("llvm."))
    return plain or decl.name.startswith(("tile.", "scalar."))


def compile_rule(rule: Rule) -> str:
    """Return the egglog text of a declared rule, with provenance writes for every term it creates."""
    query: list[str] = []
    names: dict[Term, str] = {}
    root = _query(rule.lhs, query, names)
    query += [_condition(c, names) for c in rule.when]
    actions: list[str] = []
    result = _build(rule.rhs, actions, {}, rule.number)
    actions.append(f"(union {root} {result})")
    return f'(rule ({" ".join(query)})\n  ({" ".join(actions)})\n  :ruleset {rule.phase} :name "{rule.name}")'


def _query(p: Pattern, query: list[str], names: dict[Term, str]) -> str:
    if isinstance(p, Var):
        return p.name
    if p not in names:
        children = [_query(c, query, names) for c in p.children]
        names[p] = f"e{len(names)}"
        query.append(f"(= {names[p]} {_call(p, children)})")
    return names[p]


def _call(p: Term, children: Sequence[str]) -> str:
    args = [a.name if isinstance(a, Var) else str(a) for a in p.args]
    return f"({' '.join([constructor(p.op), *args, *children])})"


def _condition(c: Condition, names: dict[Term, str]) -> str:
    words = [str(a) if isinstance(a, int) else names[a] if isinstance(a, Term) else a.name for a in c.args]
    return f"({c.relation} {' '.join(words)})"


def _build(p: Pattern, actions: list[str], made: dict[Term, str], number: int) -> str:
    if isinstance(p, Var):
        return p.name
    if p in made:
        return made[p]
    children = [_build(c, actions, made, number) for c in p.children]
    call = _call(p, children)
    if p.op == LITERAL:
        return call
    name = made[p] = f"n{len(actions)}"
    actions.append(f"(let {name} {call})")
    actions.append(f"(set (why_{call[1:]} {number})")
    return name


def schema() -> list[str]:
    """Return the egglog declarations: the operations that every region's rules speak of, the fact tables.

    Other operations are declared when a region has them: a small template is quicker to make and to reset.
    """
    out = [
        "(sort V)",
        "(constructor Inp (i64) V)",
        "(constructor Lit (i64 i64) V)",
        "(constructor Absent () V)",
        "(function val (i64) V :no-merge)",
        "(ruleset normalise)",
        "(ruleset lower)",
        "(ruleset compose)",
    ]
    out += _declarations(_ruled())
    for name, (kinds, _) in facts.FACTS.items():
        out.append(f"(relation {name} ({' '.join('V' if k == 'value' else 'i64' for k in kinds)}))")
    for hops in range(1, MAX_HOPS + 1):
        for exact in (True, False):
            columns = " ".join(["V", *["i64"] * (len(road_columns(hops, exact)) - 1)])
            out.append(f"(relation {road_table(hops, exact)} ({columns}))")
    return out


def _sorts(decl: OpDecl) -> str:
    return " ".join(["i64"] * len(signature(decl)) + ["V"] * len(child_params(decl)))


def _constructor(decl: OpDecl) -> str:
    return f"(constructor {constructor(decl.name)} ({_sorts(decl)}) V)"


def _declarations(names: Iterable[str]) -> list[str]:
    """Return the declarations of operations, in order of name, with a provenance table for those rules make."""
    out: list[str] = []
    for name in sorted(names):
        decl = OPS[name]
        out.append(_constructor(decl))
        if name in explained():
            out.append(f"(function why_{constructor(name)} ({_sorts(decl)}) i64 :merge (min old new))")
    return out


#: Rules about these operations are part of the template; others are loaded for regions that their left side can match.
_ALWAYS = frozenset({"tile.cast", "tile.assume"})


@cache
def _operations(p: Term) -> frozenset[str]:
    """Return the operations of a pattern."""
    return frozenset(t.op for t in terms_of(p)) - {LITERAL}


def _made(rule: Rule) -> frozenset[str]:
    return _operations(rule.rhs) if isinstance(rule.rhs, Term) else frozenset()


def _is_always(rule: Rule) -> bool:
    return rule.phase != "compose" and _operations(rule.lhs) <= _ALWAYS


#: Contracts whose rules every run admits; they stay loaded once a region has needed them.
_KEPT = ("exact", "bounded")


def _mentioned(rule: Rule) -> frozenset[str]:
    return _operations(rule.lhs) | _made(rule)


@cache
def _ruled() -> frozenset[str]:
    """Return the operations that the template's rules mention."""
    base = [r for r in RULES.values() if _is_always(r)]
    return frozenset().union(*(_operations(r.lhs) | _made(r) for r in base))


@cache
def explained() -> frozenset[str]:
    """Return the operations that rules make: their terms carry the rule that made them."""
    return frozenset().union(*map(_made, RULES.values()))


@cache
def why_tables() -> frozenset[str]:
    """Return the names of the provenance tables."""
    return frozenset(f"why_{constructor(name)}" for name in explained())


def terms_of(p: Pattern) -> Iterable[Term]:
    """Yield the terms of a pattern, outermost first."""
    if isinstance(p, Term):
        yield p
        for c in p.children:
            yield from terms_of(c)


class Engine:
    """One e-graph template and its current contents; use :func:`engine` for the shared one of a thread.

    ``keep``: rules and operations stay in the template once a region has needed them, which pays where regions are
    alike; every reset copies the template.
    """

    def __init__(self, rules: Iterable[Rule], keep: bool = True) -> None:
        self.keeps = keep
        self._bindings = bindings()
        self._rules = tuple(rules)
        self._late = [(r, _operations(r.lhs), _made(r)) for r in self._rules
                      if not _is_always(r) and r.phase != "compose"]  # fmt: skip
        self._commands: dict[str, list[Any]] = {}
        self._matches: dict[tuple[frozenset[str], frozenset[str]], list[Rule]] = {}
        self._schedules: dict[str, list[Any]] = {}
        # egglog 14 slows down with every push and pop, so that its template is made anew now and then.
        self._wears_out = hasattr(self._bindings.EGraph, "parse_and_run_program")
        self._fresh()

    def _fresh(self) -> None:
        self._egraph = self._bindings.EGraph()
        fixed = [f"({name} {' '.join(map(str, row))})" for name, row in facts.dtype_rows()]
        always = [compile_rule(r) for r in self._rules if _is_always(r)]
        self._load([*schema(), *always, *fixed])
        self._uses = 0
        self._declared: set[str] = set()
        self._active: set[str] = set()
        self._kept: set[str] = set()
        self._kept_operations: frozenset[str] = frozenset()
        self._load(["(push)"])

    def _load(self, statements: Sequence[str]) -> None:
        for start in range(0, len(statements), PIECE):
            text = "\n".join(statements[start : start + PIECE])
            self._egraph.run_program(*self._egraph.parse_program(text))

    def declare(self, names: Iterable[str], without: frozenset[str] = frozenset()) -> None:
        """Make operations available until the next reset, and the rules that can match terms of them.

        ``without``: contracts whose rules are left out.
        """
        wanted = set(names) | self._declared
        matching = self._matching(frozenset(wanted | _ruled()), without)
        if self.keeps and not self._declared and not self._active:
            rules = [r for r in matching if r.contract in _KEPT and r.name not in self._kept]
            self._keep(rules, wanted - _ruled() - self._kept_operations)
        late = [r for r in matching if r.name not in self._kept]
        missing = wanted.union(*map(_mentioned, late)) - _ruled() - self._declared - self._kept_operations
        self._declared.update(missing)
        self._load(_declarations(missing))
        self._active.update(r.name for r in matching)
        self._run(late)

    def _keep(self, rules: Sequence[Rule], wanted: set[str]) -> None:
        """Make rules and operations part of the template: loading them for every region would take longer."""
        if not rules and not wanted:
            return
        self._load(["(pop)"])
        operations = frozenset(wanted).union(*map(_mentioned, rules)) - _ruled() - self._kept_operations
        self._load(_declarations(operations))
        self._kept_operations |= operations
        self._kept.update(r.name for r in rules)
        self._run(rules)
        self._load(["(push)"])

    def _run(self, rules: Iterable[Rule]) -> None:
        for r in rules:
            self._egraph.run_program(*self._parsed(r))

    def compose(self, rules: Iterable[Rule]) -> None:
        """Load rules of the phase "compose" until the next reset; no other rule sees what they make."""
        found = list(rules)
        missing = frozenset().union(*map(_mentioned, found)) - _ruled() - self._declared - self._kept_operations
        self._declared.update(missing)
        self._load(_declarations(missing))
        self._run(found)

    def active(self) -> list[Rule]:
        """Return the rules loaded since the last reset, beside the template's."""
        return [RULES[name] for name in sorted(self._active)]

    def _matching(self, available: frozenset[str], without: frozenset[str]) -> list[Rule]:
        """Return the rules beside the template's whose left side can be built from available operations or others'."""
        if self._active:
            return self._match(available, without)
        key = (available, without)
        if key not in self._matches:
            self._matches[key] = self._match(available, without)
        return self._matches[key]

    def _match(self, available: frozenset[str], without: frozenset[str]) -> list[Rule]:
        reach, found = set(available), list[Rule]()
        waiting = [w for w in self._late if w[0].name not in self._active and w[0].contract not in without]
        while True:
            now = [w for w in waiting if w[1] <= reach]
            if not now:
                return found
            found += [r for r, _, _ in now]
            waiting = [w for w in waiting if not w[1] <= reach]
            reach.update(*(made for _, _, made in now))

    def _parsed(self, rule: Rule) -> list[Any]:
        if rule.name not in self._commands:
            self._commands[rule.name] = self._egraph.parse_program(compile_rule(rule))
        return self._commands[rule.name]

    def add(self, statements: Sequence[str]) -> None:
        """Insert terms (``(set (val 3) (tile_add ...))``) and fact rows."""
        self._load(statements)

    def run(self, phase: str, budget: Budget) -> Outcome:
        """Apply one phase's rules until nothing changes or the budget is used up."""
        command = self._schedule(phase)
        for rounds in range(ROUNDS, budget.rounds + ROUNDS, ROUNDS):
            (output,) = self._egraph.run_program(*command)
            if not getattr(output, "report").updated:  # noqa: B009  (a union type in the stubs)
                return Outcome("saturated", rounds)
            if self.size() > budget.nodes:
                return Outcome(f"stopped at the node limit {budget.nodes}", rounds)
        return Outcome(f"stopped at the round limit {budget.rounds}", budget.rounds)

    def _schedule(self, phase: str) -> list[Any]:
        if phase not in self._schedules:
            text = f"(run-schedule (repeat {ROUNDS} (run {phase})))"
            self._schedules[phase] = list(self._egraph.parse_program(text))
        return self._schedules[phase]

    def size(self) -> int:
        """Return the number of rows over all term tables."""
        functions = self._egraph.freeze().functions
        return sum(len(f.rows) for name, f in functions.items() if name in _term_tables())

    def rows(self, names: frozenset[str] | None = None) -> dict[str, list[tuple[int, ...]]]:
        """Return the rows of the named tables (default: all terms and ``val``), as integers.

        Each row is the arguments followed by the output; i64 cells are the integers themselves, value cells
        are e-class numbers, equal exactly for equal e-classes.
        """
        wanted = _term_tables() | {"val", "Inp", "Lit"} if names is None else names
        out: dict[str, list[tuple[int, ...]]] = {}
        for name, function in self._egraph.freeze().functions.items():
            if name in wanted and function.rows:
                out[name] = self._decode(function)
        return out

    def _decode(self, function: Any) -> list[tuple[int, ...]]:
        sorts = [*function.input_sorts, function.output_sort]
        number = self._egraph.value_to_i64
        readers = [number if s == "i64" else _class_number for s in sorts]
        last = readers.pop()
        return [
            (*(read(v) for read, v in zip(readers, row.inputs)), last(row.output)) for row in function.rows
        ]

    def reset(self) -> None:
        """Forget everything but the template."""
        self._uses += 1
        if self._wears_out and self._uses >= 25:
            self._fresh()
            return
        self._declared.clear()
        self._active.clear()
        self._load(["(pop)\n(push)"])


def _class_number(value: Any) -> int:
    return int(str(value)[6:-1])


@cache
def _term_tables() -> frozenset[str]:
    return frozenset(constructor(d.name) for d in OPS.values() if is_term(d)) | {"Absent"}


_local = threading.local()


def engine() -> Engine:
    """Return this thread's engine with every declared rule (egglog 13's e-graphs are bound to a thread)."""
    if not hasattr(_local, "engine"):
        _local.engine = Engine(RULES.values())
    made: Engine = _local.engine
    return made


def keep_nothing() -> None:
    """Give this thread an engine whose template stays small: quicker where every region has other operations."""
    if not hasattr(_local, "engine") or _local.engine.keeps:
        _local.engine = Engine(RULES.values(), keep=False)
