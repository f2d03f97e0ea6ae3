"""What lowering is compared with: the fixed lowering of the field, greedy rewriting, and random search.

(a) ``fixed``: ordered passes as compilers run them: every cast by its shortest chain, every composite by its one
    recipe, everything else as written.
(b) ``greedy``: rewriting with the same rules, one change at a time, each of which must pay at once.
(c) ``random``: as many random choices as the greedy search has tried changes, the best of them kept.

The last two search the same e-graphs as lowering does, so that they differ in the search alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tilegg.extract.baseline import plain
from tilegg.extract.dag import problem, solve
from tilegg.extract.lower import Options, _FunctionLowering, _Lowering
from tilegg.extract.lowered import Lowered, Totals
from tilegg.extract.memo import Solved
from tilegg.extract.price import Pricer
from tilegg.extract.rebuild import recipe
from tilegg.extract.weights import weights
from tilegg.ir.program import Program
from tilegg.rewrite.graph import Graph
from tilegg.rewrite.region import Region
from tilegg.rewrite.saturate import value_sets
from tilegg.rules.target import load_target

#: Cost of a choice and the classes it needs; ``None``: illegal.
Choices = list[list[tuple[int, tuple[int, ...]] | None]]
#: Operations whose cycles pass on the transfer engines, which nothing here can change.
TRANSFERS = frozenset({"tile.load", "tile.store"})


@dataclass(frozen=True)
class Cost:
    """A lowered program: instructions, all cycles, and those of the vector unit."""

    program: Program
    instructions: int
    cycles: float
    vector: float


class _FixedFunction(_FunctionLowering):
    def _solve_anew(self, region: Region) -> Solved:
        pricer, objective = self.pricer, self.parent.options.objective
        kept = plain(region, value_sets(region, self.knowledge), pricer)
        p = problem(weights(kept.graph, pricer, objective), kept.graph.roots)
        solution = solve(p)
        return Solved(kept.graph, p, solution, recipe(region, kept.graph, solution, pricer), kept.totals, True)


def fixed(program: Program, arch: str, contract: str = "exact") -> Cost:
    """Lower with the fixed passes."""
    parent = _Lowering(program, load_target(arch), Options(contract=contract, memo=None))
    functions, total, vector = [], Totals(), 0.0
    for f in program.functions:
        made = _FixedFunction(parent, f).run()
        functions.append(made.function)
        total += made.plain
        vector += made.plain.cycles - sum(i.cycles for i in made.report.instructions if i.op.name in TRANSFERS)
    made = replace(program, functions=tuple(functions))
    return Cost(made, total.instructions, round(total.cycles, 6), round(vector, 6))


def cost(lowered: Lowered) -> Cost:
    """Return what a lowered program costs."""
    moved = sum(i.cycles for f in lowered.functions for i in f.instructions if i.op.name in TRANSFERS)
    totals = lowered.totals
    return Cost(lowered.program, totals.instructions, totals.cycles, round(totals.cycles - moved, 6))


# -- searches on the same graphs -----------------------------------------------------------------------------


def searched(lowered: Lowered, pricer: Pricer, seed: int = 0) -> tuple[float, float]:
    """Return the vector cycles that greedy rewriting and random search reach on a lowered program's e-graphs."""
    inside = greedy_sum = random_sum = 0.0
    for f in lowered.functions:
        for r in f.regions:
            inside += sum(_cycles(r.graph, pricer, c, i) for c, i in r.solution.picks.items())
            choices = weights(r.graph, pricer, "cycles")
            start = _start(r.graph, choices)
            picks, tried = _greedy(choices, r.graph.roots, dict(start))
            greedy_sum += _sum(r.graph, pricer, choices, picks)
            picks = _random(choices, r.graph.roots, dict(start), tried, random.Random(seed))
            random_sum += _sum(r.graph, pricer, choices, picks)
    outside = cost(lowered).vector - inside
    return round(outside + greedy_sum, 6), round(outside + random_sum, 6)


