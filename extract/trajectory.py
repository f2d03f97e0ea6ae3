"""Trajectories: the rule applications that lead from one program to another, with contract, cost and error at each.

    for step in derivation(tilegg.lower(program, "a5")).steps: print(step.rule.name, step.totals)

Every step is one rule at one value. Its cost is that of the whole program by its plain lowering (each cast by its
shortest chain, each composite by its reference recipe), so the last step of a derivation costs what was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir.diagnostics import Span
from ..ir.program import Function, Op, Program, Value, walk
from ..rewrite.graph import Graph
from ..rewrite.region import Region
from ..rules.rule import Rule
from ..rules.target import Target
from .baseline import plain
from .derive import Deriver, Tired
from .describe import Describer, FactUsed
from .form_prices import FormPrices
from .forms import Form, Forms
from .lowered import FunctionReport, Lowered, RegionResult, Totals
from .price import Pricer, Refusal, pricer_for
from .prove import Proof, Prover, Rewrite
from .recheck import Check, Rechecker
from .spell import returning, with_states

#: Steps without a rule: equal operations become one; a result starts again as written; loads are left out.
SHARED, AGAIN, UNREAD = "shared", "again", "unread"
#: Largest e-graph in which a whole program's derivation is looked for.
MOST_NODES = 10_000
_LOST = "equal in the e-graph, but no steps were found"


@dataclass(frozen=True)
class TrajectoryStep:
    """One rule application. ``rule`` is ``None`` for a step that no rule makes, which ``label`` names.

    ``result``: the program's value that is rewritten, or that the rewritten one helps to compute; ``before`` and
    ``after``: the rewritten operations; ``backwards``: the rule was read from right to left. ``totals``: the whole
    program after the step by its plain lowering, ``None`` where that is not legal on the target. ``error`` says what
    the step may change, "" for an exact one. ``check``: what the interpreter found, ``None`` if it was not asked.
    """

    function: str
    result: str
    span: Span | None
    rule: Rule | None
    backwards: bool
    before: str
    after: str
    totals: Totals | None
    error: str = ""
    facts: tuple[FactUsed, ...] = ()
    check: Check | None = None
    eclass: int = -1
    region: int = -1
    label: str = ""

    @property
    def contract(self) -> str:
        """The rule's contract."""
        return self.rule.contract if self.rule is not None else "exact"

    @property
    def name(self) -> str:
        """The rule's name, or what the step does without one."""
        return self.rule.name if self.rule is not None else self.label

    @property
    def wrong(self) -> bool:
        """True when the interpreter refutes the step: an exact rule with differing sides, or a broken bound."""
        return self.check is not None and (self.check.broken or (self.contract == "exact" and self.check.differing > 0))


