"""The state of reading one function: what each source name stands for now, names taken, statements so far."""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ..diagnostics import Diagnostic, Span, TileggError, error
from ..dtypes import BOOL, FP16, FP32, INDEX, DType
from ..program import Block, Const, Operand, Statement, Value, index
from ..types import Dim, TensorType, Type
from .annotations import TypeReader
from .dataflow import Dataflow
from .module import Module
from .source import did_you_mean, first_span

#: A reading stops after this many errors.
MAX_ERRORS = 20

_SUFFIX = re.compile(r"__ssa_v\d+$|__arg_tmp_v\d+$")


@dataclass(frozen=True)
class Unset:
    """A source name that has no value here, and why."""

    reason: str


@dataclass
class Yielded:
    """What a ``pl.yield_`` at the end of a block hands on."""

    names: tuple[str, ...]
    operands: tuple[Operand, ...]
    types: tuple[Type | None, ...]
    node: ast.stmt


@dataclass
class Frame:
    """A branch or loop body being read."""

    kind: str
    loop: bool
    carried: tuple[str, ...] = ()
    yielded: Yielded | None = None
    #: Names that a yield before a jump gives the loop's results.
    names: tuple[str, ...] = ()
    jumped: bool = False


class TooManyErrors(Exception):
    """Enough errors have been collected."""


@dataclass
class State:
    """Per-function reading state; the classes that derive from it add the readers."""

    module: Module
    types: TypeReader
    flow: Dataflow
    errors: list[Diagnostic]
    names: dict[str, Operand | Unset] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    out: list[Statement] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    #: Where a tensor value comes from: the Out or InOut parameter it is a later version of.
    roots: dict[str, str] = field(default_factory=dict)
    #: What generated names start with: the source name being assigned.
    target: str = "t"

    # -- names -------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """Take a name for a value: the name itself, or its next free version."""
        used = self.used
        if name not in used:
            used[name] = 0
            return name
        return self._version(_SUFFIX.sub("", name), "__ssa_v")

    def temporary(self) -> str:
        """Take a name for a nested expression's value."""
        return self._version(_SUFFIX.sub("", self.target), "__arg_tmp_v")

    def _version(self, base: str, suffix: str) -> str:
        used = self.used
        stem = base + suffix
        n = used.get(stem, 1 if suffix == "__ssa_v" else 0)
        while f"{stem}{n}" in used:
            n += 1
        used[stem] = n + 1
        used[f"{stem}{n}"] = 0
        return f"{stem}{n}"

    def define(self, name: str, t: Type) -> Value:
        """Make a value for a source name and bind the name to it."""
        value = Value(self.unique(name), t)
        self.names[name] = value
        return value

    def lookup(self, node: ast.Name) -> Operand:
        """Return what a name stands for; raises TG003 or TG009."""
        found = self.names.get(node.id, _MISSING)
        if found is _MISSING:
            return self._outer_name(node)
        if found.__class__ is Unset:
            reason = found.reason
            raise error("TG009", f"{node.id} has no value here", self.span(node), reason=reason)
        return found  # type: ignore[return-value]

    def _outer_name(self, node: ast.Name) -> Operand:
        found = self.module.constants.get(node.id)
        if found is not None and not isinstance(found, ast.AST):
            return self.python_value(found, node)
        if node.id in self.module.dynamic:
            return Value(self.module.dynamic[node.id], _INDEX)
        if isinstance(found, ast.AST):
            hint = "nothing is executed: write the value itself at module level"
            raise error("TG006", f"{node.id} is not a literal constant", self.span(node), hint=hint)
        if node.id == "None":
            return None
        known = [*self.names, *self.module.constants]
        hint = did_you_mean(node.id, known) if len(known) < 2000 else ""
        raise error("TG003", f"unknown name {node.id[:80]}", self.span(node), hint=hint)

    def dim_name(self, node: ast.Name) -> Dim:
        """Return the dimension a name in a shape stands for; an undefined one is dynamic, with a warning."""
        found = self.names.get(node.id)
        if isinstance(found, Value):
            return found.name
        if isinstance(found, Const) and type(found.value) is int:
            return found.value
        return outer_dim(self.module, node)

    def renames(self) -> dict[str, str]:
        """Return the source names that stand for values of other names."""
        return {k: v.name for k, v in self.names.items() if v.__class__ is Value and v.name != k}

    # -- literals ----------------------------------------------------------------------------------------

    def python_value(self, value: object, node: ast.AST) -> Operand:
        """Return the operand of a Python literal; raises TG006 or TG011."""
        if isinstance(value, tuple):
            return tuple(self.python_value(v, node) for v in value)
        if isinstance(value, bool | int | float):
            return literal(value, None, self.span(node))
        raise error("TG006", "a number is expected here", self.span(node))

    # -- diagnostics -------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        """Return the place of a node."""
        return self.module.source.span(node)

    def collect(self, problem: TileggError, node: ast.AST) -> None:
        """Note an error and go on; raises :class:`TooManyErrors` when there are enough."""
        self.errors.extend(first_span(problem, self.span(node)).diagnostics)
        if len(self.errors) >= MAX_ERRORS:
            raise TooManyErrors


