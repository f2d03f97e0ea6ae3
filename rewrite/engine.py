"""The e-graph engine behind one small interface; nothing else in the project imports egglog.

An :class:`Engine` holds declarations, rules and fixed fact rows. For each region: ``declare`` what it has, ``add``
terms and facts as text, ``run`` a rule phase within a budget, ``rows`` to read tables back, ``reset`` to forget them.
Terms are egglog text in small pieces: one large text costs quadratic time in the parser of
egglog 13.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..ir.op import OPS
from ..rules.rule import RULES, Rule
from ..rules.terms import constructor
from . import bulk
from .egglog_text import (
    EMPTYING,
    FIXED,
    asked_of,
    base_rules,
    compile_rule,
    declarations,
    emptying_rules,
    is_always,
    is_term,
    made,
    mentioned,
    operations,
    relations,
    ruled,
    ruleset,
    schema,
)
from .native import bindings

PIECE = 40  # statements per parsed text
FIRST_ROUNDS = 4  # rule rounds before the first look at the size; then it is looked at after each
LARGE, GROWTH = 10_000, 8  # a round that makes a large e-graph so many times larger would be followed by worse ones
RENEWED = 1000  # regions of one e-graph
MOST_NUMBERS = 10_000  # integers kept as they were read


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


def _needs(rule: Rule) -> frozenset[str]:
    """Return the contract of a rule and the fact tables it asks for."""
    return frozenset({rule.contract, *(c.relation for c in rule.when)})


class Engine:
    """One e-graph and the declarations in it; use :func:`engine` for the shared one of a thread.

    Rules, operations and fact tables stay declared once a region has needed them. After each region the tables are
    emptied. An engine that is ``busy`` when it is asked for was left in the middle of its work and is made anew.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.busy = False
        self._bindings = bindings()
        self._rules = tuple(rules)
        self._always = tuple(r for r in self._rules if is_always(r))
        always = self._always_on = frozenset(r.name for r in self._always)
        self._late = [
            (r, operations(r.lhs), made(r), _needs(r))
            for r in self._rules
            if r.name not in always and r.phase != "compose"
        ]
        self._commands: dict[str, list[Any]] = {}
        self._matches: dict[tuple[frozenset[str], frozenset[str]], list[Rule]] = {}
        self._file = bulk.MemoryFile() if bulk.MemoryFile.there() else None
        self._fresh()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work on one region; the tables are empty afterwards. What interrupts the work leaves the engine busy."""
        self.busy = True
        yield
        self.reset()
        self.busy = False

    def _fresh(self) -> None:
        self._egraph = self._bindings.EGraph()
        self._classes = _Read(_class_number)
        self._readers = {"i64": _Read(self._egraph.value_to_i64)}
        #: The tables as they were when they were last read, until something changes.
        self._frozen: Any = None
        self._uses = 0
        self._tables: set[str] = set()
        self._operations = ruled()
        self._facts = asked_of(base_rules())
        self._loaded: set[str] = set()
        self._active: set[str] = set()
        self._rulesets: dict[tuple[str, frozenset[str]], str] = {}
        self._schedules: dict[tuple[str, int, frozenset[str]], list[Any]] = {}
        self._moves: dict[tuple[str, frozenset[int]], list[Any]] = {}
        self._movers = bulk.Movers()
        self._load([*schema(), *bulk.schema()])
        self._run(self._always)
        self._sizes = self._egraph.parse_program("(print-size)")
        self._empty = self._egraph.parse_program(f"(run-schedule (run {EMPTYING}))")
        self._empty_later()

    def _empty_later(self) -> None:
        """Give every new table the rule that empties it."""
        functions = self._egraph.freeze().functions
        new = {n: f for n, f in functions.items() if n not in self._tables and n not in FIXED}
        self._tables |= new.keys()
        shapes = {n: (len(f.input_sorts), f.output_sort in ("V", "i64")) for n, f in new.items()}
        self._load(emptying_rules(shapes))

    def _load(self, statements: Sequence[str]) -> None:
        for start in range(0, len(statements), PIECE):
            self._do(self._egraph.parse_program("\n".join(statements[start : start + PIECE])))

    def _do(self, commands: Sequence[Any]) -> Any:
        """Run commands that may change the tables."""
        self._frozen = None
        return self._egraph.run_program(*commands)

    def declare(self, names: Iterable[str], without: frozenset[str] = frozenset()) -> None:
        """Make operations available, and until the next reset the rules that can match terms of them.

        ``without``: contracts, and fact tables asked for, whose rules are left out.
        """
        wanted = frozenset(names)
        matching = self._matching(wanted | ruled(), without)
        self._active.update(r.name for r in matching)
        self._provide(matching, wanted)

    def compose(self, rules: Iterable[Rule]) -> None:
        """Use rules of the phase "compose" until the next reset; no other rule sees what they make."""
        found = list(rules)
        self._active.update(r.name for r in found)
        self._provide(found, frozenset())

    def _provide(self, rules: Sequence[Rule], wanted: frozenset[str]) -> None:
        """Load rules and declare operations, with all that they mention, where they are not there yet."""
        late = [r for r in rules if r.name not in self._loaded]
        named = wanted.union(*map(mentioned, late)) - self._operations
        asked = asked_of(late) - self._facts
        if late or named or asked or self._movers.wanted:
            self._operations |= named
            self._facts |= asked
            self._load([*declarations(named), *relations(asked)])
            self._run(late)
            self._load(self._movers.new_rules())
            self._empty_later()

    def _run(self, rules: Iterable[Rule]) -> None:
        for r in rules:
            self._do(self._parsed(r))
            self._loaded.add(r.name)

    def active(self) -> list[Rule]:
        """Return the rules in use since the last reset, beside those that always are."""
        return [RULES[name] for name in sorted(self._active)]

    def _matching(self, available: frozenset[str], without: frozenset[str]) -> list[Rule]:
        """Return the rules, beside those always in use, whose left side available or made operations can build."""
        if self._active:
            return self._match(available, without)
        key = (available, without)
        if key not in self._matches:
            self._matches[key] = self._match(available, without)
        return self._matches[key]

    def _match(self, available: frozenset[str], without: frozenset[str]) -> list[Rule]:
        reach, found = set(available), list[Rule]()
        waiting = [w for w in self._late if w[0].name not in self._active and not without & w[3]]
        while True:
            now = [w for w in waiting if w[1] <= reach]
            if not now:
                return found
            found += [w[0] for w in now]
            waiting = [w for w in waiting if not w[1] <= reach]
            reach.update(*(w[2] for w in now))

    def _parsed(self, rule: Rule) -> list[Any]:
        if rule.name not in self._commands:
            self._commands[rule.name] = self._egraph.parse_program(compile_rule(rule))
        return self._commands[rule.name]

    def add(self, terms: Sequence[str], rows: Sequence[str] = ()) -> None:
        """Insert terms (``(union (val 3) (tile_add ...))``) and fact rows (``(fits (val 3) 14)``), in any order.

        Rows that no rule asks for are left out.
        """
        asked = [r for r in rows if r[1:-1].partition(" ")[0] in self._facts or r.startswith("(road")]
        if self._file is None:
            self._load([*terms, *asked])
            return
        alone, together, met = self._movers.divide([*terms, *asked])
        self._load(alone)
        if together:
            self._do(self._move(self._file.write(together), frozenset(met)))

    def _move(self, path: str, numbers: frozenset[int]) -> list[Any]:
        """Return the commands that read rows from a file and move those under the numbers: other rules cost time."""
        key = (path, numbers)
        if key not in self._moves:
            name = f"moving_together_{len(self._moves)}"
            self._load([f"(unstable-combined-ruleset {name} {' '.join(map(bulk.moving, sorted(numbers)))})"])
            self._moves[key] = list(self._egraph.parse_program("\n".join(bulk.commands(path, name))))
        return self._moves[key]

    def run(self, phase: str, budget: Budget) -> Outcome:
        """Apply one phase's rules until nothing changes or the budget is used up."""
        rounds, size = FIRST_ROUNDS, 0
        command = self._schedule(phase, FIRST_ROUNDS)
        while True:
            (output,) = self._do(command)
            # Of the rounds of one command the last tells: each of them looks only at what the one before changed.
            last: Any = getattr(output, "report").iterations[-1]  # noqa: B009  (a union type in the stubs)
            if not last.rule_set_report.changed:
                return Outcome("saturated", rounds)
            before, size = size, self.size()
            if size > budget.nodes:
                return Outcome(f"stopped at the node limit {budget.nodes}", rounds)
            if size > LARGE and size > GROWTH * before:
                return Outcome(f"stopped where one round made {size - before} of {size} nodes", rounds)
            if rounds >= budget.rounds:
                return Outcome(f"stopped at the round limit {budget.rounds}", rounds)
            command, rounds = self._schedule(phase, 1), rounds + 1

    def _schedule(self, phase: str, rounds: int) -> list[Any]:
        """Return the command that runs the rules in use: the others that are loaded would take time to find nothing."""
        key = (phase, rounds, frozenset(self._active))
        if key not in self._schedules:
            name = self._ruleset(phase)
            text = f"(run-schedule (repeat {rounds} (run {name})))"
            self._schedules[key] = list(self._egraph.parse_program(text))
        return self._schedules[key]

    def _ruleset(self, phase: str) -> str:
        """Return the name of the set of a phase's rules in use."""
        key = (phase, frozenset(self._active))
        if key not in self._rulesets:
            name = f"{phase}_{len(self._rulesets)}"
            named = self._active | self._always_on
            chosen = [r for r in self._rules if r.phase == phase and r.name in named]
            self._load([f"(unstable-combined-ruleset {name} {' '.join(map(ruleset, chosen))})"])
            self._rulesets[key] = name
        return self._rulesets[key]

    def size(self) -> int:
        """Return the number of rows over all term tables."""
        (sizes,) = self._egraph.run_program(*self._sizes)
        return sum(count for name, count in sizes.sizes if name in _term_tables())

    def rows(self, names: frozenset[str] | None = None) -> dict[str, list[tuple[int, ...]]]:
        """Return the rows of the named tables (default: all terms and ``val``), as integers.

        Each row is the arguments followed by the output; i64 cells are the integers themselves, value cells
        are e-class numbers, equal exactly for equal e-classes.
        """
        wanted = all_tables() if names is None else names
        out: dict[str, list[tuple[int, ...]]] = {}
        if self._frozen is None:
            self._frozen = self._egraph.freeze().functions
        for name, function in self._frozen.items():
            if name in wanted:
                rows = function.rows
                if rows:
                    out[name] = self._decode(function, rows)
        return out

    def _decode(self, function: Any, rows: list[Any]) -> list[tuple[int, ...]]:
        columns = [
            map(self._readers.get(sort, self._classes).__getitem__, column)
            for sort, column in zip(function.input_sorts, zip(*[row.inputs for row in rows]))
        ]
        last = self._readers.get(function.output_sort, self._classes)
        return list(zip(*columns, map(last.__getitem__, [row.output for row in rows])))

    def reset(self) -> None:
        """Empty the tables. After many regions the e-graph is made anew, for its numbers of e-classes only grow."""
        self._uses += 1
        self._active.clear()
        self._classes.clear()
        if len(self._readers["i64"]) > MOST_NUMBERS:
            self._readers["i64"].clear()
        if self._uses >= RENEWED:
            self._fresh()
        else:
            self._do(self._empty)


class _Read(dict[Any, int]):
    """Cells of tables read as numbers, each once."""

    def __init__(self, read: Callable[[Any], int]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, cell: Any) -> int:
        made = self[cell] = self._read(cell)
        return made


def _class_number(value: Any) -> int:
    return int(str(value)[6:-1])


@cache
def all_tables() -> frozenset[str]:
    """Return the names of the tables that hold the terms, and which values they are."""
    return _term_tables() | {"val", "Inp", "Lit"}


@cache
def _term_tables() -> frozenset[str]:
    return frozenset(constructor(d.name) for d in OPS.values() if is_term(d)) | {"Absent"}


_local = threading.local()


def engine() -> Engine:
    """Return this thread's engine with every declared rule (egglog 13's e-graphs are bound to a thread)."""
    made: Engine | None = getattr(_local, "engine", None)
    if made is None or made.busy:
        made = _local.engine = Engine(RULES.values())
    return made
