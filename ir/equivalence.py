"""Are two programs the same? Both run on hostile inputs; a difference is shrunk to a small counterexample.

    report = equivalent(parse(original), parse(lowered))
    print(report.render())

This is testing, not proof: a report says how much was tried, and everything is repeatable from the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .codes import bits_of
from .compare import Difference, Element, compare, element, largest_ulp, output_dtypes, parse_contract
from .diagnostics import Diagnostic, TileggError, error
from .dtypes import DType
from .inputs import Domain, Drawer, as_domain, assumed_domains, dtypes_of
from .interp import entry, execute
from .program import Function, Program
from .shrink import Shrinker
from .types import PtrType, ScalarType, TensorType, TileType, Type

__all__ = ["Counterexample", "Domain", "Report", "compare", "equivalent"]

_MAX_STEPS = 1_000_000


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
            apart = f" ({d.ulp:g} ulp apart)" if d.ulp and np.isfinite(d.ulp) else ""
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

    ``runs``: inputs both programs were run on; ``rejected``: drawn inputs that the first program could not
    run on, or that broke one of its ``assume`` promises; ``elements``: output elements compared;
    ``max_ulp``: the largest distance of float outputs seen.
    """

    equal: bool
    contract: str
    seed: int
    runs: int
    rejected: int
    elements: int
    max_ulp: float
    counterexample: Counterexample | None = None

    def render(self) -> str:
        """Return the text form."""
        tried = f"{self.runs} inputs, {self.elements} output elements, seed {self.seed}"
        if self.rejected:
            tried += f"; {self.rejected} more did not fit the first program"
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
            "max_ulp": self.max_ulp if np.isfinite(self.max_ulp) else "inf",
            "counterexample": self.counterexample.to_json() if self.counterexample else None,
        }


