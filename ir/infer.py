"""Typing of one operation: operand kinds, stored attributes, result types, and types that must agree.

The text reader, the builder and the verifier all make operations through these functions, so that an
operation means the same however it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .diagnostics import Span, TileggError, error
from .dtypes import INDEX, DType
from .op import OPS, Call, Kind, OpDecl, OpParam, kind_accepts
from .program import Const, Operand, Value, Verbatim
from .types import (
    CONTEXT,
    POINTER,
    UNKNOWN,
    Dim,
    OpaqueType,
    PtrType,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
    Type,
    array_of,
    tile,
)

#: What to do about a tile without elements.
POSITIVE = "sizes of a tile are at least 1; how many elements are in use is its valid_shape"


def type_of(operand: Operand) -> Type | None:
    """Return the type of an operand; ``None`` for lists, verbatim text and absent operands."""
    return operand.type if isinstance(operand, Value | Const) else None


def check_operand(decl: OpDecl, param: OpParam, operand: Operand, span: Span | None) -> None:
    """Raise TG005 when a required operand is absent and TG006 when one has the wrong kind."""
    if operand is None:
        if param.required:
            raise error("TG005", f"{decl.name}: operand {param.name!r} is missing", span)
        return
    kind = param.kind
    if isinstance(operand, Verbatim):
        return
    if kind is Kind.DIMS:
        _check_dims(decl, param, operand, span)
        return
    found = type_of(operand)
    if found is None and kind is not Kind.ANY:
        raise _wrong_kind(decl, param, "a list", span)
    if found is None or isinstance(found, OpaqueType) or kind_accepts(kind, found):
        return
    raise _wrong_kind(decl, param, str(found), span)


def _wrong_kind(decl: OpDecl, param: OpParam, found: str, span: Span | None) -> TileggError:
    wanted = f"{param.name} must be a {param.kind.value}"
    hint = ""
    if param.kind is Kind.TILE and found.startswith("scalar"):
        hint = _scalar_form(decl, param)
    if param.kind is Kind.SCALAR and found.startswith("tile"):
        hint = _tile_form(decl)
    if param.kind is Kind.TILE and found.startswith(("tensor", "distributed")):
        hint = "load it first: pl.tile.load(tensor, offsets, shapes)"
    sibling = _sibling(decl, param, found)
    if sibling is not None:
        hint = f"the form for it is {sibling}"
    if param.kind is Kind.WINDOW:
        hint = "peers can address windows only: a pld.DistributedTensor parameter, or pld.window(...) on the host"
    return error("TG006", f"{decl.name}: {wanted}, got {found}", span, hint=hint)


def _scalar_form(decl: OpDecl, param: OpParam) -> str:
    """Return what to write where a scalar was found in a tile's place."""
    name = f"{decl.name.rstrip('_')}s"
    first = param is decl.operand_params[0] and len(decl.operand_params) > 1
    if first and decl.name in _SCALAR_LEFT:
        return f"with the scalar on the left: {_SCALAR_LEFT[decl.name]}"
    if name in OPS:
        return f"the form with a scalar is pl.{name}" + (", which takes the tile first" if first else "")
    if first and decl.operand_params[1].kind is Kind.SCALAR:
        return f"the tile stands first: pl.{decl.name}(tile, scalar)"
    return "fill a tile with the scalar first: pl.tile.expands(tile, scalar)"


def _tile_form(decl: OpDecl) -> str:
    """Return what to write where a tile was found in a scalar's place; "" where no operation takes two tiles."""
    stem = decl.name.removesuffix("s")
    found = next((name for name in (stem, f"{stem}_") if name in OPS and name != decl.name), None)
    return f"the form with two tiles is pl.{found}" if found else ""


#: What a difference and a quotient are written as where the scalar stands on the left.
_SCALAR_LEFT = {
    "tile.sub": "pl.tile.adds(pl.tile.neg(tile), scalar)", "tile.div": "pl.tile.rdivs(tile, scalar)",
    "tile.subs": "pl.tile.adds(pl.tile.neg(tile), scalar)", "tile.divs": "pl.tile.rdivs(tile, scalar)",
}  # fmt: skip


def _sibling(decl: OpDecl, param: OpParam, found: str) -> str | None:
    """Return the operation of the same name on tiles or tensors, where that takes what was found."""
    if not decl.name.startswith("pld.") or param is not decl.operand_params[0]:
        return None
    space = {Kind.TILE: "tensor", Kind.TENSOR: "tile"}.get(param.kind)
    if space is None or not found.startswith((space, "distributed tensor" if space == "tensor" else space)):
        return None
    name = f"pld.{space}.{decl.name.rpartition('.')[2]}"
    return name if name in OPS else None


