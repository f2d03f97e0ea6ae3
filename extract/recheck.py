"""Steps run again: two forms of a function, one rewrite apart, on the same hostile inputs in the interpreter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir.compare import compare, largest_ulp, output_dtypes
from ..ir.diagnostics import TileggError
from ..ir.inputs import Drawer, assumed_domains, dtypes_of
from ..ir.interp import execute
from ..ir.program import Function, Program

_MAX_STEPS = 1_000_000


@dataclass(frozen=True)
class Check:
    """What running one step again has shown, against the form before it.

    ``runs``: inputs; ``elements``: output elements compared; ``differing``: those that are not equal bit for bit (NaN
    payload aside), ``max_ulp`` apart at most. ``failure``: why the form could not be run, "" if it could.
    """

    runs: int = 0
    elements: int = 0
    differing: int = 0
    max_ulp: float = 0.0
    failure: str = ""

    @property
    def equal(self) -> bool:
        """True when the form was run and nothing differed."""
        return not self.failure and self.runs > 0 and not self.differing

    def __str__(self) -> str:
        if self.failure:
            return f"not run: {self.failure}"
        where = f"{self.runs} inputs, {self.elements} output elements"
        if not self.differing:
            return f"no difference ({where})"
        return f"{self.differing} elements differ, by up to {self.max_ulp:g} ulp ({where})"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        ulp = self.max_ulp if np.isfinite(self.max_ulp) else "inf"
        return {
            "runs": self.runs, "elements": self.elements, "differing": self.differing, "max_ulp": ulp,
            "failure": self.failure,
        }  # fmt: skip


class Rechecker:
    """Runs the forms of one function in turn, each compared with the one before."""

    def __init__(self, program: Program, f: Function, samples: int, seed: int = 0) -> None:
        self.program = program
        self.outputs = output_dtypes(f)
        self.inputs: list[dict[str, Any]] = []
        self.before: list[dict[str, Any]] = []
        self.failure = ""
        try:
            self._start(f, samples, seed)
        except TileggError as problem:
            self.failure = problem.diagnostics[0].message

    def _start(self, f: Function, samples: int, seed: int) -> None:
        drawer = Drawer(f, dtypes_of(f), assumed_domains(f), {})
        for turn in range(samples):
            inputs = drawer.draw(np.random.default_rng([seed, turn]), turn)
            outputs, holds = execute(self._with(f), f, inputs, {}, _MAX_STEPS, watch=True)
            if holds:
                self.inputs.append(inputs)
                self.before.append(outputs)
        if not self.inputs:
            self.failure = "no drawn input keeps the program's promises"

    def _with(self, f: Function) -> Program:
        """Return the program with a form of the function in its place."""
        others = (f if g.name == f.name else g for g in self.program.functions)
        return replace(self.program, functions=tuple(others))

    def check(self, f: Function) -> Check:
        """Run the next form of the function and compare it with the last one."""
        if self.failure:
            return Check(failure=self.failure)
        elements = differing = 0
        worst = 0.0
        for i, inputs in enumerate(self.inputs):
            try:
                outputs, _ = execute(self._with(f), f, inputs, {}, _MAX_STEPS)
            except TileggError as problem:
                return Check(failure=problem.diagnostics[0].message)
            elements += sum(int(np.size(v)) for v in outputs.values())
            differing += sum(self._differing(name, self.before[i], outputs) for name in self.before[i])
            worst = max(worst, largest_ulp(self.before[i], outputs, self.outputs))
            self.before[i] = outputs
        return Check(len(self.inputs), elements, differing, worst)

    def _differing(self, name: str, before: dict[str, Any], after: dict[str, Any]) -> int:
        found = compare({name: before[name]}, {name: after.get(name)}, self.outputs, "exact")
        return (found.count or 1) if found is not None else 0
