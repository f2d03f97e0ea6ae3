"""Operation declarations: one decorated function per operation, whose body is its NumPy meaning.

    @op("tile.add", result=same_tile, pto="tadd", unified="add", family="tile-tile arithmetic")
    def add(lhs: Tile, rhs: Tile) -> Any:
        return lhs + rhs

The signature gives operand names, kinds and defaults (an annotation is one of the kinds below); the
parser, printer, verifier, interpreter, e-graph constructor, assembly spelling and the documentation tables
are all derived from the declaration. A body may take a keyword ``env`` (:class:`Env`) to see types.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

from .classification import Classification
from .diagnostics import Span, error
from .dtypes import DType
from .types import PtrType, ScalarType, TensorType, TileType, Type


class Kind(Enum):
    """What a parameter of an operation takes."""

    TILE = "tile"
    TENSOR = "tensor"
    WINDOW = "distributed tensor"
    ARRAY = "tile or tensor"
    SCALAR = "scalar"
    DIMS = "list of sizes or offsets"
    SCRATCH = "scratch tile"
    POINTER = "pointer"
    ANY = "value"
    DTYPE = "dtype"
    MODE = "round mode"
    SATURATION = "saturation mode"
    COMPARE = "comparison"
    MEMORY = "memory space"
    ATOMIC = "atomic type"
    NOTIFY = "notify operation"
    WAIT = "wait comparison"
    REDUCE = "reduction"
    PAD = "pad value"
    FLAG = "flag"
    INT = "integer"
    NUMBER = "number"
    WORD = "word"

    #: There is one object of each, and the library's hash of names is slow.
    __hash__ = object.__hash__

    @property
    def is_operand(self) -> bool:
        """True for run-time values, false for compile-time attributes."""
        return self in _OPERANDS


_OPERANDS = frozenset(
    {Kind.TILE, Kind.TENSOR, Kind.WINDOW, Kind.ARRAY, Kind.SCALAR, Kind.DIMS, Kind.SCRATCH, Kind.POINTER, Kind.ANY}
)

# The annotations operations are declared with. To a type checker they are all "any array or number".
Tile = Annotated[Any, Kind.TILE]
Tensor = Annotated[Any, Kind.TENSOR]
Window = Annotated[Any, Kind.WINDOW]
Array = Annotated[Any, Kind.ARRAY]
Scalar = Annotated[Any, Kind.SCALAR]
Dims = Annotated[Any, Kind.DIMS]
Scratch = Annotated[Any, Kind.SCRATCH]
# A scratch tile with the element type of the first operand.
ScratchLike = Annotated[Any, Kind.SCRATCH, 0]
Pointer = Annotated[Any, Kind.POINTER]
AnyValue = Annotated[Any, Kind.ANY]
DTypeAttr = Annotated[Any, Kind.DTYPE]
Mode = Annotated[Any, Kind.MODE]
Saturation = Annotated[Any, Kind.SATURATION]
Compare = Annotated[Any, Kind.COMPARE]
Memory = Annotated[Any, Kind.MEMORY]
Atomic = Annotated[Any, Kind.ATOMIC]
Notify = Annotated[Any, Kind.NOTIFY]
WaitFor = Annotated[Any, Kind.WAIT]
Reduce = Annotated[Any, Kind.REDUCE]
Pad = Annotated[Any, Kind.PAD]
Flag = Annotated[Any, Kind.FLAG]
Int = Annotated[Any, Kind.INT]
Number = Annotated[Any, Kind.NUMBER]
Word = Annotated[Any, Kind.WORD]

#: Marks a parameter without default.
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class OpParam:
    """One declared parameter; ``like``: the operand whose element type a scratch tile must have."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    keyword_only: bool = False
    like: int | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class Call:
    """What a result-type rule sees: the declaration, operand types and values, attributes with defaults."""

    decl: OpDecl
    operands: tuple[Any, ...]
    attrs: Mapping[str, Any]
    span: Span | None

    def type(self, i: int) -> Any:
        """Return the type of operand ``i`` (``None`` when it is absent or a list)."""
        return getattr(self.operands[i], "type", None)

    def attr(self, name: str) -> Any:
        """Return the attribute, or its declared default."""
        return self.attrs[name] if name in self.attrs else self.decl.defaults[name]

    def fail(self, code: str, message: str, *, reason: str = "", hint: str = "") -> NoReturn:
        """Raise a diagnostic at this call."""
        raise error(code, f"{self.decl.name}: {message}", self.span, reason=reason, hint=hint)


@dataclass(frozen=True)
class Env:
    """What a meaning may ask the interpreter: operand types, result type."""

    types: tuple[Any, ...]
    result: Any

    def dtype(self, i: int) -> DType:
        """Return the element type of operand ``i``."""
        dtype: DType = self.types[i].dtype
        return dtype


ResultRule = Callable[[Call], Type | None]


@dataclass(frozen=True)
class Placement:
    """Where an operation may run when a mixed kernel is split into a cube and a vector function.

    ``core``: ``"VECTOR"``, ``"CUBE"``, ``"SHARED"`` (copied to both sides), or ``None``: derived from the operands
    (:func:`~tilegg.ir.placement.core_of`). ``no_duplicate``: at most one side may keep it inside a vector region.
    """

    core: str | None = None
    no_duplicate: bool = False
    reason: str = ""


