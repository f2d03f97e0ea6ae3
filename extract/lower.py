"""Lowering a program: regions through the e-graph, the cheapest legal choice, and the program rebuilt from it.

The lowered program is in the same language: every cast in it is native on the target, every operation legal.
It is never costlier, under the objective, than the input's own lowering (each operation as written, each
cast by its shortest chain).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..ir.collection import no_collection
from ..ir.diagnostics import Diagnostic, TileggError, error
from ..ir.domains import SIMT, contexts, domain_problems
from ..ir.program import (
    Block,
    Carried,
    For,
    Function,
    If,
    Op,
    Operand,
    Program,
    Return,
    Scope,
    Statement,
    Value,
    While,
    Yield,
    defined,
    require_program,
    walk,
)
from ..ir.simt import section_grid
from ..ir.simt_expand import expand_collectives
from ..rewrite.engine import Budget
from ..rewrite.expand import expand
from ..rewrite.graph import Graph
from ..rewrite.host_signals import with_signals
from ..rewrite.knowledge import Knowledge
from ..rewrite.markers import with_markers
from ..rewrite.region import Region, names_in_types, regions, uses
from ..rewrite.saturate import Plan, saturate, value_sets
from ..rewrite.storage import SharedTile, own_tiles, with_copy
from ..rewrite.unread import without_unread
from ..rules.target import Target, load_target
from .baseline import Plain, plain
from .dag import Solution, problem, solve
from .dead import all_ops, without_dead
from .fitting import Attempt, fitted
from .footprint import require_room
from .ilp import solve_exact
from .lowered import FunctionReport, Instruction, Lowered, RegionResult, Totals
from .memo import SHARED, Memo, Solved, region_key
from .price import COMPATS, OBJECTIVES, Compat, Level, Objective, Refusal, Scalars, pricer_for
from .rebuild import Builder, recipe
from .shared import require_own
from .weights import chosen_totals, weights

CONTRACTS = ("exact", "faithful", "contracted")


@dataclass(frozen=True)
class Options:
    """How to lower: see :func:`lower`."""

    objective: Objective = "cycles"
    contract: str = "faithful"
    exact: bool = False
    time_limit: float = 1.0
    budget: Budget = field(default_factory=Budget)
    after: Callable[[str, Any], None] | None = None
    memo: Memo | None = SHARED
    level: Level | None = None
    compat: Compat = "canonical"


def lower(
    program: Program,
    arch: str | None,
    *,
    objective: str = "cycles",
    contract: str = "faithful",
    exact: bool = False,
    time_limit: float = 1.0,
    node_limit: int = 200_000,
    after: Callable[[str, Any], None] | None = None,
    memo: Memo | None = SHARED,
    compat: Compat = "canonical",
) -> Lowered:
    """Return the cheapest legal form of a program on a target.

    ``arch``: target name or path of a target file; ``None`` leaves casts alone. ``objective``: cycles,
    instructions or accuracy. ``contract``: faithful (a cast may take a legal chain that rounds twice or in another
    mode, with a remark), exact, or contracted (fewer roundings than written as well: multiply-adds, quotients).
    ``exact``: prove the optimum with the integer solver, up to ``time_limit`` seconds a
    region. ``after(name, thing)`` is called after each pass. ``memo``: solved regions to reuse (``None``: none).
    ``compat``: in SIMT code, rewrite the forms kept for hand-written code (canonical), or keep them (keep).
    Raises :class:`TileggError` (TG020-TG022, TG040, and TG055-TG057 for SIMT code where it cannot run).
    """
    require_program(program, "lower")
    if objective not in OBJECTIVES:
        raise error("TG040", f"unknown objective {objective!r}", hint=f"one of {', '.join(OBJECTIVES)}")
    if contract not in CONTRACTS:
        raise error("TG040", f"unknown contract {contract!r}", hint=f"one of {', '.join(CONTRACTS)}")
    budget = Budget(nodes=node_limit)
    if compat not in COMPATS:
        raise error("TG040", f"unknown compatibility {compat!r}", hint=f"one of {', '.join(COMPATS)}")
    if memo is not None and not isinstance(memo, Memo):
        hint = "None goes without; left out, the regions this process has solved are used again"
        raise error("TG040", f"memo is a Memo or None, not {memo!r:.40}", hint=hint)
    options = Options(objective, contract, exact, time_limit, budget, after, memo, None, compat)
    target = load_target(arch) if arch else None
    with no_collection():
        return _Lowering(program, target, options).run()


def lower_for(program: Program, target: Target, contract: str) -> Lowered:
    """Return :func:`lower`'s result for a target at hand, one that no file describes; nothing is remembered."""
    with no_collection():
        return _Lowering(program, target, Options(contract=contract, memo=None)).run()