def _check_dims(decl: OpDecl, param: OpParam, operand: Operand, span: Span | None) -> None:
    if not isinstance(operand, tuple):
        raise _wrong_kind(decl, param, str(type_of(operand)), span)
    for item in operand:
        if item.__class__ is Const and item.dtype is INDEX:
            continue
        t = type_of(item)
        if isinstance(item, Verbatim) or isinstance(t, OpaqueType):
            continue
        if not isinstance(t, ScalarType) or not (t.dtype.is_int or t.dtype.kind == "opaque"):
            what = f"{param.name} must be a list of integers"
            raise error("TG006", f"{decl.name}: {what}, got {t or 'a nested list'}", span)


def stored_attrs(decl: OpDecl, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that deviate from the declared defaults.

    A saturation mode equal to the destination's own behaviour (integers clamp) is such a default.
    """
    defaults = decl.defaults
    out = {k: v for k, v in attrs.items() if k not in defaults or not _same(v, defaults[k])}
    for name in tuple(out):
        param = decl.by_name.get(name)
        if param is not None and param.kind is Kind.SATURATION:
            dst = attrs.get("target_type") or attrs.get("dtype")
            if out[name] == "on" and isinstance(dst, DType) and not dst.is_float:
                del out[name]
    return out


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(a == b))


#: What rules gave for operations on tiles alone, by the numbers of declaration and types, which each entry keeps alive.
_GIVEN: dict[tuple[int, ...], tuple[tuple[Type, ...], object]] = {}
_REMEMBERED = 20_000


def result_types(
    decl: OpDecl, operands: tuple[Operand, ...], attrs: Mapping[str, Any], span: Span | None = None
) -> tuple[Type, ...] | None:
    """Return the types of an operation's results by its declared rule, ``()`` when it has none.

    ``None`` means that an operand's type is unknown, so nothing is inferred. Raises the rule's diagnostics.
    """
    types = None if attrs else _tiles(operands)
    if types is None:
        return _result_types(decl, operands, attrs, span) if _known(operands) else None
    key = (id(decl), *map(id, types))
    known = _GIVEN.get(key)
    if known is None:
        given = _result_types(decl, operands, attrs, span)
        if len(_GIVEN) >= _REMEMBERED:
            _GIVEN.clear()
        known = _GIVEN[key] = (given, (decl, types))
    return known[0]


def _tiles(operands: tuple[Operand, ...]) -> list[TileType | None] | None:
    """Return the types of operands that are all tiles, or left out; ``None`` when one is anything else."""
    types: list[TileType | None] = []
    for o in operands:
        if o is None:
            types.append(None)
        elif o.__class__ is Value and o.type.__class__ is TileType:
            types.append(o.type)
        else:
            return None
    return types


def _result_types(
    decl: OpDecl, operands: tuple[Operand, ...], attrs: Mapping[str, Any], span: Span | None
) -> tuple[Type, ...]:
    for i, j in decl.alike:
        _require_alike(decl, operands, i, j, span)
    try:
        result = decl.result(Call(decl, operands, attrs, span))
    except TileggError:
        raise
    except (AttributeError, TypeError, ValueError, IndexError, KeyError, ArithmeticError) as problem:
        # A rule met operands it was not written for, such as verbatim text where a value should stand.
        raise error(
            "TG006", f"{decl.name}: the operands do not fit the operation", span, reason=str(problem)[:200]
        ) from problem
    if result is None:
        return ()
    types = result.items if isinstance(result, TupleType) else (result,)
    for t in types:
        if isinstance(t, TileType | TensorType):
            _require_sizes(decl, t, span)
    return types


def _require_alike(decl: OpDecl, operands: tuple[Operand, ...], i: int, j: int, span: Span | None) -> None:
    """Raise TG007 for a scratch tile ``i`` whose element type is not that of operand ``j``."""
    tmp, t = (type_of(operands[k]) for k in (i, j))
    if not isinstance(tmp, TileType) or not isinstance(t, TileType) or tmp.dtype is t.dtype:
        return
    scratch, like = (decl.operand_params[k].name for k in (i, j))
    what = f"the scratch tile {scratch} has dtype {tmp.dtype.name}, {like} {t.dtype.name}"
    raise error("TG007", f"{decl.name}: {what}", span, hint=f"create it with dtype=pl.{t.dtype.name}, or leave it out")


def _require_sizes(decl: OpDecl, t: TileType | TensorType, span: Span | None) -> None:
    """Raise TG008 for a tile without elements, and for negative sizes."""
    least = 1 if isinstance(t, TileType) else 0
    for axis, size in enumerate(t.shape):
        if size.__class__ is int and size < least:
            what = f"size {size} along dimension {axis} of the result is {'negative' if size else 'not positive'}"
            raise error("TG008", f"{decl.name}: {what}", span, hint=POSITIVE if least else "a size counts elements")


#: Opaque types that operations are declared on, so that results follow from them.
_NAMED = (POINTER, CONTEXT)


def _known(operands: Sequence[Operand]) -> bool:
    for o in operands:
        cls = o.__class__
        if cls is Value:
            t = o.type  # type: ignore[union-attr]
            if t.__class__ is OpaqueType and t not in _NAMED and array_of(t) is None:
                return False
        elif cls is tuple and not _known(o):  # type: ignore[arg-type]
            return False
    return True


# -- types that must agree -------------------------------------------------------------------------------


def merge_types(inferred: Type | None, written: Type | None, span: Span | None = None) -> Type:
    """Return the type of a value that is inferred one way and annotated another.

    The annotation may add what inference does not know (memory space, layout, valid shape, address); a dtype
    or a static dimension that differs raises TG010.
    """
    if inferred is written and inferred is not None:
        return inferred
    if written is None or written is UNKNOWN or written == UNKNOWN:
        return UNKNOWN if inferred is None else inferred
    if inferred is None or isinstance(inferred, OpaqueType):
        return written
    match inferred, written:
        case TileType(), TileType():
            return _merge_tiles(inferred, written, span)
        case TensorType(), TensorType():
            return _merge_tensors(inferred, written, span)
        case ScalarType(), ScalarType():
            return _merge_scalars(inferred, written, span)
        case TupleType(), TupleType() if len(inferred.items) == len(written.items):
            return TupleType(tuple(merge_types(a, b, span) for a, b in zip(inferred.items, written.items)))
        case PtrType(), PtrType() if inferred == written:
            return inferred
        case _, OpaqueType():
            return inferred
    raise _disagree(inferred, written, span)


def _disagree(inferred: Type, written: Type, span: Span | None) -> TileggError:
    return error(
        "TG010",
        f"the annotation says {written}, the operation gives {inferred}",
        span,
        hint="correct the annotation, or leave it out",
    )


def _merge_scalars(inferred: ScalarType, written: ScalarType, span: Span | None) -> Type:
    a, b = inferred.dtype, written.dtype
    # Sizes and integers mix freely in address arithmetic, where the annotation decides.
    if a is b or (a.is_int and b.is_int and INDEX in (a, b)):
        return written
    raise _disagree(inferred, written, span)


def _merge_tiles(inferred: TileType, written: TileType, span: Span | None) -> Type:
    shape = _merge_dims(inferred.shape, written.shape)
    valid = _merge_valid(inferred.valid, written.valid)
    if inferred.dtype is not written.dtype or shape is None or valid == ():
        raise _disagree(inferred, written, span)
    memory = written.memory or inferred.memory
    layout = inferred.layout
    if written.layout and written.layout != layout:
        layout = tuple(sorted({**dict(layout), **dict(written.layout)}.items()))
    return tile(shape, inferred.dtype, valid, memory, layout, written.memref or inferred.memref)


def _merge_tensors(inferred: TensorType, written: TensorType, span: Span | None) -> Type:
    shape = _merge_dims(inferred.shape, written.shape)
    valid = _merge_valid(inferred.valid, written.valid)
    if inferred.dtype is not written.dtype or shape is None or valid == ():
        raise _disagree(inferred, written, span)
    return TensorType(
        shape,
        inferred.dtype,
        written.stride or inferred.stride,
        written.layout or inferred.layout,
        valid,
        inferred.kind if written.kind == "Tensor" else written.kind,
        written.memref or inferred.memref,
    )


def _merge_dims(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...] | None:
    if len(a) != len(b):
        return None
    out: list[Dim] = []
    for x, y in zip(a, b):
        if isinstance(x, int) and isinstance(y, int) and x != y:
            return None
        out.append(y if isinstance(x, str) and isinstance(y, int) else x)
    return tuple(out)


def _merge_valid(a: Sequence[Dim] | None, b: Sequence[Dim] | None) -> tuple[Dim, ...] | None:
    """Merge valid shapes; ``()`` stands for a conflict."""
    if a is None or b is None:
        found = a if b is None else b
        return None if found is None else tuple(found)
    return _merge_dims(a, b) or ()


def join_types(a: Type | None, b: Type | None, span: Span | None, what: str) -> Type:
    """Return the type of a value that comes from two places (branches, rounds); TG014 when they differ."""
    if a is b and a is not None:
        return a
    if a is None or b is None or isinstance(a, OpaqueType) or isinstance(b, OpaqueType):
        found = b if a is None or isinstance(a, OpaqueType) else a
        return UNKNOWN if found is None else found
    match a, b:
        case PtrType(), PtrType() if a == b:
            return a
        case ScalarType(), ScalarType():
            if a.dtype is b.dtype or (a.dtype.is_int and b.dtype.is_int and INDEX in (a.dtype, b.dtype)):
                return a if a.dtype is not INDEX else b
        case (TileType() as x, TileType() as y) | (TensorType() as x, TensorType() as y):
            if x.dtype is y.dtype and _merge_dims(x.shape, y.shape) is not None:
                return a
    raise error("TG014", f"{what} has two types", span, reason=f"{a} and {b}")
