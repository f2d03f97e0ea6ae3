"""Steps run again: two forms of a function, one rewrite apart, on the same hostile inputs in the interpreter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir.compare import compare, largest_ulp, output_dtypes
from ..ir.convert import decode
from ..ir.diagnostics import TileggError
from ..ir.dtypes import DType
from ..ir.inputs import Drawer, assumed_domains, dtypes_of
from ..ir.interp import execute
from ..ir.program import Function, Program
from ..rules.rule import Bound

_MAX_STEPS = 1_000_000
#: Distances of that many ulp say nothing: results near zero, of other sign, or NaN.
_FAR = 2.0**16


@dataclass(frozen=True)
class Check:
    """What running one step again has shown, against the form before it.

    ``runs``: inputs; ``elements``: output elements compared; ``differing``: those that are not equal bit for bit (NaN
    payload aside), ``max_ulp`` apart at most (integers: in units), finite ones ``max_abs``. ``failure``: why the form
    could not be run, "" if it could. ``promise``: what was found where a rule promises a bound, ``broken`` if it does
    not hold.
    """

    runs: int = 0
    elements: int = 0
    differing: int = 0
    max_ulp: float = 0.0
    max_abs: float = 0.0
    failure: str = ""
    promise: str = ""
    broken: bool = False

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
        return self.promise or f"{self.differing} elements differ, {self._apart} ({where})"

    @property
    def _apart(self) -> str:
        """Say how far apart differing elements are."""
        if not self.max_ulp:
            return "in the sign of zero only"
        if self.max_ulp < _FAR:
            return f"by up to {self.max_ulp:g} ulp"
        return f"by up to {self.max_abs:.3g}, NaN and infinities aside"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        ulp = self.max_ulp if np.isfinite(self.max_ulp) else "inf"
        return {
            "runs": self.runs, "elements": self.elements, "differing": self.differing, "max_ulp": ulp,
            "max_abs": self.max_abs, "failure": self.failure,
            "promise": self.promise,
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
        worst = apart = 0.0
        for i, inputs in enumerate(self.inputs):
            try:
                outputs, _ = execute(self._with(f), f, inputs, {}, _MAX_STEPS)
            except TileggError as problem:
                return Check(failure=problem.diagnostics[0].message)
            elements += sum(int(np.size(v)) for v in outputs.values())
            differing += sum(self._differing(name, self.before[i], outputs) for name in self.before[i])
            worst = max(worst, largest_ulp(self.before[i], outputs, self.outputs))
            apart = max(apart, self._apart(self.before[i], outputs))
            self.before[i] = outputs
        return Check(len(self.inputs), elements, differing, worst, apart)

    def _apart(self, before: dict[str, Any], after: dict[str, Any]) -> float:
        """Return the largest difference of two finite elements."""
        worst = 0.0
        for name, dtype in self.outputs.items():
            if name in before and name in after and before[name].shape == after[name].shape:
                if not dtype.is_float:
                    # Neighbours among 64-bit integers can be one number in float64.
                    worst = max(worst, largest_ulp(before, after, {name: dtype}))
                    continue
                gap = _gap(_real(before[name], dtype), _real(after[name], dtype))
                worst = max(worst, float(np.max(gap, initial=0.0, where=np.isfinite(gap))))
        return worst

    def promised(self, f: Function, bound: Bound, check: Check) -> Check:
        """Add to a check whether a rule's bound holds.

        ``f`` returns three more values than the function: the operand, the left side and the right side.
        """
        dtype = output_dtypes(f)[f"return_{len(f.results) - 1}"]
        worst = [0.0] * len(bound.errors)
        counted = 0
        for inputs in self.inputs:
            outputs, _ = execute(self._with(f), f, inputs, {}, _MAX_STEPS)
            x, left, right = (_real(v, dtype) for v in list(outputs.values())[-3:])
            gap = np.where(np.isnan(left) & np.isnan(right), 0.0, _gap(left, right))
            for i, (limit, _) in enumerate(bound.errors):
                inside = np.abs(x) <= limit
                counted += int(inside.sum()) if limit == bound.limit else 0
                worst[i] = max(worst[i], float(np.max(np.nan_to_num(gap, nan=np.inf), initial=0.0, where=inside)))
        broken = any(w > error for w, (_, error) in zip(worst, bound.errors))
        found = ", ".join(f"at most {w:.3g} for |x| <= {limit:.6g}" for w, (limit, _) in zip(worst, bound.errors))
        words = "the promise is BROKEN" if broken else "the promise holds"
        return replace(check, promise=f"{words}: {found} ({counted} elements)", broken=broken)

    def _differing(self, name: str, before: dict[str, Any], after: dict[str, Any]) -> int:
        found = compare({name: before[name]}, {name: after.get(name)}, self.outputs, "exact")
        return (found.count or 1) if found is not None else 0


def _real(values: Any, dtype: DType) -> Any:
    return decode(np.asarray(values, dtype.storage), dtype).astype(np.float64)


def _gap(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.abs(a - b)