class _Lowering:
    def __init__(self, program: Program, target: Target | None, options: Options) -> None:
        self.program = program
        self.target = target
        self.options = options
        self.timings: dict[str, float] = {}
        self.remarks: list[Diagnostic] = []
        self.simt: set[str] = set()

    def run(self) -> Lowered:
        functions, reports, plain_totals = [], [], Totals()
        astray = domain_problems(self.program)
        if astray:
            raise TileggError(*astray)
        expanded = expand_collectives(with_signals(self.program))
        expanded = without_unread(with_markers(expand(expanded, self.target, self.remarks)))
        self.simt = {name for name, where in contexts(expanded).items() if SIMT in where}
        if self.options.after and expanded is not self.program:
            self.options.after("expand", expanded)
        for f in expanded.functions:
            made = fitted(partial(self._attempt, f), self.target)
            functions.append(made.function)
            reports.append(made.report)
            plain_totals += made.plain
            self.remarks += made.remarks
        result = replace(expanded, functions=tuple(functions))
        if self.options.after:
            self.options.after("extract", result)
        emitted = [i for r in reports for i in r.instructions]
        totals = Totals(
            sum(i.count for i in emitted), sum(i.cycles for i in emitted), sum(i.inexact for i in emitted)
        ).rounded()
        regions = [r for report in reports for r in report.regions]
        cost = sum(r.solution.cost for r in regions)
        bound = sum(r.solution.bound for r in regions)
        gap = (cost - bound) / cost if cost else 0.0
        name = self.target.name if self.target else "none"
        return Lowered(
            result, self.program, name, self.options.objective, self.options.contract,
            reports, totals, plain_totals.rounded(), gap, self.remarks, self.timings, self.target,
            expanded,
        )  # fmt: skip

    def _attempt(self, f: Function, written: frozenset[int]) -> Attempt:
        copied: set[str] = set()
        while True:
            try:
                return _FunctionLowering(self, f, written, frozenset(copied)).run()
            except SharedTile as found:
                f, name = with_copy(f, found.name)
                copied.add(name)

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        try:
            return work()
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start


