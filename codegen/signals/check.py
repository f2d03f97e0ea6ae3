"""The check of a program's signals: every setting unrolled, its cells, hangs, orders, lines and markers looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ...ir.collection import no_collection
from ...ir.deferred import MAX_CONDITIONS, deferred_problems, started_late
from ...ir.diagnostics import Diagnostic, TileggError
from ...ir.levels import HOST, level_of
from ...ir.program import Function, Program, require_program
from ...ir.ranks_events import format_schedule
from ...ir.ranks_flow import suspending
from ...ir.ranks_schedule import Schedule, schedules
from ...ir.sizes import require_sizes
from .blocks import in_both_orders, splits
from .cells import Graph, build, dynamic, uses_of
from .classes import ORDER
from .explore import choices_of, search
from .failing import told
from .fitting import Part, fitting
from .hangs import hangs
from .lines import line_faults
from .markers import marker_faults
from .protocol import protocol_faults, unawaited_faults
from .races import Race, blame, filled_before, polls, races, touched
from .report import Checked, Expect, Setting, SignalFinding, SignalReport, Witness
from .settings import PER_RANK, functions_to_check, rank_counts, sizes
from .structure import INPUT, SCALAR, WINDOW, influences
from .unroll import MAX_EVENTS, Unrolled, unroll
from .witness import witness_of

#: Schedules run for programs that one run does not decide, and input samples where inputs decide the events.
SCHEDULES, SAMPLES = 12, 3
_SIGNAL_OPS = ("pld.system.notify", "pld.system.wait", "pld.system.defer_wait")


def check_signals(
    program: Program,
    ranks: Sequence[int] | None = None,
    *,
    function: str | None = None,
    dims: Mapping[str, int] | None = None,
    calls: int = 1,
    budget: int = MAX_EVENTS,
    schedule_count: int = SCHEDULES,
) -> SignalReport:
    """Return what is wrong with the signals, barriers and window accesses of a program, or its certificate.

    ``ranks``: the numbers of ranks to unroll for (default: what static signals fix, else 2, 3, 4 and 8, as far as the
    signals have cells).
    ``function``: check that one (default: host functions, else kernels that nobody calls). ``dims``: values of dynamic
    sizes. ``calls``: how often every rank calls the function, one call right after the other. ``budget``: events a
    setting may have. Never raises for what a program does: what cannot be unrolled is a finding of class ``unchecked``.

    Raises TG030 for a name in ``dims`` that the program has not as a size.
    """
    require_program(program, "check_signals")
    require_sizes(dims or {}, [program], "dims")
    talking = suspending(program.functions)
    functions = [program.function(function)] if function is not None else functions_to_check(program)
    functions = [f for f in functions if f.name in talking]
    marks = influences(program) if functions else frozenset()
    parts: list[Part] = []
    unlike: list[str] = []
    turns: list[str] = []
    several = bool(functions) and splits(program)

    def one(f: Function, setting: Setting) -> tuple[Part, tuple[str, ...]]:
        def check(s: Setting) -> Part:
            return _sized(program, f, s, dims or {}, (marks, budget, schedule_count))

        return in_both_orders(check, setting) if several else (check(setting), ())

    for f in functions:
        made = []
        for n in ranks if ranks is not None else rank_counts(program, f):
            for setting in _settings(program, f, n, dims or {}, marks, calls):
                part, order = one(f, setting)
                made.append(part)
                turns += order
        if ranks is None:
            made, said = fitting(program, f, made)
            unlike += said
        parts += told(program, made)
    checked = tuple(p.summary for p in parts if p.summary is not None)
    limits = (*_limits(functions, marks, checked), *dict.fromkeys((*unlike, *turns)))
    assumed = [f"{w} is filled on every rank before any rank starts" for w in _windows(p.filled for p in parts)]
    assumed += [f"{w} is zero again whenever the program starts" for w in _windows(p.left for p in parts)]
    return SignalReport(merged(x for p in parts for x in p.findings), checked, limits, tuple(assumed))


def _windows(parts: Iterable[frozenset[str]]) -> list[str]:
    return sorted(frozenset().union(*parts))


def _sized(
    program: Program, f: Function, setting: Setting, dims: Mapping[str, int], how: tuple[frozenset[str], int, int]
) -> Part:
    """Check a setting; where nobody gave a size and the program does not run with one, try the next."""
    part, alike = _Check(program, setting, *how).part(), True
    for each in PER_RANK[1:]:
        names = tuple(sorted(sizes(program, f, setting.ranks, dims, each).items()))
        if names == setting.dims or not any(x.word == "unchecked" for x in part.findings):
            break
        other = _Check(program, replace(setting, dims=names), *how).part()
        if not any(x.word == "unchecked" for x in other.findings):
            return other
        alike = alike and [x.message for x in other.findings] == [x.message for x in part.findings]
    return replace(part, alike=alike)


def _size(name: str, value: int, ranks: int) -> str:
    return f"{name} = {value}" if value % ranks else f"{name} = {value // ranks} per rank"


def _settings(
    program: Program, f: Function, n: int, dims: Mapping[str, int], marks: frozenset[str], calls: int
) -> Iterator[Setting]:
    names = tuple(sorted(sizes(program, f, n, dims).items()))
    for sample in range(SAMPLES if marks & {INPUT, SCALAR} else 1):
        yield Setting(f.name, n, names, sample, calls)


def _limits(functions: Sequence[Function], marks: frozenset[str], checked: Sequence[Checked]) -> tuple[str, ...]:
    out = []
    if INPUT in marks or SCALAR in marks:
        out.append(f"events depend on inputs: checked for {SAMPLES} samples of them")
    if any("schedules" in c.method for c in checked):
        out.append("what happens depends on the schedule: checked under some, not proved")
    free = sorted({_size(*d, c.setting.ranks) for c in checked for d in c.setting.dims if d[1] != c.setting.ranks})
    if free:
        out.append(f"dynamic sizes were taken as {', '.join(free)}")
    return tuple(out) if functions else ()


def merged(found: Iterable[SignalFinding]) -> tuple[SignalFinding, ...]:
    """Return findings one per class and place, causes first; ranks and cells of the same setting are joined."""
    out: dict[object, SignalFinding] = {}
    for f in found:
        key = (f.word, *(f.places()[:1] or map(id, f.statements[:1])))
        first = out.get(key)
        if first is None:
            out[key] = f
        elif first.setting == f.setting:
            ranks = tuple(sorted({*first.ranks, *f.ranks}))
            cells = tuple(dict.fromkeys((*first.cells, *f.cells)))
            out[key] = replace(first, ranks=ranks, cells=cells)
    return tuple(sorted(out.values(), key=lambda f: (ORDER[f.word], f.places()[:1])))


class _Check:
    """The check of one setting."""

    def __init__(self, program: Program, setting: Setting, marks: frozenset[str], budget: int, count: int) -> None:
        self.program, self.setting, self.marks = program, setting, marks
        self.budget, self.count = budget, count
        self.summary: Checked | None = None
        self.method = "decided"
        self.hosted = level_of(program.function(setting.function)) == HOST
        self.filled: set[str] = set()
        self.left: set[str] = set()
        self.idle, self.full = 0, False

    def part(self) -> Part:
        """Check the setting and return what was found out."""
        found = tuple(self.run())
        return Part(
            self.setting.ranks, found, self.summary, self.idle, self.full, frozenset(self.filled), frozenset(self.left)
        )

    def run(self) -> list[SignalFinding]:
        """Return the findings of the setting."""
        held = next((s for f in self.program.functions if (s := started_late(f)) is not None), None)
        if held is not None:
            message = "a task that a deferred wait holds back does not start in the order of the text"
            return [self._unchecked(Diagnostic("TG074", message, held.span))]
        try:
            with no_collection():
                return list(self._of(unroll(self.program, self.setting, budget=self.budget)))
        except TileggError as problem:
            self.full = problem.diagnostics[0].code == "TG026"
            return [self._unchecked(problem.diagnostics[0])]

    def _of(self, u: Unrolled) -> Iterator[SignalFinding]:
        waiting = {s.rank for s in u.stuck}
        if self.hosted:
            self.idle = sum(not numbers and r not in waiting for r, numbers in enumerate(u.by_rank))
        if u.faults:
            yield self._fault(u)
            return
        graph = build(u, uses_of(u))
        found = [*self._kept(protocol_faults(graph)), *self._deferred(graph)]
        if u.stuck:
            yield from found
            yield from hangs(self.program, graph, self._relaxed())
            return
        found += self._finished(graph)
        self.filled = filled_before(graph)
        # That a wait is missing matters by itself only where nothing else shows it.
        yield from found or unawaited_faults(graph)
        self.summary = Checked(
            self.setting, len(u.events), sum(e.kind == "wait" for e in u.events), len(graph.uses),
            sum(map(len, touched(graph).values())), self.method,
        )  # fmt: skip

    def _kept(self, found: Iterable[SignalFinding]) -> Iterator[SignalFinding]:
        """Leave out credits that stay in signals which the host function itself has made: they are fresh every time."""
        for f in found:
            if self.hosted and f.word == "credit-leak" and self.setting.calls == 1:
                cell = f.witness.expect.cell if f.witness is not None else None
                self.left |= {cell[0]} if cell is not None else set()
                continue
            yield f

    def _finished(self, graph: Graph) -> Iterator[SignalFinding]:
        u = graph.u
        loose = any(use.outside for use in graph.uses.values())
        racing = list(self._orders(graph)) if not loose else []
        yield from racing
        yield from line_faults(dynamic(u, graph.uses) if loose else graph)
        yield from marker_faults(graph, self.program)
        if loose:
            yield from self._searched(graph)
        if loose or (WINDOW in self.marks and (racing or polls(graph))):
            yield from self._scheduled(loose, len(u.events))

    def _relaxed(self) -> Unrolled | None:
        try:
            u = unroll(self.program, self.setting, relaxed=True, budget=self.budget)
        except TileggError:
            return None
        return None if u.faults else u

    # -- accesses --------------------------------------------------------------------------------------------

    def _orders(self, graph: Graph, schedule: str | None = None) -> Iterator[SignalFinding]:
        for race in races(graph):
            yield self._race(graph, race, schedule)

    def _race(self, graph: Graph, race: Race, schedule: str | None) -> SignalFinding:
        u, why = graph.u, blame(graph, race)
        first, second = u.events[race.first.event], u.events[race.second.event]
        blamed = u.events[why.event]
        events = (blamed, *(e for e in (second, first) if e is not blamed))
        where = f"{race.second.region.window} on rank {race.second.region.owner}"
        expect = Expect("order", first=u.step(race.second.event), second=u.step(race.first.event))
        witness = witness_of(graph, graph.past((race.second.event,)), expect, race.first.event)
        if schedule is not None:
            reached = Expect("order", first=u.step(race.first.event), second=u.step(race.second.event))
            witness = Witness(u.setting, schedule, reached)
        return SignalFinding(
            why.word,
            f"no order between the {race.second.kind} of rank {second.rank} and the {race.first.kind} of rank "
            f"{first.rank} in {where}",
            u.setting, tuple(sorted({first.rank, second.rank})), (str(race.second.region), str(race.first.region)),
            tuple(e.statement for e in events if e.statement is not None), f"missing path: {why.missing}",
            "notify after the first access, and wait for that before the second", witness=witness,
        )  # fmt: skip

    # -- outside the decided class ---------------------------------------------------------------------------

    def _searched(self, graph: Graph) -> Iterator[SignalFinding]:
        u = graph.u
        outcome = search(graph)
        extent = "all" if outcome.complete else "the first"
        self.method = f"checked up to {extent} {outcome.states} states of its signals"
        if outcome.hung is not None:
            path, stuck = outcome.hung
            rank, n = next(iter(stuck.items()))
            e = u.events[n]
            witness = Witness(u.setting, format_schedule(choices_of(u, path)), Expect("stuck", tuple(stuck)))
            word = "eq-on-counter" if e.cell is not None and e.word == "eq" else "deadlock"
            yield SignalFinding(
                word, f"rank {rank} waits forever for {e.cell} under some schedules", u.setting, tuple(stuck),
                () if e.cell is None else (str(e.cell),), () if e.statement is None else (e.statement,),
                "a signal is overwritten, or overtaken, before it is seen", "use AtomicAdd credits and Ge waits",
                witness=witness,
            )  # fmt: skip
        if outcome.left is not None and outcome.hung is None:
            path, over = outcome.left
            cell = next(iter(over))
            last = max(graph.uses[cell].adds + graph.uses[cell].sets)
            s = u.events[last].statement
            expect = Expect("left", cell=(cell.window, cell.owner, cell.number))
            yield SignalFinding(
                "credit-leak", f"{cell} holds {over[cell]} at the end under some schedules", u.setting,
                (cell.owner,), (str(cell),), () if s is None else (s,),
                "the next use starts from a cell that is not zero",
                witness=Witness(u.setting, format_schedule(choices_of(u, path)), expect),
            )  # fmt: skip

    def _scheduled(self, loose: bool, events: int) -> Iterator[SignalFinding]:
        runs = 0
        for schedule in schedules(self.setting.ranks, self.count):
            try:
                u = self._under(schedule, 20 * events + 1000)
            except TileggError:
                # A rank that polls makes no end under a schedule that favours it.
                continue
            runs += 1
            if u.faults or u.stuck:
                if not loose:
                    yield from self._under_schedule(u)
                continue
            graph = dynamic(u, uses_of(u))
            if not loose:
                yield from protocol_faults(graph)
            yield from self._orders(graph, format_schedule([c for _, cs in u.choices for c in cs]))
        known = "" if self.method == "decided" else f"{self.method}, "
        self.method = f"{known or 'checked up to '}{runs} schedules"

    def _under(self, schedule: Schedule, budget: int) -> Unrolled:
        return unroll(self.program, self.setting, schedule=schedule, budget=min(budget, self.budget))

    def _under_schedule(self, u: Unrolled) -> Iterator[SignalFinding]:
        if u.faults:
            yield self._fault(u)
            return
        text = format_schedule([c for _, cs in u.choices for c in cs])
        for f in hangs(self.program, build(u, uses_of(u)), self._relaxed()):
            expect = f.witness.expect if f.witness is not None else Expect("stuck", f.ranks)
            yield replace(f, witness=Witness(self.setting, text, expect))

    # -- what is no question of order --------------------------------------------------------------------------

    def _fault(self, u: Unrolled) -> SignalFinding:
        fault = u.faults[0]
        signal = any(s.name in _SIGNAL_OPS for s in fault.statements)
        text = format_schedule([c for _, cs in u.choices for c in cs])
        return SignalFinding(
            "wrong-cell" if signal else "unchecked", fault.message, self.setting, fault.ranks, (), fault.statements,
            "the statement fails when it runs", notes=fault.notes,
            witness=Witness(self.setting, text, Expect("fault", fault.ranks)),
        )  # fmt: skip

    def _unchecked(self, d: Diagnostic) -> SignalFinding:
        spans = (d.span,) if d.span is not None else ()
        message = f"on {self.setting.ranks} ranks: {d.message}"
        return SignalFinding("unchecked", message, self.setting, (), (), (), d.reason, d.hint, spans=spans)

    def _deferred(self, graph: Graph) -> Iterator[SignalFinding]:
        """The rules of deferred waits: those of the text, and the number of conditions on real loop bounds."""
        u = graph.u
        defers = [n for n, e in enumerate(u.events) if e.kind == "defer"]
        for f in self.program.functions:
            for d in deferred_problems(f):
                at = next((n for n, e in enumerate(u.events) if e.span == d.span), defers[0] if defers else None)
                witness = None
                if at is not None:
                    wanted = {u.events[at].rank: u.position[at] + 1}
                    witness = witness_of(graph, wanted, Expect("reached", first=u.step(at)))
                spans = (d.span,) if d.span is not None else ()
                yield SignalFinding("defer-misuse", d.message, self.setting, (), (), (), d.reason, d.hint, spans=spans,
                                    witness=witness)  # fmt: skip
        yield from self._many_conditions(graph)

    def _many_conditions(self, graph: Graph) -> Iterator[SignalFinding]:
        u = graph.u
        for rank, numbers in enumerate(u.by_rank):
            open_ = 0
            for n in numbers:
                kind = u.events[n].kind
                open_ = open_ + 1 if kind == "defer" else 0 if kind == "wait" else open_
                if open_ > MAX_CONDITIONS:
                    s = u.events[n].statement
                    witness = witness_of(graph, {rank: u.position[n] + 1}, Expect("reached", first=u.step(n)))
                    yield SignalFinding(
                        "defer-misuse", f"a task of rank {rank} registers more than {MAX_CONDITIONS} conditions",
                        self.setting, (rank,), (), () if s is None else (s,), witness=witness,
                    )  # fmt: skip
                    return


