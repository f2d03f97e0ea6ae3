"""Are two programs the same? Both run on hostile inputs; a difference is shrunk to a small counterexample.

    report = equivalent(parse(original), parse(lowered))
    print(report.render())

Drawn inputs are testing, not proof: a report says how much was tried, and everything is repeatable from the seed.
The parts (:class:`Setup`, :class:`Session`, :class:`Tally`) also serve tests of every input and tests that many
processes share (``tilegg.testing``): a tally of some turns depends on nothing but the setup and the turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .codes import bits_of
from .compare import Difference, Element, compare, element, largest_ulp, output_dtypes, parse_contract
from .diagnostics import Diagnostic, TileggError, error
from .dtypes import DType
from .equivalence_report import Counterexample, Place, Report
from .inputs import Domain, Drawer, as_domain, assumed_domains, dtypes_of
from .interp import entry, execute
from .program import Function, Op, Program, require_program, walk
from .shrink import Shrinker
from .sizes import require_sizes
from .types import PtrType, ScalarType, TensorType, TileType, Type

__all__ = ["Case", "Counterexample", "Domain", "Report", "Session", "Setup", "Tally", "compare", "equivalent"]

_MAX_STEPS = 1_000_000


class Case(Protocol):
    """Inputs for one run of both programs."""

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs by parameter name."""

    def split(self) -> Sequence[Case]:
        """Return smaller cases for when the first program refuses these inputs; none when there are no smaller."""


class Source(Protocol):
    """Where inputs come from: turns, each of which gives the same case however often it is asked for."""

    @property
    def count(self) -> int:
        """How many turns there are."""

    def case(self, session: Session, turn: int) -> Case:
        """Return the case of a turn."""


@dataclass(frozen=True)
class Drawn:
    """One drawn input."""

    inputs: dict[str, Any]

    def split(self) -> Sequence[Case]:
        """Drawn inputs that do not fit are just left out."""
        return ()


@dataclass(frozen=True)
class Samples:
    """``count`` drawn inputs of a seed; raises ``ValueError`` for none, ``TypeError`` for what is no integer."""

    count: int
    seed: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, int):
            raise TypeError(f"the number of inputs must be an integer, got {self.count!r}")
        if self.count <= 0:
            raise ValueError(f"the number of inputs must be positive, got {self.count}")

    def case(self, session: Session, turn: int) -> Case:
        """Draw the inputs of a turn."""
        return Drawn(session.drawer.draw(np.random.default_rng([self.seed, turn]), turn))


@dataclass(frozen=True)
class Setup:
    """What is compared and how; see :func:`equivalent`.

    ``promises``: a program with the parameters of ``a`` whose promises the inputs keep too, for an ``a`` made from it
    without them.
    """

    a: Program | Function
    b: Program | Function
    contract: str = "exact"
    facts: Mapping[str, Any] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    function: str | None = None
    promises: Program | None = None