@dataclass
class Trajectory:
    """A sequence of steps from one program to another.

    ``start``: the first program's totals by its plain lowering. ``missing`` says for every result that was not led to
    its form why not; empty: the last step is the second program.
    """

    arch: str
    contract: str
    title: str
    start: Totals
    steps: list[TrajectoryStep] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        """True when the steps lead all the way and no check refutes one."""
        return not self.missing and not any(s.wrong for s in self.steps)

    @property
    def end(self) -> Totals | None:
        """The totals after the last step."""
        return self.steps[-1].totals if self.steps else self.start

    @property
    def contracts(self) -> tuple[str, ...]:
        """The contracts the steps rely on, beside exact ones."""
        return tuple(dict.fromkeys(s.contract for s in self.steps if s.contract != "exact"))

    def render(self) -> str:
        """Return the text form."""
        from .trajectory_show import render

        return render(self)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form (``docs/json.md``)."""
        from .trajectory_show import to_json

        return to_json(self)

    def _repr_html_(self) -> str:
        from .notebook import trajectory_html

        return trajectory_html(self)


@dataclass
class Way:
    """One region on the way: its e-graph, where its results stand now, and where they shall go.

    ``written``: what it costs as written. ``counted``: the results whose cost counts,
    all of them where empty.
    """

    number: int
    result: RegionResult
    prover: Prover
    now: dict[str, Form]
    goal: dict[str, Form] = field(default_factory=dict)
    written: Totals = field(default_factory=Totals)
    counted: tuple[str, ...] = ()


def written_totals(region: Region, classes: Sequence[int], graph: Graph, pricer: Pricer) -> Totals:
    """Return what a region costs as written (illegal parts count nothing).

    ``classes``: those of its leaves, then of its operations.
    """
    values = {i: graph.values[c] for i, c in enumerate(classes) if c in graph.values}
    return plain(region, values, pricer, keys=False).totals


def way(number: int, result: RegionResult, target: Target | None, contract: str, both_ways: bool) -> Way:
    """Return a region with its written results as the present state and no goal yet."""
    forms = Forms(result.region, result.graph)
    written = forms.written()
    now = {name: written[name] for name in _roots(result) if name in written}
    return Way(number, result, Prover(forms, Deriver(result, target, contract), both_ways=both_ways), now)


def derivation(lowered: Lowered, *, samples: int = 0) -> Trajectory:
    """Return the steps from a lowered program's source to what was chosen.

    ``samples``: inputs on which the interpreter checks every step (0: none).
    """
    pricer = pricer_for(lowered.target, lowered.contract == "exact")
    source = lowered.expanded or lowered.source
    found = Trajectory(lowered.arch, lowered.contract, "derivation", lowered.plain)
    for report in lowered.functions:
        ways = []
        for number, result in enumerate(report.regions):
            if result.graph.size > MOST_NODES:
                found.missing.append(f"{report.name}, region {number + 1}: {result.graph.size} nodes are too many")
                continue
            made = _chosen_way(number, result, pricer, lowered.contract)
            lost = [n for n in _roots(result) if n not in made.now]
            found.missing += [f"{report.name}, {n}: the plain lowering was taken, without a search" for n in lost]
            ways.append(made)
        walker = Walker(found, source, source.function(report.name), ways, pricer, samples)
        walker.walk()
        walker.drop(_unread(source.function(report.name), report, pricer))
    return found


def _chosen_way(number: int, result: RegionResult, pricer: Pricer, contract: str) -> Way:
    """Return a region on the way to what its solution chooses."""
    made, graph = way(number, result, pricer.target, contract, False), result.graph
    made.written = written_totals(result.region, [*graph.leaf_class, *graph.op_class], graph, pricer)
    picked = made.prover.forms.picked(result.solution.picks)
    classes = {op.result.name: c for op, c in zip(result.region.ops, graph.op_class)}
    made.goal = {name: picked[classes[name]] for name in made.now}
    return made


def _roots(result: RegionResult) -> list[str]:
    return [op.result.name for op in result.region.ops if op.result.name in result.region.roots]


def _unread(f: Function, report: FunctionReport, pricer: Pricer) -> Totals:
    """Return what the reads cost that the lowered function does without, since nothing needs them any more."""
    inside = {op.result.name for r in report.regions for op in r.region.ops}
    there = {r.name for i in report.instructions for r in i.op.results}
    saved = Totals()
    for s in walk(f.body):
        if isinstance(s, Op) and s.results and s.results[0].name not in there | inside:
            price = pricer.written(s)
            saved += Totals() if isinstance(price, Refusal) else Totals(price.instructions, price.cycles)
    return saved


class Walker:
    """Leads one function's regions to their goals and notes every step.

    ``run``: the form of the function that the interpreter runs, where it returns more than the function does.
    """

    def __init__(
        self, found: Trajectory, program: Program, f: Function, ways: list[Way], pricer: Pricer, samples: int,
        run: Function | None = None,
    ) -> None:  # fmt: skip
        self.found = found
        self.function = f
        self.ways = ways
        self.pricer = pricer
        self.base = run or f
        self.checker = Rechecker(program, self.base, samples) if samples else None
        self.describer = Describer(f, pricer.target)
        self.whole = next((s.totals for s in reversed(found.steps) if s.totals is not None), found.start)
        self.region = Totals()
        self.prices: dict[int, FormPrices] = {}

    def walk(self) -> None:
        """Append the steps of the function to the trajectory."""
        for w in self.ways:
            self.region = w.written
            self._share(w)
            self._lead_all(w)

    def drop(self, saved: Totals) -> None:
        """Note the reads that the function does without, once all results are led to their forms."""
        if saved.instructions:
            self.whole = _moved(self.whole, saved, Totals())
            self.found.steps.append(
                TrajectoryStep(
                    self.function.name, "", None, None, False, "loads", "only those that something reads", self.whole,
                    check=self._checked(), label=UNREAD,
                )
            )  # fmt: skip

    def price(self, w: Way) -> Totals | None:
        """Return what a region costs as it stands now, ``None`` where that is not legal."""
        if w.number not in self.prices:
            self.prices[w.number] = FormPrices(w.result, self.pricer)
        return self.prices[w.number].of({name: w.now[name] for name in w.counted or w.now})

    def _totals(self, w: Way) -> Totals | None:
        """Return the whole program's totals as the region stands now, ``None`` where it is not legal."""
        now = self.price(w)
        if now is None:
            return None
        self.whole = _moved(self.whole, self.region, now)
        self.region = now
        return self.whole

    def _share(self, w: Way) -> None:
        """Note what the forms save by themselves: equal operations are one, and what nothing reads is gone."""
        before = self.whole
        totals = self._totals(w)
        if totals is not None and totals.rounded() != before.rounded():
            self._note(w, SHARED, "", "equal operations", "one operation, and none that nothing reads", totals)

    def _note(self, w: Way, label: str, name: str, before: str, after: str, totals: Totals | None = None) -> None:
        """Append a step that no rule makes."""
        span = self.describer.span(name)
        price = totals or self._totals(w)
        self.found.steps.append(
            TrajectoryStep(
                self.function.name, name, span, None, False, before, after, price, check=self._checked(),
                region=w.number, label=label,
            )
        )  # fmt: skip

    def _lead_all(self, w: Way) -> None:
        """Lead every result to its form; a step acts in all results that are still on their way."""
        written = dict(w.now)
        names = [*w.goal, *(name for name in w.now if name not in w.goal)]
        for i, name in enumerate(w.goal):
            if not self._tried(w, name, names[i:]) and not self._stages(w, name, written[name]):
                self.found.missing.append(f"{self.function.name}, {name}: {_LOST}")

    def _stages(self, w: Way, name: str, written: Form) -> bool:
        """Try with more freedom each time, from the start: steps for other results may stand in this one's way."""
        for both_ways, detours, nested in ((w.prover.both_ways, False, 10), (True, False, 2), (True, True, 6)):
            w.prover.loosen(both_ways, detours, nested)
            if self._tried(w, name, [name], written):
                return True
        return False

    def _tried(self, w: Way, name: str, where: list[str], start: Form | None = None) -> bool:
        """Lead one result to its goal; where that fails, nothing has happened."""
        now, count, whole, region = w.now, len(self.found.steps), self.whole, self.region
        outputs = list(self.checker.before) if self.checker else []
        if start is not None:
            self._reset(w, name, start)
        if self._lead(w, name, where):
            return True
        w.now, self.whole, self.region = now, whole, region
        del self.found.steps[count:]
        if self.checker:
            self.checker.before = outputs
        return False

    def _reset(self, w: Way, name: str, written: Form) -> None:
        if w.now[name] is not written:
            w.now = {**w.now, name: written}
            self._note(w, AGAIN, name, "the form that other results needed", "as written")

    def _lead(self, w: Way, name: str, where: list[str]) -> bool:
        """Lead one result to its goal: the node at every place, from the result down to its operands."""
        places: list[tuple[int, ...]] = [()]
        while places:
            place = places.pop()
            form, goal = _at(w.now[name], place), _at(w.goal[name], place)
            if form is goal:
                continue
            found = self._reached(w, form, goal)
            if found is None:
                return False
            self._carry_out(w, form, found, name, where)
            places += [(*place, i) for i in reversed(range(len(goal.children)))]
        return True

    def _reached(self, w: Way, form: Form, goal: Form) -> tuple[Form, Proof] | None:
        try:
            return w.prover.reach(form, goal.node)
        except (Tired, RecursionError):
            return None

    def _carry_out(self, w: Way, form: Form, found: tuple[Form, Proof], name: str, where: list[str]) -> None:
        """Do the steps of a proof inside one form, wherever that form stands in the results named."""
        forms = w.prover.forms
        end, proof = found
        for rewrite in proof:
            after = end if rewrite is proof[-1] else forms.replaced(form, rewrite.before, rewrite.after)
            done: dict[int, Form] = {id(form): after}
            if after is not form:
                w.now = {**w.now, **{n: forms.replaced(w.now[n], form, after, done) for n in where}}
                self.found.steps.append(self._step(w, rewrite, name))
            form = after

    def _step(self, w: Way, r: Rewrite, name: str) -> TrajectoryStep:
        d, result = self.describer, w.result
        near, far = (r.rule.rhs, r.rule.lhs) if r.backwards else (r.rule.lhs, r.rule.rhs)
        read = r.before.c in result.graph.leaf_class
        named = d.written(result, r.before.node) or ("" if read else d.value(result, r.before.c)) or name
        return TrajectoryStep(
            self.function.name, named, d.span(named), r.rule, r.backwards, d.text(result, r.before, near),
            d.text(result, r.after, far), self._totals(w), d.error(result, r), d.facts(result, r),
            self._kept_promise(w, r, self._checked()), r.before.c, w.number,
        )  # fmt: skip

    def _kept_promise(self, w: Way, r: Rewrite, check: Check | None) -> Check | None:
        """Test a rule's bound where its operand and both sides can be seen: outside every loop and branch."""
        if check is None or check.failure or r.rule.bound is None or self.checker is None:
            return check
        composite = r.after if r.backwards else r.before
        seen = {"bound.x": composite.children[0], "bound.left": r.before, "bound.right": r.after}
        f = self.base
        for name, form in seen.items():
            f = returning(f, w.result.region, Value(name, w.result.graph.types[form.c]))
        if len(f.results) < len(self.base.results) + len(seen):
            return check
        states = [(x.result.region, {**x.now, **seen} if x is w else x.now) for x in self.ways]
        return self.checker.promised(with_states(f, states), r.rule.bound, check)

    def _checked(self) -> Check | None:
        if self.checker is None:
            return None
        return self.checker.check(with_states(self.base, [(w.result.region, w.now) for w in self.ways]))


def _at(form: Form, place: tuple[int, ...]) -> Form:
    for i in place:
        form = form.children[i]
    return form


def _moved(whole: Totals, before: Totals, after: Totals) -> Totals:
    """Return the whole program's totals after one region's have changed."""
    return Totals(
        whole.instructions + after.instructions - before.instructions,
        whole.cycles + after.cycles - before.cycles,
        whole.inexact + after.inexact - before.inexact,
    ).rounded()