@dataclass(frozen=True, eq=False)
class OpDecl:
    """A declared operation; see :func:`op` for the fields."""

    name: str
    params: tuple[OpParam, ...]
    meaning: Callable[..., Any]
    result: ResultRule
    family: str
    pto: str | None
    effect: str
    raw: bool
    target_defined: str
    doc: str
    wants_env: bool
    placement: Placement | None = None
    inout: str = ""
    composite: bool = False
    scalar: Classification | None = None
    transfer: list[Callable[..., Any]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operand_params", tuple(p for p in self.params if p.kind.is_operand))
        object.__setattr__(self, "attr_params", tuple(p for p in self.params if not p.kind.is_operand))
        object.__setattr__(self, "defaults", {p.name: p.default for p in self.params if not p.required})
        object.__setattr__(self, "by_name", {p.name: p for p in self.params})
        alike = ((i, p.like) for i, p in enumerate(self.operand_params) if p.like is not None)
        object.__setattr__(self, "alike", tuple(alike))

    operand_params: tuple[OpParam, ...] = field(init=False, repr=False)
    attr_params: tuple[OpParam, ...] = field(init=False, repr=False)
    defaults: dict[str, Any] = field(init=False, repr=False)
    by_name: dict[str, OpParam] = field(init=False, repr=False)
    #: Scratch tiles by operand number, with the operand whose element type each must have.
    alike: tuple[tuple[int, int], ...] = field(init=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # There is one declaration of each name, and its functions are not found under their own.
        return _declared, (self.name, self.meaning.__module__)

    @property
    def pure(self) -> bool:
        """True when the operation neither reads nor writes memory nor orders anything."""
        return self.effect == "none"

    def facts(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register the value-set transfer function (decorator); see ``ir/valueset.py``."""
        self.transfer.append(function)
        return function


#: Every declared operation by full name, in declaration order.
OPS: dict[str, OpDecl] = {}

#: Unified spelling -> candidates by the kind of the first operands ("add" -> tile.add, tile.adds).
UNIFIED: dict[str, list[OpDecl]] = {}


def _declared(name: str, module: str) -> OpDecl:
    """Return the declaration of a name, which importing the module makes where that has not been done."""
    if name not in OPS:
        import_module(module)
    return OPS[name]


def op(
    name: str,
    *,
    result: ResultRule,
    family: str,
    pto: str | None = None,
    unified: str | None = None,
    effect: str = "none",
    raw: bool = False,
    target_defined: str = "",
    placement: Placement | None = None,
    inout: str = "",
    composite: bool = False,
    scalar: Classification | None = None,
) -> Callable[[Callable[..., Any]], OpDecl]:
    """Declare an operation.

    ``name``: namespace and operation, as in the text after the ``pl`` prefix (``tile.add``); ``result``: the
    rule from a :class:`Call` to the result type (``None``: no result), which also checks operands and asks of tiles
    for their types only; ``family``: heading in the documentation; ``pto``: assembler mnemonic; ``unified``: the
    short spelling ``pl.<unified>``; ``effect``: none, read, write or alloc; ``raw``: the body sees tiles with
    their padding (:class:`~tilegg.ir.interp.TileArray`) instead of valid regions; ``target_defined``: what the hardware
    documents leave open, so that no rule may depend on it; ``placement``: which core of a mixed kernel runs it,
    where its operands do not tell; ``inout``: the operand whose storage the instruction overwrites with the result
    (the language's value stays: a copy is due wherever it is read later); ``composite``: no instruction of any
    target, other operations take its place; ``scalar``: the classification of a scalar or SIMT operation.
    """

    def declare(fn: Callable[..., Any]) -> OpDecl:
        if name in OPS:
            raise ValueError(f"operation {name} is declared twice")
        params, wants_env = _read_signature(fn)
        doc = inspect.getdoc(fn) or ""
        decl = OpDecl(
            name, params, fn, result, family, pto, effect, raw, target_defined, doc, wants_env, placement, inout,
            composite, scalar,
        )  # fmt: skip
        OPS[name] = decl
        if unified:
            UNIFIED.setdefault(unified, []).append(decl)
        return decl

    return declare


def _read_signature(fn: Callable[..., Any]) -> tuple[tuple[OpParam, ...], bool]:
    hints = get_type_hints(fn, include_extras=True)
    params = []
    wants_env = False
    for p in inspect.signature(fn).parameters.values():
        if p.name == "env":
            wants_env = True
            continue
        hint = hints[p.name]
        if get_origin(hint) is not Annotated:
            raise TypeError(f"{fn.__name__}: parameter {p.name} has no operand kind")
        _, kind, *like = get_args(hint)
        params.append(OpParam(p.name, kind, p.default, p.kind is p.KEYWORD_ONLY, *like))
    return tuple(params), wants_env


#: Types that values of a kind have; windows are tensors of their own.
_TYPES_OF: dict[Kind, tuple[type, ...]] = {
    Kind.TILE: (TileType,),
    Kind.SCRATCH: (TileType,),
    Kind.TENSOR: (TensorType,),
    Kind.WINDOW: (TensorType,),
    Kind.ARRAY: (TileType, TensorType),
    Kind.SCALAR: (ScalarType,),
    Kind.POINTER: (PtrType,),
    Kind.ANY: (object,),
}


def kind_accepts(kind: Kind, t: Type) -> bool:
    """Return whether a value of type ``t`` can stand for an operand of this kind."""
    if not isinstance(t, _TYPES_OF.get(kind, ())):
        return False
    return kind is not Kind.WINDOW or (isinstance(t, TensorType) and t.is_window)
