"""A compiled function's frame: where names and constants live, how operands are read from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from .diagnostics import Span, error
from .interp_eval import scalar_rounder
from .program import Block, Const, Function, Op, Operand, Value, Verbatim
from .simt_threads import SimtState
from .tilearray import TileArray
from .types import ScalarType, TensorType, TileType, Type

Frame = list[Any]
#: Is given an operation that was just executed, and a function that tells what a value of its function holds.
Probe = Callable[[Op, Callable[[Value], Any]], None]


class Machine:
    """The state of one run: statements left, call depth, which block of how many and which rank of how many runs.

    With ``watch``, every ``assume`` is checked, and ``broken`` tells whether one did not hold. ``probe`` is shown every
    operation that gives something other than a scalar, once its result is there.
    """

    __slots__ = (
        "block", "blocks", "broken", "budget", "depth", "functions", "left", "probe", "rank", "ranks", "simt",
        "subblock", "watch",
    )  # fmt: skip

    def __init__(self, functions: Mapping[str, Code], budget: int) -> None:
        self.functions = functions
        self.budget = self.left = budget
        self.depth = 0
        self.block, self.blocks, self.subblock = 0, 1, 0
        self.rank, self.ranks = 0, 1
        self.watch = self.broken = False
        self.probe: Probe | None = None
        self.simt: SimtState | None = None


class Yielded:
    """Values handed on by a loop body or a branch."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values


class Returned:
    """Results of the function."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values


class Jumped:
    """A ``break`` or ``continue``, with new carried values when it comes right after a yield."""

    __slots__ = ("leaves", "values")

    def __init__(self, leaves: bool, values: tuple[Any, ...] | None = None) -> None:
        self.leaves, self.values = leaves, values


_UNSET = object()

Step = Callable[[Machine, Frame], Any]
Fetch = Callable[[Frame], tuple[Any, ...]]


class Code:
    """A compiled function: where its names live in a frame, and what it does."""

    def __init__(self, function: Function, compile_block: Callable[[Code, Block], Step]) -> None:
        self.function = function
        self.compile_block = compile_block
        self.slots: dict[str, int] = {}
        self.template: Frame = []
        self.params = [self.slot(p.value.name) for p in function.params]
        self.rounders = [_param_rounder(p.value.type) for p in function.params]
        for p in function.params:
            for dim in _names_in(p.value.type):
                self.slot(dim)
        self.dim_names = [n for n in self.slots if n not in {p.value.name for p in function.params}]
        self.body: Step | None = None

    def slot(self, name: str) -> int:
        """Return the place of a name in a frame."""
        place = self.slots.get(name)
        return self._new_slot(name) if place is None else place

    def _new_slot(self, name: str) -> int:
        place = self.slots[name] = len(self.template)
        self.template.append(_UNSET)
        return place

    def constant(self, value: Any) -> int:
        """Return a place that holds a value from the start."""
        self.template.append(value)
        return len(self.template) - 1

    def invoke(self, machine: Machine, values: list[Any], names: Mapping[str, int]) -> tuple[Any, ...]:
        """Run the function on parameter values and return its results."""
        if self.body is None:
            self.body = self.compile_block(self, self.function.body)
        signal = self.body(machine, self.frame(values, names))
        return signal.values if isinstance(signal, Returned) else ()

    def frame(self, values: list[Any], names: Mapping[str, int]) -> Frame:
        """Return a new frame with the parameters and the dimensions that are known; the body must be compiled."""
        frame = self.template.copy()
        for place, value, rounder in zip(self.params, values, self.rounders):
            frame[place] = value if rounder is None else rounder(value)
        for name in self.dim_names:
            if name in names:
                frame[self.slots[name]] = names[name]
        return frame


def _param_rounder(t: Type) -> Callable[[Any], Any] | None:
    return scalar_rounder(t.dtype) if isinstance(t, ScalarType) else None


def _names_in(t: Type) -> list[str]:
    if not isinstance(t, TensorType | TileType):
        return []
    dims = t.shape + (t.valid_shape if isinstance(t, TileType) else ())
    return [d for d in dims if isinstance(d, str) and d.isidentifier()]


class FrameNames(Mapping[str, int]):
    """The integers of a frame by name, for dimension expressions."""

    __slots__ = ("frame", "slots")

    def __init__(self, slots: dict[str, int], frame: Frame) -> None:
        self.slots, self.frame = slots, frame

    def get(self, name: str, default: Any = None) -> Any:
        place = self.slots.get(name)
        value = None if place is None else self.frame[place]
        return value if isinstance(value, int) else default

    def __getitem__(self, name: str) -> int:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return int(value)

    def __iter__(self) -> Any:
        return iter(self.slots)

    def __len__(self) -> int:
        return len(self.slots)


# -- operands ----------------------------------------------------------------------------------------------


def _place(code: Code, operand: Operand, span: Span | None) -> int | Callable[[Frame], Any]:
    """Return the slot an operand is read from, or a function of the frame."""
    match operand:
        case Value(name=name):
            return code.slot(name)
        case Const(value=value, dtype=dtype):
            return code.constant(scalar_rounder(dtype)(value))
        case None:
            return code.constant(None)
        case tuple():
            if all(isinstance(o, Const) for o in operand):
                values = [scalar_rounder(o.dtype)(o.value) for o in operand if isinstance(o, Const)]
                return code.constant(tuple(values))
            return fetch(code, operand, span)
        case Verbatim(text=text):
            return _unreadable(text, span)


def _unreadable(text: str, span: Span | None) -> Callable[[Frame], Any]:
    def refuse(frame: Frame) -> Any:
        raise error("TG032", f"cannot evaluate {text[:60]!r}", span)

    return refuse


def fetch(code: Code, operands: tuple[Operand, ...], span: Span | None) -> Fetch:
    """Return a function that reads all operands from a frame."""
    places = [_place(code, o, span) for o in operands]
    slots = [p for p in places if isinstance(p, int)]
    if len(slots) < len(places):
        getters = [itemgetter(p) if isinstance(p, int) else p for p in places]
        return lambda frame: tuple([g(frame) for g in getters])
    if len(slots) > 1:
        return itemgetter(*slots)
    if slots:
        only = slots[0]
        return lambda frame: (frame[only],)
    return lambda frame: ()


def fetch_own(code: Code, operands: tuple[Operand, ...], span: Span | None) -> Fetch:
    """Return a function that reads operands to be carried or handed on: a tile is copied.

    What a loop carries and what a branch hands on are tiles of their own, as they have buffers of their own in
    assembly: writing into one changes no other.
    """
    values = fetch(code, operands, span)
    if not any(isinstance(o, Value) and isinstance(o.type, TileType) for o in operands):
        return values
    return lambda frame: tuple([v.copy() if isinstance(v, TileArray) else v for v in values(frame)])


def fetch_one(code: Code, operand: Operand, span: Span | None) -> Callable[[Frame], Any]:
    place = _place(code, operand, span)
    return itemgetter(place) if isinstance(place, int) else place


def assign(code: Code, results: tuple[Value, ...]) -> Callable[[Frame, tuple[Any, ...]], None]:
    """Return a function that stores several values under result names."""
    places = [code.slot(v.name) for v in results]

    def store(frame: Frame, values: tuple[Any, ...]) -> None:
        if len(values) != len(places):
            raise error("TG014", f"{len(places)} values are due, {len(values)} were yielded")
        for place, value in zip(places, values):
            frame[place] = value

    return store