def _cycles(graph: Graph, pricer: Pricer, c: int, i: int) -> float:
    return getattr(pricer.node(graph, graph.classes[c][i]), "cycles", 0.0)


def _sum(graph: Graph, pricer: Pricer, choices: Choices, picks: dict[int, int]) -> float:
    used = _used(choices, graph.roots, picks)
    assert used is not None
    return sum(_cycles(graph, pricer, c, picks[c]) for c in used)


def _start(graph: Graph, choices: Choices) -> dict[int, int]:
    """What the program wrote, where it is legal; else the choice of the least tree."""
    least = _trees(choices)
    picks: dict[int, int] = {}
    for c, row in enumerate(choices):
        legal = [i for i, choice in enumerate(row) if choice is not None and all(k in least for k in choice[1])]
        written = [i for i in legal if graph.classes[c][i].origin >= 0]
        if legal:
            picks[c] = (written or sorted(legal, key=lambda i: _tree(row[i], least)))[0]
    if _used(choices, graph.roots, picks) is None:
        picks = {c: min((i for i, x in enumerate(row) if x is not None), key=lambda i: _tree(row[i], least))
                 for c, row in enumerate(choices) if c in least}  # fmt: skip
    return picks


def _trees(choices: Choices) -> dict[int, int]:
    least: dict[int, int] = {}
    while True:
        before = dict(least)
        for c, row in enumerate(choices):
            known = [_tree(x, least) for x in row if x is not None and all(k in least for k in x[1])]
            if known:
                least[c] = min(known)
        if least == before:
            return least


def _tree(choice: tuple[int, tuple[int, ...]] | None, least: dict[int, int]) -> int:
    if choice is None or any(k not in least for k in choice[1]):
        return 1 << 60
    return choice[0] + sum(least[k] for k in choice[1])


def _used(choices: Choices, roots: list[int], picks: dict[int, int]) -> list[int] | None:
    """Return the classes that a choice computes; ``None`` when it has a cycle or lacks something."""
    state: dict[int, bool] = {}
    stack = [(c, False) for c in roots]
    while stack:
        c, done = stack.pop()
        if done:
            state[c] = True
            continue
        if c in state:
            if not state[c]:
                return None
            continue
        choice = choices[c][picks[c]] if c in picks else None
        if choice is None:
            return None
        state[c] = False
        stack.append((c, True))
        stack += [(k, False) for k in choice[1] if not state.get(k, False)]
    return list(state)


def _total(choices: Choices, roots: list[int], picks: dict[int, int]) -> int | None:
    used = _used(choices, roots, picks)
    return None if used is None else sum(choices[c][picks[c]][0] for c in used)  # type: ignore[index]


def _greedy(choices: Choices, roots: list[int], picks: dict[int, int]) -> tuple[dict[int, int], int]:
    """Make the best single change as long as one pays; return the choice and how many were tried."""
    best, tried = _total(choices, roots, picks), 0
    assert best is not None
    while True:
        found: tuple[int, int, int] | None = None
        for c, row in enumerate(choices):
            for i in range(len(row)):
                if row[i] is None or i == picks.get(c):
                    continue
                tried += 1
                total = _total(choices, roots, {**picks, c: i})
                if total is not None and total < (found[0] if found else best):
                    found = (total, c, i)
        if found is None:
            return picks, tried
        best = found[0]
        picks[found[1]] = found[2]


def _random(
    choices: Choices, roots: list[int], picks: dict[int, int], budget: int, rng: random.Random
) -> dict[int, int]:
    best = _total(choices, roots, picks)
    assert best is not None
    legal = {c: [i for i, x in enumerate(row) if x is not None] for c, row in enumerate(choices)}
    for _ in range(budget):
        drawn = {c: rng.choice(found) for c, found in legal.items() if found}
        total = _total(choices, roots, drawn)
        if total is not None and total < best:
            best, picks = total, drawn
    return picks