class _FunctionLowering:
    """Lowers one function: statements in order, each region's chosen operations at their old places.

    ``written``: numbers of regions that keep their plain lowering, where that is legal. ``copied``: values that
    nothing but the copy behind them reads, so that they may share their storage.
    """

    def __init__(
        self, parent: _Lowering, function: Function, written: frozenset[int] = frozenset(),
        copied: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.parent = parent
        self.function = function
        self.written, self.copied = written, copied
        self.remarks: list[Diagnostic] = []
        self._at_level(parent.options.level or ("llvm" if function.name in parent.simt else "arith"))
        self.report = FunctionReport(function.name)
        self.plain = Totals()
        self.fixed = names_in_types(function)
        self.knowledge = Knowledge(function)
        self.changed = self.knowledge.ops.changed
        self.alone = own_tiles(function, self.changed)
        self.replaced: dict[str, Operand] = {}
        self.owner: dict[str, tuple[Builder, int]] = {}
        self._taken: set[str] = set()

    def run(self) -> Attempt:
        body = self.block(self.function.body)
        body = without_dead(body, self.fixed)
        kept = {id(s) for s in all_ops(body)}
        self.report.instructions = [i for i in self.report.instructions if id(i.op) in kept]
        require_room(self.report.instructions, self.parent.target)
        return Attempt(replace(self.function, body=body), self.report, self.plain, self.remarks)

    def _at_level(self, level: Level) -> None:
        """Write scalars at a level from here on."""
        options = self.parent.options
        self.scalars = Scalars(level, options.compat)
        self.pricer = pricer_for(self.parent.target, options.contract == "exact", self.scalars)

    def block(self, block: Block, carried: Sequence[Carried] = ()) -> Block:
        builders = [self._builder(region) for region in regions(block, self.fixed, self.alone, carried)]
        late = _late_leaves(block, builders)
        place = {p: (b, i) for b in builders for i, p in enumerate(b.region.positions)}
        out: list[Statement] = []
        for position, s in enumerate(block.statements):
            if position in place:
                builder, i = place[position]
                builder.reach(i, out)
            else:
                for name in uses(s) if builders else ():
                    self._demand(name, out)
                out.append(self._kept(s))
            for r in defined(s) if late else ():
                for waiting, bit in late.pop(r.name, ()):
                    waiting.late &= ~bit
        return Block(tuple(out))

    def _builder(self, region: Region) -> Builder:
        number = len(self.report.regions)
        solved = (self._solve_written(region) if number in self.written else None) or self._solve(region)
        require_own(region, solved.graph, solved.solution, self.changed, self.copied)
        self.report.regions.append(
            RegionResult(solved.graph, solved.problem, solved.solution, region, solved.fallback, self.scalars)
        )
        self.plain += solved.plain
        builder = Builder(
            region, solved.recipe, number, self.replaced, self.sub, self.taken, self.report.instructions
        )
        self.owner.update((op.results[0].name, (builder, i)) for i, op in enumerate(region.ops))
        return builder

    def _demand(self, name: str, out: list[Statement]) -> None:
        if name in self.owner and name not in self.replaced:
            builder, i = self.owner[name]
            builder.demand(i, out)

    def taken(self) -> set[str]:
        """Return the names in use, collected when a new one is needed for the first time."""
        if not self._taken:
            self._taken = {p.value.name for p in self.function.params} | set(_all_names(self.function.body))
        return self._taken

    def _solve(self, region: Region) -> Solved:
        parent, options = self.parent, self.parent.options
        if options.memo is None:
            found: Solved | None = self._solve_anew(region)
        else:
            seconds = options.time_limit if options.exact else None
            asked = (parent.target, options.objective, options.contract, seconds, options.budget, self.scalars)
            key, types = parent.timed("memo", lambda: region_key(region, self.knowledge, asked))
            found = options.memo.get(key)
            if found is None:
                found = self._solve_anew(region)
                options.memo.put(key, found, types)
        assert found is not None
        if found.graph.stopped != "saturated":
            span = region.ops[0].span
            self.remarks.append(Diagnostic("TG026", found.graph.stopped, span, severity="remark"))
        if options.exact and not found.solution.proved:
            self.remarks.append(_unproved(found.solution, region, options.time_limit))
        if options.after:
            options.after("saturate", found.graph)
        return found

    def _solve_anew(self, region: Region) -> Solved:
        parent, options = self.parent, self.parent.options
        contracted = options.contract == "contracted"
        plan = Plan(parent.target, options.contract == "exact", options.budget, contracted=contracted)
        graph: Graph = parent.timed("saturate", lambda: saturate(region, self.knowledge, plan))
        return parent.timed("extract", lambda: self._extract(region, graph))  # type: ignore[no-any-return]

    def _extract(self, region: Region, graph: Graph) -> Solved:
        """Choose, compare with the plain lowering, and take that where it is the better one."""
        pricer, options = self.pricer, self.parent.options
        p = problem(weights(graph, pricer, options.objective), graph.roots)
        numbered = enumerate([*graph.leaf_class, *graph.op_class])
        values = {i: graph.values[c] for i, c in numbered if c in graph.values}
        own = plain(region, values, pricer, keys=False)
        bound = None
        if not p.infeasible:
            solution = solve_exact(p, options.time_limit, 4096.0) if options.exact else solve(p)
            rank = chosen_totals(graph, solution, pricer).rank(options.objective)
            if not own.totals.legal or rank <= own.totals.rank(options.objective):
                made = recipe(region, graph, solution, pricer)
                return Solved(graph, p, solution, made, own.totals)
            bound = None if solution.proved else solution.bound
        elif not own.totals.legal:
            raise self._illegal(region, graph, p.infeasible)
        kept = plain(region, values, pricer)
        return self._as_written(region, replace(kept, graph=replace(kept.graph, stopped=graph.stopped)), bound)

    def _solve_written(self, region: Region) -> Solved | None:
        """Return a region's plain lowering, ``None`` where that is not legal."""
        own = plain(region, value_sets(region, self.knowledge), self.pricer)
        return self._as_written(region, own) if own.totals.legal else None

    def _as_written(self, region: Region, own: Plain, bound: int | None = None) -> Solved:
        """Return a plain lowering; ``bound`` is what a search that stopped early had proved, if one did."""
        pricer = self.pricer
        p = problem(weights(own.graph, pricer, self.parent.options.objective), own.graph.roots)
        solution = solve(p)
        if bound is not None:
            solution = replace(solution, bound=min(solution.cost, bound))
        return Solved(own.graph, p, solution, recipe(region, own.graph, solution, pricer), own.totals, True)

    def _illegal(self, region: Region, graph: Graph, bad: frozenset[int]) -> TileggError:
        from .illegal import explain_illegal

        return TileggError(*explain_illegal(region, graph, bad, self.pricer))

    # -- statements that stay ----------------------------------------------------------------------------

    def sub(self, o: Operand) -> Operand:
        """Return the operand with replaced values substituted."""
        if isinstance(o, tuple):
            return tuple(map(self.sub, o))
        if isinstance(o, Value):
            return self.replaced.get(o.name, o)
        return o

    def _kept(self, s: Statement) -> Statement:
        match s:
            case Op():
                op = Op(s.name, tuple(map(self.sub, s.operands)), s.attrs, s.results, s.span)
                price = self.pricer.written(op)
                if isinstance(price, Refusal):
                    raise error("TG022", f"{s.name}: {price.reason}", s.span, hint=price.hint)
                self.report.instructions.append(Instruction(op, price.cycles, price.instructions, 0, s.span))
                self.plain += Totals(price.instructions, price.cycles)
                return op
            case Yield() | Return():
                return replace(s, operands=tuple(map(self.sub, s.operands)))
            case For():
                start, stop, step = map(self.sub, s.bounds)
                body = self.block(s.body, s.carried)
                return replace(s, bounds=(start, stop, step), carried=self._carried(s.carried), body=body)
            case While():
                carried = self._carried(s.carried)
                head = self.block(s.head)
                return replace(s, carried=carried, head=head, cond=self.sub(s.cond), body=self.block(s.body, s.carried))
            case If():
                return replace(s, cond=self.sub(s.cond), then=self.block(s.then), orelse=self.block(s.orelse))
            case Scope():
                return replace(s, body=self._scope(s))
            case _:
                return s

    def _scope(self, s: Scope) -> Block:
        """Lower a scope's body: that of a SIMT section is SIMT code."""
        outer = self.scalars.level
        if section_grid(s.header) is not None:
            self._at_level("llvm")
        body = self.block(s.body)
        self._at_level(outer)
        return body

    def _carried(self, carried: tuple[Carried, ...]) -> tuple[Carried, ...]:
        return tuple(Carried(c.arg, self.sub(c.init)) for c in carried)


def _unproved(solution: Solution, region: Region, seconds: float) -> Diagnostic:
    """Return the remark about a region whose exact search ended before it proved anything to be the optimum."""
    gap = (solution.cost - solution.bound) / solution.cost
    message = f"the exact search stopped at its limit of {seconds:g} s, within {gap:.2%} of the optimum"
    hint = "give it more time with --time-limit"
    return Diagnostic("TG026", message, region.ops[0].span, hint=hint, severity="remark")


def _late_leaves(block: Block, builders: list[Builder]) -> dict[str, list[tuple[Builder, int]]]:
    """Mark the leaves that the block defines after their region begins; return who waits for which name."""
    if not any(b.region.leaves for b in builders):
        return {}
    defined_at = {r.name: i for i, s in enumerate(block.statements) for r in defined(s)}
    waiting: dict[str, list[tuple[Builder, int]]] = {}
    for b in builders:
        for i, leaf in enumerate(b.region.leaves):
            if defined_at.get(leaf.name, -1) > b.region.positions[0]:
                b.late |= 1 << i
                waiting.setdefault(leaf.name, []).append((b, 1 << i))
    return waiting


def _all_names(block: Block) -> Iterator[str]:
    """Yield the names that statements define, block arguments included."""
    for s in walk(block):
        yield from (r.name for r in defined(s))
        if isinstance(s, For):
            yield s.var.name
        if isinstance(s, For | While):
            yield from (c.arg.name for c in s.carried)