@dataclass
class Tally:
    """What some turns found; tallies of consecutive turns are added up in their order.

    ``differing``: the first case on which the programs differ, after which nothing was tried.
    """

    runs: int = 0
    rejected: int = 0
    elements: int = 0
    max_ulp: float = 0.0
    refusal: TileggError | None = None
    differing: Case | None = None

    def add(self, other: Tally) -> None:
        """Add what the turns after these found."""
        self.runs += other.runs
        self.rejected += other.rejected
        self.elements += other.elements
        self.max_ulp = max(self.max_ulp, other.max_ulp)
        self.refusal = self.refusal or other.refusal
        self.differing = self.differing or other.differing


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

    ``a`` is the reference. ``contract``: ``exact`` (bit for bit) or ``ulp:N``. ``facts``:
    per parameter a range ``(lo, hi)``, ``"finite"`` or a :class:`Domain`; ranges that ``a`` promises with
    ``assume`` count too. ``dims`` fixes dynamic dimensions. ``function``: which function, when there are
    several entry points. ``progress`` is called with the inputs tried so far and ``samples``.

    Raises TG030 when the programs' parameters do not match, a fact is no range or ``dims`` names no size of either,
    TG040 for another contract, the error of ``a`` when it runs on none of the inputs, and ``ValueError`` for no inputs.
    """
    for program in (a, b):
        require_program(program, "equivalent", Function)
    session = Session(Setup(a, b, contract, facts or {}, dims or {}, function))
    source = Samples(samples, seed)
    parts = (session.tally(source, turn, turn + 1) for turn in range(samples))
    return session.report(total(parts, samples, progress), seed)


def total(
    parts: Iterable[Tally], count: int, progress: Callable[[int, int], None] | None = None, step: int = 1
) -> Tally:
    """Add up the tallies of ``step`` turns each, in order, until one holds a difference."""
    whole, done = Tally(), 0
    for part in parts:
        whole.add(part)
        done = min(done + step, count)
        if progress is not None:
            progress(done, count)
        if whole.differing is not None:
            break
    return whole


class Session:
    """Two functions with matched parameters, and how to run both on one input."""

    def __init__(self, setup: Setup) -> None:
        parse_contract(setup.contract)
        require_sizes(setup.dims, [p for p in (setup.a, setup.b, setup.promises) if p is not None], "dims")
        self.contract, self.dims = setup.contract, dict(setup.dims)
        self.a, self.b, self.source = setup.a, setup.b, setup.promises
        self.fa = entry(self.a, setup.function)
        self.fb = entry(self.b, setup.function if _has_function(self.b, setup.function) else None)
        self.names_b = match_parameters(self.fa, self.fb)
        self.outputs = output_dtypes(self.fa)
        self.dtypes = {p.value.name: d for p in self.fa.params if (d := _dtype(p.value.type)) is not None}
        self.domains = _domains(self.fa, setup.facts)
        self.promises = _promised(setup.promises, self.fa)
        if self.promises is not None:
            self.domains = _domains(self.promises, self.domains)
        self.drawer = Drawer(self.fa, dtypes_of(self.a, self.b), self.domains, self.dims)

    def tally(self, source: Source, first: int, last: int) -> Tally:
        """Run both programs on the turns ``first`` to ``last`` (exclusive), until they differ."""
        tally = Tally()
        for turn in range(first, last):
            self._try(source.case(self, turn), tally)
            if tally.differing is not None:
                break
        return tally

    def _try(self, case: Case, tally: Tally) -> None:
        expected = self._reference(case.inputs, tally)
        if expected is None:
            parts = case.split()
            tally.rejected += not parts
            for part in parts:
                if tally.differing is None:
                    self._try(part, tally)
            return
        tally.runs += 1
        difference, failure, actual = self.check(case.inputs, expected)
        tally.elements += sum(np.size(v) for v in expected.values())
        tally.max_ulp = max(tally.max_ulp, largest_ulp(expected, actual, self.outputs))
        if difference is not None or failure is not None:
            tally.differing = case

    def _reference(self, inputs: Mapping[str, Any], tally: Tally | None = None) -> dict[str, Any] | None:
        """Return the outputs of ``a``; nothing when it cannot run on these inputs, or a promise of it is broken."""
        try:
            expected, holds = execute(self.a, self.fa, inputs, self.dims, _MAX_STEPS, watch=True)
        except TileggError as problem:
            if tally is not None:
                tally.refusal = problem
            return None
        return expected if holds and self._keeps(inputs) else None

    def _keeps(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether inputs keep the promises of the program that ``a`` was made from, as far as it runs."""
        if self.source is None or self.promises is None:
            return True
        try:
            return execute(self.source, self.promises, inputs, self.dims, _MAX_STEPS, watch=True)[1]
        except TileggError:
            return False

    def report(self, tally: Tally, seed: int = 0, cases: int | None = None) -> Report:
        """Return the report of all turns; a difference is made small. Raises the error of ``a`` if it never ran."""
        numbers = (self.contract, seed, tally.runs, tally.rejected, tally.elements, tally.max_ulp)
        if tally.differing is not None:
            return Report(False, *numbers, self.minimise(tally.differing.inputs), cases)
        if not tally.runs:
            if tally.refusal is not None:
                raise tally.refusal
            message = "no drawn input keeps the program's assumptions"
            raise error("TG030", message, hint="give the ranges of its inputs as facts")
        return Report(True, *numbers, cases=cases)

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
        expected = self._reference(inputs)
        return (None, None) if expected is None else self.check(inputs, expected)[:2]

    def minimise(self, inputs: dict[str, Any]) -> Counterexample:
        """Return small inputs on which the programs still differ."""
        first, _ = self.differs(inputs)

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


def _promised(source: Program | None, f: Function) -> Function | None:
    """Return the function that ``f`` was made from, if its program promises anything."""
    functions = source.functions if source is not None else ()
    if not any(isinstance(s, Op) and s.name == "tile.assume" for g in functions for s in walk(g.body)):
        return None
    return next((g for g in functions if g.name == f.name), None)


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