_MISSING = Unset("")
_INDEX = index(0).type


def outer_dim(module: Module, node: ast.Name) -> Dim:
    """Return the dimension a name stands for outside any function; an unknown one is taken as dynamic."""
    name = node.id
    found = module.constants.get(name)
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    if name in module.dynamic:
        return module.dynamic[name]
    module.remark(
        "TG016",
        f"{name} is not defined and was taken as a dynamic dimension",
        node,
        hint=did_you_mean(name, [*module.constants, *module.dynamic]) or f'declare it: {name} = pl.dynamic("{name}")',
        severity="warning",
        once=name,
    )
    module.dynamic[name] = name
    return name


def literal(value: bool | int | float, dtype: DType | None, span: Span | None) -> Const:
    """Return the literal operand, rounded into its dtype; raises TG011 when it does not fit.

    Without a dtype an int is INDEX, a float FP32, a bool BOOL.
    """
    if dtype is None:
        cls = value.__class__
        if cls is int:
            if -(2**63) <= value < 2**63:
                return index(value)
            raise error("TG011", f"the integer has {value.bit_length()} bits", span)  # type: ignore[union-attr]
        if cls is float:
            return _fp32(value) if value == value else Const(value, FP32)
        return Const(value, BOOL)
    return _typed(value, dtype, span)


def _typed(value: bool | int | float, dtype: DType, span: Span | None) -> Const:
    if not dtype.is_numeric:
        raise error("TG011", f"{dtype.name} has no literals", span)
    if dtype.is_float:
        return Const(round_literal(float_of(value, span), dtype, span), dtype)
    if dtype is BOOL:
        return Const(bool(value), BOOL)
    if value != value or value in (float("inf"), float("-inf")) or value != int(value):
        raise error("TG011", f"{value} is no integer", span, hint=f"{dtype.name} holds integers")
    whole = int(value)
    if not dtype.min_value <= whole <= dtype.max_value:
        limits = f"{dtype.min_value} to {dtype.max_value}"
        raise error("TG011", f"{_short(whole)} does not fit {dtype.name}", span, reason=f"its range is {limits}")
    return index(whole) if dtype is INDEX else Const(whole, dtype)


def float_of(value: int | float, span: Span | None) -> float:
    """Return a number as a float; raises TG011 when it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        raise error("TG011", "the integer is too large for a float", span) from None


def _short(value: int) -> str:
    return str(value) if value.bit_length() < 200 else f"an integer of {value.bit_length()} bits"


@lru_cache(maxsize=4096)
def _fp32_bits(text: str) -> Const | None:
    value = float(text)
    try:
        return Const(struct.unpack("<f", struct.pack("<f", value))[0], FP32)
    except OverflowError:
        return None


def _fp32(value: float) -> Const:
    found = _fp32_bits(repr(value))
    if found is None or value in (float("inf"), float("-inf")):
        raise error("TG011", "the float does not fit FP32", reason="FP32 reaches 3.4028234663852886e+38")
    return found


def round_literal(value: float, dtype: DType, span: Span | None) -> float:
    """Return the value rounded to nearest even in a float dtype; raises TG011 on overflow."""
    if value != value or value in (float("inf"), float("-inf")):
        special = dtype.has_nan if value != value else dtype.has_inf
        if special:
            return value
        raise error("TG011", f"{dtype.name} has no {value}", span)
    if dtype in (FP32, FP16):
        code = "<f" if dtype is FP32 else "<e"
        try:
            rounded: float = struct.unpack(code, struct.pack(code, value))[0]
        except OverflowError:
            rounded = float("inf")
    else:
        rounded = _round_generic(value, dtype)
    if abs(rounded) > dtype.max_value or (rounded < 0 and not dtype.has_sign):
        raise error("TG011", f"{value} does not fit {dtype.name}", span, reason=f"it reaches {dtype.max_value}")
    return rounded


def _round_generic(value: float, dtype: DType) -> float:
    import math

    if value == 0.0:
        return value if dtype.has_zero else float(dtype.min_positive)
    exponent = math.frexp(value)[1] - 1
    digits = dtype.precision_at(exponent)
    if digits:
        quantum = exponent - digits + 1
    elif exponent < dtype.quantum_exponent:
        quantum = dtype.quantum_exponent
    else:
        return value
    return math.ldexp(float(round(math.ldexp(value, -quantum))), quantum)


def tensor_root(state: State, operands: Sequence[Operand]) -> str | None:
    """Return the output parameter one of the operands is a version of."""
    for o in operands:
        if o.__class__ is Value and o.name in state.roots and isinstance(o.type, TensorType):
            return state.roots[o.name]
    return None


def block(statements: Sequence[Statement]) -> Block:
    """Return the statements as a block."""
    return Block(tuple(statements))