def equivalent(
    a: Program | Function,
    b: Program | Function,
    *,
    contract: str = "exact",
    samples: int = 64,
    seed: int = 0,
    facts: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
    function: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Run two programs on ``samples`` drawn inputs and compare every output.

    ``a`` is the reference. ``contract``: ``exact`` (bit for bit, NaN payload aside) or ``ulp:N``. ``facts``:
    per parameter a range ``(lo, hi)``, ``"finite"`` or a :class:`Domain`; ranges that ``a`` promises with
    ``assume`` count too. ``dims`` fixes dynamic dimensions. ``function``: which function, when there are
    several entry points. ``progress`` is called with the inputs tried so far and ``samples``.

    Raises TG030 when the programs' parameters do not match or a fact is no range, TG040 for another contract,
    and the error of ``a`` when it runs on none of the inputs.
    """
    parse_contract(contract)
    session = _Session(a, b, contract, facts or {}, dict(dims or {}), function)
    return session.test(samples, seed, progress)


class _Session:
    """Two functions with matched parameters, and how to run both on one input."""

    def __init__(
        self,
        a: Program | Function,
        b: Program | Function,
        contract: str,
        facts: Mapping[str, Any],
        dims: dict[str, int],
        function: str | None,
    ) -> None:
        self.a, self.b, self.contract, self.dims = a, b, contract, dims
        self.fa = entry(a, function)
        self.fb = entry(b, function if _has_function(b, function) else None)
        self.names_b = match_parameters(self.fa, self.fb)
        self.outputs = output_dtypes(self.fa)
        self.dtypes = {p.value.name: d for p in self.fa.params if (d := _dtype(p.value.type)) is not None}
        self.domains = _domains(self.fa, facts)
        self.drawer = Drawer(self.fa, dtypes_of(a, b), self.domains, dims)

    def test(self, samples: int, seed: int, progress: Callable[[int, int], None] | None) -> Report:
        runs = rejected = elements = 0
        worst = 0.0
        refusal: TileggError | None = None
        for turn in range(samples):
            inputs = self.drawer.draw(np.random.default_rng([seed, turn]), turn)
            try:
                expected, holds = execute(self.a, self.fa, inputs, self.dims, _MAX_STEPS, watch=True)
            except TileggError as problem:
                refusal, holds = problem, False
            if progress is not None:
                progress(turn + 1, samples)
            if not holds:
                rejected += 1
                continue
            runs += 1
            difference, failure, actual = self.check(inputs, expected)
            elements += sum(np.size(v) for v in expected.values())
            worst = max(worst, largest_ulp(expected, actual, self.outputs))
            if difference is not None or failure is not None:
                found = self.minimise(inputs, difference)
                return Report(False, self.contract, seed, runs, rejected, elements, worst, found)
        if not runs:
            if refusal is not None:
                raise refusal
            message = "no drawn input keeps the program's assumptions"
            raise error("TG030", message, hint="give the ranges of its inputs as facts")
        return Report(True, self.contract, seed, runs, rejected, elements, worst)

    def check(
        self, inputs: Mapping[str, Any], expected: Mapping[str, Any]
    ) -> tuple[Difference | None, Diagnostic | None, dict[str, Any]]:
        """Run ``b`` and compare with the outputs of ``a``."""
        given = {self.names_b[k]: v for k, v in inputs.items()}
        try:
            outputs, _ = execute(self.b, self.fb, given, self.dims, _MAX_STEPS)
        except TileggError as problem:
            return None, problem.diagnostics[0], {}
        names_a = {v: k for k, v in self.names_b.items()}
        actual = {names_a.get(k, k): v for k, v in outputs.items()}
        return compare(expected, actual, self.outputs, self.contract), None, actual

    def differs(self, inputs: Mapping[str, Any]) -> tuple[Difference | None, Diagnostic | None]:
        """Return what is wrong on these inputs: nothing when ``a`` cannot run on them."""
        try:
            expected, holds = execute(self.a, self.fa, inputs, self.dims, _MAX_STEPS, watch=True)
        except TileggError:
            return None, None
        return self.check(inputs, expected)[:2] if holds else (None, None)

    def minimise(self, inputs: dict[str, Any], first: Difference | None) -> Counterexample:
        def fails(trial: dict[str, Any]) -> bool:
            difference, failure = self.differs(trial)
            # A difference must stay one, and a failure a failure: else the search ends at another bug.
            return failure is not None if first is None else difference is not None

        shrinker = Shrinker(fails, self.dtypes, self.domains)
        small = shrinker.shrink(inputs, first.index if first else ())
        difference, failure = self.differs(small)
        fill = {k: _most_common(v, self.dtypes[k]) for k, v in small.items() if _is_array(v)}
        places = [p for k, v in small.items() if k in self.dtypes for p in self._places(k, v, fill.get(k))]
        return Counterexample(small, tuple(places), fill, difference, failure)

    def _places(self, name: str, value: Any, fill: Element | None) -> list[Place]:
        dtype = self.dtypes[name]
        if fill is None:
            array = np.asarray([value]).astype(dtype.storage)
            return [Place(name, (), element(array, (0,), dtype))]
        spots = np.argwhere(bits_of(value, dtype) != fill.bits)[:16]
        indices = [tuple(int(i) for i in spot) for spot in spots]
        return [Place(name, index, element(value, index, dtype)) for index in indices]


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.size > 0


def _most_common(array: Any, dtype: DType) -> Element:
    _, first, counts = np.unique(bits_of(array, dtype), return_index=True, return_counts=True)
    flat = array.reshape(-1)
    return element(flat, (int(first[int(np.argmax(counts))]),), dtype)


def _has_function(program: Program | Function, name: str | None) -> bool:
    return isinstance(program, Program) and any(f.name == name for f in program.functions)


def _dtype(t: Type) -> DType | None:
    return t.dtype if isinstance(t, ScalarType | TensorType | TileType | PtrType) and t.dtype.is_numeric else None


def _domains(f: Function, facts: Mapping[str, Any]) -> dict[str, Domain]:
    domains = assumed_domains(f)
    known = {p.value.name for p in f.params}
    for name, fact in facts.items():
        if name not in known:
            raise error("TG030", f"a fact names {name!r}, which is no parameter of {f.name}")
        domain = as_domain(fact, name)
        domains[name] = domains[name].meet(domain) if name in domains else domain
    return domains


def match_parameters(a: Function, b: Function) -> dict[str, str]:
    """Return for each parameter of ``a`` the one of ``b`` that stands for it: by name, else by position.

    Raises TG030 when they cannot be paired with equal dtypes, ranks and directions.
    """
    left, right = [p.value.name for p in a.params], [p.value.name for p in b.params]
    pairs = dict(zip(left, left if set(left) == set(right) and len(left) == len(right) else right))
    if len(left) != len(right):
        raise error("TG030", f"{a.name} has {len(left)} parameters, {b.name} {len(right)}")
    by_name = {p.value.name: p for p in b.params}
    for p in a.params:
        q = by_name[pairs[p.value.name]]
        if p.direction != q.direction or not _alike(p.value.type, q.value.type):
            raise error(
                "TG030",
                f"parameter {p.value.name} is {p.direction} {p.value.type}, "
                f"but {q.value.name} of the other is {q.direction} {q.value.type}",
            )
    return pairs


def _alike(a: Type, b: Type) -> bool:
    if type(a) is not type(b) or _dtype(a) is not _dtype(b) or (isinstance(a, PtrType) and a != b):
        return False
    if isinstance(a, TensorType | TileType) and isinstance(b, TensorType | TileType):
        same = all(x == y or isinstance(x, str) or isinstance(y, str) for x, y in zip(a.shape, b.shape))
        return len(a.shape) == len(b.shape) and same
    return True
