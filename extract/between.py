"""The trajectory between two given programs, functions or values: both in one e-graph, and what merges them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..ir.diagnostics import TileggError, error
from ..ir.equivalence import equivalent, match_parameters
from ..ir.interp import entry
from ..ir.program import Block, Function, Op, Program, inner_blocks, require_program
from ..rewrite.engine import Budget
from ..rewrite.expand import expand
from ..rewrite.graph import OPERATION, Graph, Node
from ..rewrite.host_signals import with_signals
from ..rewrite.knowledge import Knowledge
from ..rewrite.region import Region, names_in_types, regions
from ..rewrite.saturate import Plan, saturate, value_sets
from ..rewrite.storage import changed, own_tiles
from ..rewrite.unread import without_unread
from ..rules.target import Target, load_target
from ..rules.terms import signature
from .baseline import plain
from .dag import Problem, Solution
from .forms import Form, Forms
from .lower import CONTRACTS
from .lowered import RegionResult, Totals
from .price import Pricer, Refusal, pricer_for
from .spell import returning
from .trajectory import Trajectory, Walker, Way, way, written_totals
from .trajectory_pair import MARK, Joined, paired, values_of

#: Inputs on which every step is run again.
SAMPLES = 8


@dataclass(frozen=True)
class _Asked:
    target: Target
    contract: str
    nodes: int
    samples: int

    @property
    def pricer(self) -> Pricer:
        return pricer_for(self.target, self.contract == "exact")

    def graph(self, region: Region, knowledge: Knowledge) -> RegionResult:
        """Return a region with its saturated e-graph and no choice made."""
        exact, contracted = self.contract == "exact", self.contract == "contracted"
        plan = Plan(self.target, exact, Budget(nodes=self.nodes), contracted=contracted)
        return RegionResult(saturate(region, knowledge, plan), Problem({}, ()), Solution({}, 0, 0), region)


def _asked(arch: str, contract: str, node_limit: int, samples: int) -> _Asked:
    if contract not in CONTRACTS:
        raise error("TG040", f"unknown contract {contract!r}", hint=f"one of {', '.join(CONTRACTS)}")
    return _Asked(load_target(arch), contract, node_limit, samples)


def trajectory(
    a: Program,
    b: Program,
    arch: str,
    *,
    contract: str = "faithful",
    function: str | None = None,
    other: str | None = None,
    samples: int = SAMPLES,
    node_limit: int = 200_000,
) -> Trajectory:
    """Return the steps that lead from a function of ``a`` to one of ``b``.

    Both must have the same parameters, loads, stores, loops and branches (TG030); the pure operations between may
    differ. ``function``, ``other``: which functions, where a program has several. ``samples``: inputs on which the
    interpreter runs every step again. Where the e-graph, within ``node_limit``, does not make the two equal, the
    result says so and what the interpreter finds.
    """
    for program in (a, b):
        require_program(program, "trajectory")
    asked = _asked(arch, contract, node_limit, samples)
    first, second = _expanded(a, asked.target), _expanded(b, asked.target)
    fa, fb = entry(first, function), entry(second, other)
    pairing = paired(fa, fb, match_parameters(fa, fb))
    title = f"{fa.name} → {fb.name}"
    found = Trajectory(asked.target.name, contract, title, _whole(fa, asked.pricer))
    ways = [_way(i, j, pairing.knowledge, asked, found) for i, j in enumerate(pairing.joined) if j.first or j.pairs]
    walker = Walker(found, first, fa, ways, asked.pricer, samples)
    walker.walk()
    if not found.missing:
        walker.drop(_sum(asked.pricer.written(op) for op in pairing.unread))
    if found.missing:
        found.missing.append(_tested(a, b, fa, fb))
    return found


def between_values(
    program: Program,
    first: str,
    second: str,
    arch: str,
    *,
    contract: str = "faithful",
    function: str | None = None,
    samples: int = SAMPLES,
    node_limit: int = 200_000,
) -> Trajectory:
    """Return the steps that lead from one value of a function to another; costs are those of the value alone.

    Raises TG003 where the function has no such values, or not both in one run of pure operations.
    """
    asked = _asked(arch, contract, node_limit, samples)
    expanded = _expanded(program, asked.target)
    f = entry(expanded, function)
    region = _region_of(f, first, second)
    values = {v.name: v for v in (*region.leaves, *(op.result for op in region.ops))}
    made_here = {op.result.name for op in region.ops}
    rooted = replace(region, roots=region.roots | ({first, second} & made_here))
    result = asked.graph(rooted, Knowledge(f))
    made = way(0, result, asked.target, asked.contract, False)
    made.counted = (first,)
    written = made.prover.forms.written()
    goal = written[second]
    made.now = {name: form for name, form in made.now.items() if name in region.roots} | {first: written[first]}
    found = Trajectory(asked.target.name, contract, f"{first} → {second}", Totals())
    walker = Walker(found, expanded, f, [made], asked.pricer, samples, returning(f, region, values[first]))
    found.start = walker.whole = made.written = walker.price(made) or Totals(legal=False)
    if made.now[first].c == goal.c:
        made.goal = {first: goal}
    else:
        found.missing.append(_unequal(f.name, first, second, result.graph))
    walker.walk()
    return found


# -- programs ----------------------------------------------------------------------------------------------


def _expanded(program: Program, target: Target) -> Program:
    return without_unread(expand(with_signals(program), target, []))


def _way(number: int, joined: Joined, knowledge: Knowledge, asked: _Asked, found: Trajectory) -> Way:
    """Return two joined regions with the first one's values as the present state and the second one's as the goal."""
    region = joined.region()
    result = asked.graph(region, knowledge)
    graph = result.graph
    made = way(number, result, asked.target, asked.contract, False)
    forms = made.prover.forms
    written = forms.written()
    made.now = {a.name: written[a.name] for a, _ in joined.pairs}
    first = Region(joined.first, (), region.leaves, frozenset(made.now))
    classes = [*graph.leaf_class, *graph.op_class[: len(joined.first)]]
    made.written = written_totals(first, classes, graph, asked.pricer)
    marks = _Marks(forms)
    for a, b in joined.pairs:
        goal = marks.form(written[a.name].c, written[b.name])
        if goal is None:
            found.missing.append(_unequal("", a.name, b.name.rstrip(MARK), graph))
        else:
            made.goal.setdefault(a.name, goal)
    return made


def _unequal(function: str, a: str, b: str, graph: Graph) -> str:
    where = f"{function}: " if function else ""
    return f"{where}{a} and {b} are not equal in the e-graph ({graph.size} nodes, {graph.stopped})"


def _tested(a: Program, b: Program, fa: Function, fb: Function) -> str:
    """Return what the interpreter says about two programs between which no steps were found."""
    try:
        renamed = replace(b, functions=tuple(replace(f, name=fa.name) if f.name == fb.name else f for f in b.functions))
        report = equivalent(a, renamed, function=fa.name)
    except TileggError as problem:
        return f"the interpreter cannot compare them: {problem.diagnostics[0].message}"
    if report.equal:
        return (
            f"the interpreter finds no difference in {report.runs} inputs: a rule, a fact (tile.assume) or a looser "
            "contract may be missing"
        )
    assert report.counterexample is not None
    return f"the interpreter finds that they differ:\n{report.counterexample.render()}"


def _sum(prices: Iterable[Any]) -> Totals:
    return sum((Totals(p.instructions, p.cycles) for p in prices if not isinstance(p, Refusal)), Totals())


def _whole(f: Function, pricer: Pricer) -> Totals:
    """Return what a function costs as written, by its plain lowering."""
    knowledge, fixed, total = Knowledge(f), names_in_types(f), Totals()
    alone = own_tiles(f, knowledge.ops.changed)
    stack: list[Block] = [f.body]
    while stack:
        block = stack.pop()
        inside: set[int] = set()
        for region in regions(block, fixed, alone):
            inside.update(region.positions)
            total += plain(region, value_sets(region, knowledge), pricer, keys=False).totals
        for i, s in enumerate(block.statements):
            stack += inner_blocks(s)
            price: Any = pricer.written(s) if isinstance(s, Op) and i not in inside else None
            if price is not None and not isinstance(price, Refusal):
                total += Totals(price.instructions, price.cycles)
    return total.rounded()


def _region_of(f: Function, first: str, second: str) -> Region:
    names = {op.result.name for op in values_of(f)}
    for name in (first, second):
        if name not in names:
            raise error("TG003", f"no operation of {f.name} gives a value called {name!r:.80}",
                        hint="name values of one function, or give a file")  # fmt: skip
    fixed, alone, stack = names_in_types(f), own_tiles(f, changed(f)), [f.body]
    while stack:
        block = stack.pop()
        for region in regions(block, fixed, alone):
            if {first, second} <= {v.name for v in (*region.leaves, *(op.result for op in region.ops))}:
                return region
        stack += [inner for s in block.statements for inner in inner_blocks(s)]
    raise error(
        "TG003", f"{first} and {second} are not in one run of pure operations",
        hint="loads, stores and loops end a run",
    )  # fmt: skip


class _Marks:
    """Finds a written form in a class that is equal to it but for the marks of inexact steps.

    The value of a recipe, and of a chain that rounds twice, is another one than the value that it stands for; the
    e-graph keeps the two apart by a mark. A program that was lowered by such a step has no marks.
    """

    def __init__(self, forms: Forms) -> None:
        self.forms = forms
        self.found: dict[tuple[int, int], Form | None] = {}

    def form(self, c: int, plain_form: Form) -> Form | None:
        """Return the form of class ``c`` that is the given one with marks, ``None`` if there is none."""
        if plain_form.c == c:
            return plain_form
        key = (c, id(plain_form))
        if key not in self.found:
            self.found[key] = None  # while it is looked for: a class inside itself is no answer
            nodes = self.forms.graph.classes[c]
            self.found[key] = next((m for n in nodes if (m := self._marked(c, n, plain_form)) is not None), None)
        return self.found[key]

    def _marked(self, c: int, node: Node, other: Form) -> Form | None:
        if node.kind != OPERATION or node.decl is None:
            return None
        if node.decl.name == "tile.approx":
            inner = self.form(node.children[0], other)
            return None if inner is None else self.forms.make(c, node, [inner])
        if other.node.decl is not node.decl or _unmarked(node) != _unmarked(other.node):
            return None
        children: list[Form] = []
        for k, child in zip(node.children, other.children):
            found = self.form(k, child)
            if found is None:
                return None
            children.append(found)
        return self.forms.make(c, node, children)


def _unmarked(node: Node) -> tuple[object, ...]:
    """Return what an operation is by its codes and attributes, without the mark of an inexact chain.

    The code of what a term does not spell out is interned by operation, so rules that carry it over to another
    operation make a node with another code and the same attributes.
    """
    assert node.decl is not None
    if node.decl.name == "tile.cast":
        return node.key[:5]
    codes = tuple(v for name, v in zip(signature(node.decl), node.key) if name != "rest")
    lists = tuple(o for o in node.operands if isinstance(o, tuple))
    return (*codes, sorted((k, repr(v)) for k, v in node.attrs.items()), lists)
