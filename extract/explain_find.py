"""Finding what :mod:`.explain` says: derivations, facts, alternatives, and why operations are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..ir import valueset
from ..ir.program import Function, Op, Value, flat_operands, walk
from ..ir.types import TileType
from ..rewrite.graph import LEAF, Node
from ..rules.rule import RULES, Rule
from .chains import chain, conversion, emitted_values, is_cast, road_behind
from .derive import Deriver, Step
from .describe import Describer, FactUsed
from .explain import Dropped, Explained, ExplainedFunction, op_text
from .kbest import alternatives, class_name
from .lowered import FunctionReport, Instruction, Lowered, RegionResult
from .trajectory import TrajectoryStep

_BY_NUMBER: dict[int, Rule] = {r.number: r for r in RULES.values()}


def explain_function(
    lowered: Lowered, report: FunctionReport, most: int, steps: Iterable[TrajectoryStep] = ()
) -> ExplainedFunction:
    """Explain one function, with up to ``most`` alternatives an instruction; ``steps`` are its derivation's."""
    return _Finder(lowered, report, most, steps).find()


class _Finder:
    def __init__(
        self, lowered: Lowered, report: FunctionReport, most: int, steps: Iterable[TrajectoryStep]
    ) -> None:
        self.derived: dict[tuple[int, int], list[TrajectoryStep]] = {}
        for s in steps:
            if s.function == report.name and s.rule is not None:
                self.derived.setdefault((s.region, s.eclass), []).append(s)
        self.lowered = lowered
        self.report = report
        self.most = most
        self.function: Function = (lowered.expanded or lowered.source).function(report.name)
        self.describer = Describer(self.function, lowered.target)
        self.derivers = [Deriver(r, lowered.target, lowered.contract) for r in report.regions]
        self.users: dict[int, dict[int, list[int]]] = {}
        self.emitted = {i.op.results[0].name for i in report.instructions if i.op.results}
        self.place = {
            op.results[0].name: (n, i) for n, r in enumerate(report.regions) for i, op in enumerate(r.region.ops)
        }

    def find(self) -> ExplainedFunction:
        found = ExplainedFunction(self.report.name)
        found.instructions = [self.instruction(i) for i in self.report.instructions]
        found.dropped = list(self.dropped())
        return found

    # -- what is there -------------------------------------------------------------------------------------

    def instruction(self, i: Instruction) -> Explained:
        name = i.op.results[0].name if i.op.results else ""
        text, at = op_text(i.op), (i.op.name, name, i.span, i.cycles)
        if i.region < 0:
            return Explained(text, *at)
        result = self.report.regions[i.region]
        node = _picked(result, i.eclass)
        if i.eclass not in result.graph.op_class:
            return Explained(text, *at, rules=self.origin(node), part_of=self.helped(result, i.eclass))
        rules, facts = self.behind(result, i, node)
        return Explained(
            text, *at, rules, "", self.proof(result, i.eclass, node) if rules else "", facts,
            tuple(alternatives(self.lowered, self.report, i, self.most)) if self.most else (),
            self.rate(result, i.eclass, node),
        )  # fmt: skip

    def behind(self, result: RegionResult, i: Instruction, node: Node) -> tuple[tuple[Rule, ...], tuple[FactUsed, ...]]:
        """Return the rules that lead to an instruction and the facts they needed.

        They are those of the derivation; where that has none, they are looked up among the nodes of the class.
        """
        derived = self.derived.get((i.region, i.eclass))
        if node.origin >= 0 and result.graph.op_class[node.origin] == i.eclass:
            return (), ()
        if derived:
            used = [*(f for s in derived for f in s.facts), *self.facts(result, i.eclass, node, (), True)]
            return _rules(derived), tuple(dict.fromkeys(used))
        steps = self.derivation(i.region, i.eclass, node)
        rules = tuple(s.rule for s in steps) if steps is not None else self.origin(node)
        return rules, tuple(self.facts(result, i.eclass, node, steps or (), bool(steps)))

    def origin(self, node: Node) -> tuple[Rule, ...]:
        """Return the rule noted on a node."""
        return (_BY_NUMBER[node.rule],) if node.origin < 0 and node.rule in _BY_NUMBER else ()

    def helped(self, result: RegionResult, c: int) -> str:
        """Return the name of the first written value that a class helps to compute."""
        if id(result) not in self.users:
            users = self.users[id(result)] = dict[int, list[int]]()
            for k in result.solution.picks:
                for child in set(_picked(result, k).children):
                    users.setdefault(child, []).append(k)
        users, front, seen = self.users[id(result)], {c}, {c}
        first = {k: i for i, k in reversed(list(enumerate(result.graph.op_class)))}
        while front:
            front = {k for f in front for k in users.get(f, ())} - seen
            seen |= front
            named = [k for k in front if k in first]
            if named:
                return class_name(result, min(named, key=first.__getitem__))
        return ""

    def derivation(self, region: int, c: int, goal: Node) -> tuple[Step, ...] | None:
        """Return the derivation from the operation that the class's value is named after."""
        result, deriver = self.report.regions[region], self.derivers[region]
        members = [i for i, k in enumerate(result.graph.op_class) if k == c]
        if goal.origin in members:
            return ()
        named = [i for i in members if result.region.ops[i].result.name in self.emitted]
        for i in named or members:
            start = deriver.written(i)
            steps = deriver.path(c, start, goal) if start is not None else None
            if steps is not None:
                return steps
        return None

    def proof(self, result: RegionResult, c: int, node: Node) -> str:
        node = conversion(result.graph, result.solution.picks, c, node)
        if not is_cast(node) or node.approx or self.lowered.target is None:
            return ""
        road = road_behind(result, c, node, self.lowered.target)
        return road.proof if road else ""

    def rate(self, result: RegionResult, c: int, node: Node) -> float:
        """Return the measured share of elements that an inexact cast gives differently."""
        if not is_cast(node) or not node.approx or self.lowered.target is None or not self.most:
            return 0.0
        road = road_behind(result, c, node, self.lowered.target)
        return road.error.rate if road else 0.0

    def facts(
        self, result: RegionResult, c: int, node: Node, steps: tuple[Step, ...], made: bool
    ) -> Iterator[FactUsed]:
        """Yield the value sets that the derivation needed, and those narrower than the dtype that a chain reads."""
        wanted = [k for s in steps for relation, k, _ in s.facts if relation in ("fits", "finite")]
        node = conversion(result.graph, result.solution.picks, c, node)
        if is_cast(node) and made:
            wanted.append(chain(result.graph, result.solution.picks, c, node, emitted_values(result)).source)
        for k in dict.fromkeys(wanted):
            values, t = result.graph.values.get(k), result.graph.types[k]
            if values is not None and isinstance(t, TileType) and values != valueset.of_dtype(t.dtype):
                yield self.fact(result, k, values)

    def fact(self, result: RegionResult, c: int, values: valueset.ValueSet) -> FactUsed:
        return self.describer.fact(class_name(result, c), values)

    # -- what is gone --------------------------------------------------------------------------------------

    def dropped(self) -> Iterator[Dropped]:
        yield from self.written_out()
        for s in walk(self.function.body):
            if isinstance(s, Op) and s.results and s.results[0].name not in self.emitted:
                yield self.gone(s)

    def written_out(self) -> Iterator[Dropped]:
        """Yield the structured operations that were written out as others before the search."""
        source = {f.name: f for f in self.lowered.source.functions}.get(self.report.name)
        if source is None or source == self.function:
            return
        there = [s for s in walk(self.function.body) if isinstance(s, Op)]
        names = {r.name for s in there for r in s.results}
        for s in walk(source.body):
            if isinstance(s, Op) and not names.issuperset(r.name for r in s.results):
                parts = [o.name.removeprefix("tile.") for o in there if o.span is not None and o.span == s.span]
                what = f"written out as {', '.join(dict.fromkeys(parts))}" if parts else "written out as others"
                yield Dropped(op_text(s), s.name, s.results[0].name, s.span, f"{what} before the search")

    def gone(self, op: Op) -> Dropped:
        name = op.results[0].name
        at = (op_text(op), op.name, name, op.span)
        if name not in self.place:
            return Dropped(*at, "nothing reads it any more")
        region, i = self.place[name]
        result = self.report.regions[region]
        c = result.graph.op_class[i]
        if c in result.solution.picks:
            return self.merged(at, region, i, c)
        readers = [r for r in self.readers(name) if r.results]
        if not readers:
            return Dropped(*at, "nothing reads it")
        seen = {name}
        behind = {s.results[0].name: (s, rules) for r in readers for s, rules in self.survivors(r, seen)}
        if not behind:
            users = ", ".join(f"{r.results[0].name}{_in_line(r)}" for r in readers)
            return Dropped(*at, f"read only by {users}, gone too")
        unique = _unique(rule for _, rules in behind.values() for rule in rules)
        users = ", ".join(self.survivor_text(s) for s, _ in behind.values())
        by = f" by {', '.join(r.name for r in unique)}" if unique else ""
        return Dropped(*at, f"not needed: {users} {'do' if len(behind) > 1 else 'does'} without it{by}", unique)

    def survivor_text(self, op: Op) -> str:
        """Return the name of a value that is still there, and that of the value which has taken its place."""
        name = op.results[0].name
        region, i = self.place[name]
        now = self.kept_as(region, self.report.regions[region].graph.op_class[i])
        if name in self.emitted or now == name:
            return f"{name}{_in_line(op)}"
        return f"{name} ({f'line {op.span.line}, ' if op.span else ''}now {now})"

    def kept_as(self, region: int, c: int) -> str:
        """Return the name under which the value of a class is still there."""
        result = self.report.regions[region]
        goal = _picked(result, c)
        if goal.kind == LEAF:
            return result.region.leaves[goal.key[0]].name
        names = (op.result.name for op, other in zip(result.region.ops, result.graph.op_class) if other == c)
        return next((n for n in names if n in self.emitted), class_name(result, c))

    def merged(self, at: tuple[str, str, str, object], region: int, i: int, c: int) -> Dropped:
        """The value is still there under another name."""
        goal = _picked(self.report.regions[region], c)
        start = self.derivers[region].written(i)
        steps = self.derivers[region].path(c, start, goal) if start is not None else None
        rules = _unique(s.rule for s in steps or ())
        how = f" by {', '.join(r.name for r in rules)}" if rules else ", computed once"
        return Dropped(*at, f"the same value as {self.kept_as(region, c)}{how}", rules)  # type: ignore[arg-type]

    def survivors(self, op: Op, seen: set[str]) -> Iterator[tuple[Op, list[Rule]]]:
        """Yield the values still there that an operand's reader helped to compute, with the rules that made each do
        without it: the reader, or else what reads that in turn.
        """
        name = op.results[0].name
        if name in seen or name not in self.place:
            return
        seen.add(name)
        region, i = self.place[name]
        result = self.report.regions[region]
        c = result.graph.op_class[i]
        if c in result.solution.picks:
            yield op, self.rules_behind(region, i, c)
            return
        for reader in self.readers(name):
            if reader.results:
                yield from self.survivors(reader, seen)

    def rules_behind(self, region: int, i: int, c: int) -> list[Rule]:
        """Return the rules that lead from operation ``i`` of a region to what was chosen for its class ``c``."""
        derived = _rules(self.derived.get((region, c), ()))
        if not derived:
            start = self.derivers[region].written(i)
            goal = _picked(self.report.regions[region], c)
            steps = self.derivers[region].path(c, start, goal) if start is not None else None
            derived = _unique(s.rule for s in steps) if steps is not None else self.origin(goal)
        # Roads only spell out a conversion; what made the operand unnecessary came before.
        return [r for r in derived if r.phase == "normalise"] or list(derived)

    def readers(self, name: str) -> list[Op]:
        if not hasattr(self, "_readers"):
            self._readers: dict[str, list[Op]] = {}
            for s in walk(self.function.body):
                if isinstance(s, Op):
                    for o in flat_operands(s.operands):
                        if isinstance(o, Value):
                            self._readers.setdefault(o.name, []).append(s)
        return self._readers.get(name, [])


def _rules(steps: Iterable[TrajectoryStep]) -> tuple[Rule, ...]:
    return _unique(s.rule for s in steps if s.rule is not None)


def _unique(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple({r.name: r for r in rules}.values())


def _picked(result: RegionResult, c: int) -> Node:
    return result.graph.classes[c][result.solution.picks[c]]


def _in_line(op: Op) -> str:
    return f" (line {op.span.line})" if op.span else ""
