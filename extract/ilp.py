"""Exact extraction: the same problem as an integer program, solved by HiGHS with a time limit.

One binary per choice; a root has exactly one choice; a class that a chosen node needs has one too, by one
aggregated row per (user class, needed class). Level variables forbid cycles, inside strongly connected
components only. The solver starts cold: warm starts of HiGHS 1.16 reported non-optimal costs as optimal.
"""

from __future__ import annotations

import math
from typing import Any

from ..ir.diagnostics import error
from .dag import Choice, Problem, Selection, Solution, cost_of, greedy, improve, reduce, solve


def solve_exact(p: Problem, time_limit: float = 1.0, scale: float = 1.0) -> Solution:
    """Return the optimum, or the best choice found within ``time_limit`` seconds with a proved bound.

    Where the solver proves nothing in that time, what :func:`.dag.solve` finds and proves counts too.
    ``scale`` divides the integer costs before they reach the solver's doubles.
    """
    small = reduce(p)
    start = improve(small, greedy(small))[0] if small.open else {c: o[0] for c, o in small.classes.items()}
    priced = cost_of(start, small.roots)
    if priced is not None and not small.open:
        return _solution(priced[1], priced[0], priced[0])
    if priced is None:
        raise error("TG026", "the reduced choice is cyclic")
    optimal, bound, chosen = _Model(small, scale).run(time_limit)
    found = cost_of(chosen, small.roots)
    best = found if found is not None and found[0] < priced[0] else priced
    if optimal and found is not None:
        return _solution(best[1], best[0], best[0])
    return _stopped(p, _solution(best[1], best[0], min(best[0], bound)))


def _stopped(p: Problem, best: Solution) -> Solution:
    """Return the best of an unproved choice and the one found without the solver, with the better bound of both."""
    other = solve(p)
    picked = other if other.cost < best.cost else best
    return Solution(picked.picks, picked.cost, min(picked.cost, max(best.bound, other.bound)))


def _solution(used: Selection, cost: int, bound: int) -> Solution:
    picks = dict(pick for choice in used.values() for pick in choice.picks)
    return Solution(picks, cost, bound)


class _Model:
    """The integer program of a reduced problem."""

    def __init__(self, p: Problem, scale: float) -> None:
        # The public wrapper prints a banner to stdout when it is made (1.16), before it can be told not to.
        from highspy._core import _Highs

        self._p = p
        self._scale = scale
        self._highs: Any = _Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        self._highs.setOptionValue("random_seed", 0)
        self._highs.setOptionValue("mip_rel_gap", 0.0)
        self._columns: list[tuple[int, Choice]] = []
        self._of_class: dict[int, list[int]] = {}
        self._build()

    def _build(self) -> None:
        h = self._highs
        for c, options in self._p.classes.items():
            for o in options:
                self._of_class.setdefault(c, []).append(len(self._columns))
                self._columns.append((c, o))
                h.addVar(0.0, 1.0)
                h.changeColCost(len(self._columns) - 1, o.cost / self._scale)
        import highspy

        for i in range(len(self._columns)):
            h.changeColIntegrality(i, highspy.HighsVarType.kInteger)
        roots = set(self._p.roots)
        for c, columns in self._of_class.items():
            low = 1.0 if c in roots else 0.0
            h.addRow(low, 1.0, len(columns), columns, [1.0] * len(columns))
        self._link()
        self._forbid_cycles()

    def _link(self) -> None:
        for columns in self._of_class.values():
            needs: dict[int, list[int]] = {}
            for i in columns:
                for k in self._columns[i][1].children:
                    needs.setdefault(k, []).append(i)
            for k, users in needs.items():
                below = self._of_class[k]
                index = [*users, *below]
                self._highs.addRow(
                    -float("inf"), 0.0, len(index), index, [1.0] * len(users) + [-1.0] * len(below)
                )

    def _forbid_cycles(self) -> None:
        h = self._highs
        for component in _components(self._p):
            levels: dict[int, int] = {}
            size = float(len(component))
            for c in component:
                h.addVar(0.0, size)
                levels[c] = h.getNumCol() - 1
            for c in component:
                for i in self._of_class[c]:
                    for k in self._columns[i][1].children:
                        if k in levels:
                            # level(c) >= level(k) + 1 when the node is chosen
                            h.addRow(
                                1.0 - (size + 1), float("inf"), 3,
                                [levels[c], levels[k], i], [1.0, -1.0, -(size + 1)],
                            )  # fmt: skip

    def run(self, time_limit: float) -> tuple[bool, int, Selection]:
        """Return whether it is the optimum, a proved lower bound in integer cost units, and what is selected.

        After a time limit or an error the values may be no solution: then classes lack a choice, or all of them do.
        """
        import highspy

        h = self._highs
        h.setOptionValue("time_limit", time_limit)
        h.run()
        optimal = h.getModelStatus() == highspy.HighsModelStatus.kOptimal
        bound = h.getInfo().mip_dual_bound * self._scale
        chosen = {c: o for (c, o), v in zip(self._columns, h.getSolution().col_value) if v > 0.5}
        # No cost is negative; before the first relaxation is solved the bound is an infinity.
        return optimal, int(bound) if math.isfinite(bound) and bound > 0 else 0, chosen


def _components(p: Problem) -> list[list[int]]:
    """Strongly connected components with more than one class (Tarjan, iterative)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    out: list[list[int]] = []
    for start in p.classes:
        if start in index:
            continue
        work: list[tuple[int, list[int]]] = [(start, _needs(p, start))]
        while work:
            c, todo = work[-1]
            if c not in index:
                index[c] = low[c] = len(index)
                stack.append(c)
                on_stack.add(c)
            if todo:
                k = todo.pop()
                if k not in index:
                    work.append((k, _needs(p, k)))
                elif k in on_stack:
                    low[c] = min(low[c], index[k])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[c])
            if low[c] == index[c]:
                component = []
                while True:
                    k = stack.pop()
                    on_stack.discard(k)
                    component.append(k)
                    if k == c:
                        break
                if len(component) > 1:
                    out.append(sorted(component))
    return out


def _needs(p: Problem, c: int) -> list[int]:
    return list(dict.fromkeys(k for o in p.classes[c] for k in o.children))
