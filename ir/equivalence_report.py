"""What an equivalence test found: reports, and counterexamples made small, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .compare import Difference, Element
from .diagnostics import Diagnostic


@dataclass(frozen=True)
class Place:
    """One element of an input that matters: parameter, index (empty for a scalar), value."""

    parameter: str
    index: tuple[int, ...]
    element: Element

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        return f"{self.parameter}{where} = {self.element}"


@dataclass(frozen=True)
class Counterexample:
    """Inputs on which two programs differ, made small.

    ``inputs``: complete inputs by parameter name; ``places`` lists the elements that are not ``fill``, the
    value of all others by parameter. ``failure`` is the second program's error when it gave no outputs.
    """

    inputs: dict[str, Any]
    places: tuple[Place, ...]
    fill: dict[str, Element]
    difference: Difference | None
    failure: Diagnostic | None = None

    def render(self) -> str:
        """Return the text form."""
        lines = ["  inputs:"]
        lines += [f"    {p}" for p in self.places]
        lines += [f"    {'other elements of ' if self._has(k) else ''}{k}: {e}" for k, e in self.fill.items()]
        d = self.difference
        if self.failure is not None:
            lines += ["  the second program fails:", f"    {self.failure.render()}"]
        elif d is not None and d.expected is not None:
            where = f"[{', '.join(map(str, d.index))}]" if d.index else ""
            # Two integers show by themselves how far apart they are.
            shown = d.expected.dtype.is_float and d.ulp and np.isfinite(d.ulp)
            apart = f" ({d.ulp:g} ulp apart)" if shown else ""
            lines += [f"  {d.output}{where}: expected {d.expected}, got {d.actual}{apart}"]
        elif d is not None:
            lines += [f"  {d.output}: {d.reason}"]
        return "\n".join(lines)

    def _has(self, name: str) -> bool:
        return any(p.parameter == name for p in self.places)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object (the arrays are given by their unusual elements and the fill)."""
        d = self.difference
        return {
            "inputs": [
                {"parameter": p.parameter, "index": list(p.index), **p.element.to_json()} for p in self.places
            ],
            "fill": {k: e.to_json() for k, e in self.fill.items()},
            "shapes": {k: list(np.shape(v)) for k, v in self.inputs.items()},
            "output": d.output if d else None,
            "index": list(d.index) if d else None,
            "expected": d.expected.to_json() if d and d.expected else None,
            "actual": d.actual.to_json() if d and d.actual else None,
            "ulp": d.ulp if d and np.isfinite(d.ulp) else None,
            "reason": d.reason if d else None,
            "failure": self.failure.to_json() if self.failure else None,
        }


@dataclass(frozen=True)
class Report:
    """What an equivalence test found.

    ``runs``: inputs both programs were run on; ``rejected``: inputs that the first program could not run on, or
    that broke one of its ``assume`` promises; ``elements``: output elements compared; ``max_ulp``: the largest
    distance of two outputs seen (of integers in units). ``cases``: of an exhaustive test, how many different inputs
    there are in all; ``None`` for drawn inputs.
    """

    equal: bool
    contract: str
    seed: int
    runs: int
    rejected: int
    elements: int
    max_ulp: float
    counterexample: Counterexample | None = None
    cases: int | None = None

    def render(self) -> str:
        """Return the text form."""
        if self.cases is None:
            tried = f"{self.runs} input{_s(self.runs)}, {self.elements} output elements, seed {self.seed}"
            left = "; {} more did not fit the first program"
        else:
            tried = f"every one of {self.cases:,} inputs" if self.equal else f"of {self.cases:,} inputs in all"
            tried += f", {self.elements:,} output elements in {self.runs:,} run{_s(self.runs)}"
            left = "; {:,} of them do not fit the first program"
        if self.rejected:
            tried += left.format(self.rejected)
        if self.equal:
            within = "" if self.contract == "exact" else f", at most {self.max_ulp:g} ulp apart"
            return f"no difference under {self.contract}{within} ({tried})"
        assert self.counterexample is not None
        return f"the programs differ under {self.contract} ({tried})\n{self.counterexample.render()}"

    def to_json(self) -> dict[str, Any]:
        """Return the stable JSON object."""
        return {
            "schema": 1,
            "equal": self.equal,
            "contract": self.contract,
            "seed": self.seed,
            "runs": self.runs,
            "rejected": self.rejected,
            "elements": self.elements,
            "cases": self.cases,
            "max_ulp": self.max_ulp if np.isfinite(self.max_ulp) else "inf",
            "counterexample": self.counterexample.to_json() if self.counterexample else None,
        }


def _s(count: int) -> str:
    return "s" * (count != 1)
