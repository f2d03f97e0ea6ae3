"""Result-type rules shared by the operation families: each checks its operands and returns the result type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..diagnostics import TileggError
from ..dtypes import BOOL, FP32, INDEX, UINT8, DType
from ..literals import round_literal
from ..op import Call
from ..predicates import no_number
from ..program import Const, Value, Verbatim
from ..types import Dim, ScalarType, TensorType, TileType, Type, scalar, shape_text, tile, with_dtype
from ._literals import require_literal


def dim_of(operand: Any) -> Dim:
    """Return the dimension a scalar operand stands for."""
    if isinstance(operand, Const):
        return int(operand.value)
    if isinstance(operand, Value | Verbatim):
        return operand.name if isinstance(operand, Value) else operand.text
    return operand  # type: ignore[no-any-return]


def dims_of(operands: Sequence[Any]) -> tuple[Dim, ...]:
    """Return the shape a list operand stands for."""
    return tuple(dim_of(o) for o in operands)


def agree(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Return whether two shapes can be equal (a dynamic dimension agrees with anything)."""
    return len(a) == len(b) and all(x == y or isinstance(x, str) or isinstance(y, str) for x, y in zip(a, b))


def agree_valid(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Return whether two valid shapes are equal as far as is known; a run-time extent is no known one."""
    return agree(a, b) and all(isinstance(x, str) == isinstance(y, str) for x, y in zip(a, b))


def require_same_shape(call: Call, i: int, j: int) -> None:
    """Check that two tile operands have agreeing shapes and valid shapes."""
    a, b = call.type(i), call.type(j)
    if not (agree(a.shape, b.shape) and agree_valid(a.valid_shape, b.valid_shape)):
        _refuse_mask(call, i, j)
    if not agree(a.shape, b.shape):
        call.fail(
            "TG008",
            f"operands have shapes {shape_text(a.shape)} and {shape_text(b.shape)}",
            hint="use a row_expand/col_expand form to broadcast, or slice the larger tile",
        )
    if not agree_valid(a.valid_shape, b.valid_shape):
        call.fail(
            "TG008",
            f"operands have valid shapes {shape_text(a.valid_shape)} and {shape_text(b.valid_shape)}",
            hint="give both operands the same valid shape (set_validshape)",
        )


def _refuse_mask(call: Call, i: int, j: int) -> None:
    """Refuse a packed predicate beside the tile it belongs to: its bytes are eight bits each, and no numbers."""
    for mask, other in ((j, i), (i, j)):
        t = call.type(other)
        if is_mask_for(call.type(mask), t):
            reason, hint = no_number(*(getattr(call.operands[k], "name", "") for k in (mask, other)))
            call.fail(
                "TG008",
                f"{call.decl.operand_params[mask].name} is the packed predicate {call.type(mask)}, which is no number",
                reason=reason,
                hint=hint,
            )


def require_same_dtype(call: Call, i: int, j: int) -> None:
    """Check that two operands have one element type."""
    a, b = call.type(i).dtype, call.type(j).dtype
    if a is not b:
        _refuse_mask(call, i, j)
        call.fail(
            "TG007",
            f"operands have dtypes {a.name} and {b.name}",
            hint=f"cast one of them first, e.g. target_type=pl.{a.name}",
        )


def require_arithmetic(call: Call) -> None:
    """Check that the first operand's dtype has arithmetic: no eight-bit or four-bit float, no BOOL."""
    dtype: DType = call.type(0).dtype
    if dtype.is_coded or dtype.kind in ("bool", "opaque"):
        call.fail("TG007", f"there is no arithmetic on {dtype.name}", hint="cast to FP32 first")


def same_tile(call: Call) -> Type:
    """Two tiles of one shape, valid shape and dtype -> such a tile."""
    require_arithmetic(call)
    require_same_shape(call, 0, 1)
    require_same_dtype(call, 0, 1)
    return _fresh(call.type(0))


def like_first(call: Call) -> Type:
    """The first operand's type."""
    return _fresh(call.type(0))


def unary(call: Call) -> Type:
    """A tile with arithmetic -> the same type."""
    require_arithmetic(call)
    return like_first(call)


def _fresh(t: TileType) -> TileType:
    # A result never inherits a planned address.
    return t if t.memref is None else tile(t.shape, t.dtype, t.valid, t.memory, t.layout)


def float_only(rule: Callable[[Call], Type]) -> Callable[[Call], Type]:
    """Wrap a rule: the first operand must have a floating-point dtype."""

    def checked(call: Call) -> Type:
        dtype: DType = call.type(0).dtype
        if not dtype.is_float:
            call.fail(
                "TG007",
                f"needs a floating-point tile, got {dtype.name}",
                hint="cast to FP32 first",
            )
        return rule(call)

    return checked


def int_only(rule: Callable[[Call], Type]) -> Callable[[Call], Type]:
    """Wrap a rule: the first operand must have an integer dtype."""

    def checked(call: Call) -> Type:
        dtype: DType = call.type(0).dtype
        if not dtype.is_int:
            call.fail(
                "TG007", f"needs an integer tile, got {dtype.name}", hint="cast to an integer dtype first"
            )
        return rule(call)

    return checked


#: The family of operations on bits, whose literals may be bit patterns.
BITS = "bitwise and shifts"


def require_literal_fits(call: Call, i: int, dtype: DType, pattern: bool = False) -> None:
    """Check that a literal operand has a value in a dtype: an integer is one of it, a float rounds to a finite number.

    ``pattern``: a bit pattern of an integer's width is taken too.
    """
    o = call.operands[i]
    if not isinstance(o, Const):
        return
    if dtype is BOOL and o.value not in (0, 1):
        call.fail("TG011", f"{o.value} is no value of BOOL", hint="write True or False")
    if o.dtype is BOOL and dtype.is_numeric and dtype is not BOOL:
        call.fail("TG011", f"{o.value} is no number", hint=f"write {int(o.value)}")
    if dtype.is_float:
        _require_no_overflow(call, o.value, dtype)
    if not dtype.is_int:
        return
    least, most = int(dtype.min_value), (1 << dtype.bits) - 1 if pattern else int(dtype.max_value)
    if isinstance(o.value, float) and not o.value.is_integer():
        call.fail("TG011", f"{o.value} is no value of {dtype.name}", hint="write an integer, or cast the tile to FP32")
    if not least <= o.value <= most:
        call.fail("TG011", f"{o.value} does not fit {dtype.name}", hint=f"it holds {least} to {dtype.max_value}")


def _require_no_overflow(call: Call, value: int | float, dtype: DType) -> None:
    if dtype is FP32:
        return
    if not math.isfinite(value) and not (dtype.has_nan if value != value else dtype.has_inf):
        call.fail("TG011", f"{dtype.name} has no {value}", hint=f"write a number of up to {float(dtype.max_value):g}")
    if not dtype.has_zero and value <= 0:
        call.fail("TG011", f"{value} does not fit {dtype.name}", hint=f"{dtype.name} has powers of two only, no zero")
    if not math.isfinite(value):
        return
    try:
        round_literal(float(value), dtype, None)
    except TileggError:
        becomes = "would become infinity" if dtype.has_inf else "has no value near it"
        call.fail(
            "TG011", f"{value} does not fit {dtype.name}, where it {becomes}",
            reason=f"{dtype.name} reaches {float(dtype.max_value):g}",
            hint="write a number in this range, or cast the tile to FP32 first",
        )  # fmt: skip


def tile_scalar(call: Call) -> Type:
    """A tile and a scalar -> the tile's type."""
    require_arithmetic(call)
    s = call.type(1)
    if not isinstance(s, ScalarType):
        call.fail("TG006", f"the second operand must be a scalar, got {s}")
    require_literal_fits(call, 1, call.type(0).dtype, call.decl.family == BITS)
    return _fresh(call.type(0))


def mask_of(t: TileType) -> TileType:
    """Return the packed predicate tile of a comparison over ``t``.

    Shape ``[M, roundup(ceil(N/8), 32)]`` UINT8, valid columns ``ceil(validN/8)``: one bit per element, least
    significant bit first, each row at its own 32-byte aligned start.
    """
    *rows, cols = t.shape
    *vrows, vcols = t.valid_shape
    width: Dim = (cols + 255) // 256 * 32 if isinstance(cols, int) else f"(({cols}) + 255) // 256 * 32"
    valid: Dim = (vcols + 7) // 8 if isinstance(vcols, int) else f"(({vcols}) + 7) // 8"
    return tile((*rows, width), UINT8, (*vrows, valid))


def is_mask_for(mask: Type | None, t: TileType) -> bool:
    """Return whether ``mask`` is a packed predicate over a tile like ``t``."""
    if not isinstance(mask, TileType) or mask.dtype is not UINT8:
        return False
    want = mask_of(t)
    return agree(mask.shape, want.shape) and agree_valid(mask.valid_shape, want.valid_shape)


def require_mask(call: Call, i: int, j: int) -> None:
    """Check that operand ``i`` is a packed predicate for tile operand ``j``."""
    t = call.type(j)
    if not is_mask_for(call.type(i), t):
        want = mask_of(t)
        call.fail(
            "TG008",
            f"the mask must be a packed predicate {want}, got {call.type(i)}",
            reason="a comparison writes one bit per element; a tile of 0/1 values is no mask",
            hint="compare first: pl.tile.cmps(value, 0, cmp_type=1)",
        )


def compare(call: Call) -> Type:
    """Tile and tile (or scalar) -> packed predicate."""
    require_arithmetic(call)
    if isinstance(call.type(1), TileType):
        require_same_shape(call, 0, 1)
        require_same_dtype(call, 0, 1)
    else:
        require_literal_fits(call, 1, call.type(0).dtype)
    return mask_of(call.type(0))


def reduce_rows(call: Call) -> Type:
    """``[M, N]`` -> ``[M, 1]``."""
    require_arithmetic(call)
    t: TileType = call.type(0)
    if len(t.shape) != 2:
        call.fail("TG008", f"needs a rank-2 tile, got {shape_text(t.shape)}")
    return tile((t.shape[0], 1), t.dtype, (t.valid_shape[0], 1), t.memory)


def reduce_cols(call: Call) -> Type:
    """``[M, N]`` -> ``[1, N]``."""
    require_arithmetic(call)
    t: TileType = call.type(0)
    if len(t.shape) != 2:
        call.fail("TG008", f"needs a rank-2 tile, got {shape_text(t.shape)}")
    return tile((1, t.shape[1]), t.dtype, (1, t.valid_shape[1]), t.memory)


def broadcast_rows(call: Call) -> Type:
    """``[M, N]`` with one value per row, ``[M, 1]`` -> ``[M, N]``, any dtype."""
    return _expand(call, axis=0)


def broadcast_cols(call: Call) -> Type:
    """``[M, N]`` with one value per column, ``[1, N]`` -> ``[M, N]``, any dtype."""
    return _expand(call, axis=1)


def expand_rows(call: Call) -> Type:
    """``[M, N]`` with one value per row, ``[M, 1]`` -> ``[M, N]``."""
    require_arithmetic(call)
    return _expand(call, axis=0)


def expand_cols(call: Call) -> Type:
    """``[M, N]`` with one value per column, ``[1, N]`` -> ``[M, N]``."""
    require_arithmetic(call)
    return _expand(call, axis=1)


def _expand(call: Call, axis: int) -> Type:
    t, v = call.type(0), call.type(1)
    require_same_dtype(call, 0, 1)
    want = (t.valid_shape[0], 1) if axis == 0 else (1, t.valid_shape[1])
    if len(t.shape) != 2 or len(v.shape) != 2 or not agree_valid(v.valid_shape, want):
        side = "row" if axis == 0 else "column"
        call.fail(
            "TG008",
            f"needs one value per {side}: {shape_text(want)}, got {shape_text(v.valid_shape)}",
            hint="reshape the vector, or use the other expand form",
        )
    return _fresh(t)


def scalar_binary(call: Call) -> Type:
    """Two scalars -> a scalar of the wider kind (a literal adapts to the other operand)."""
    return scalar(common_dtype(call, 0, 1))


def scalar_compare(call: Call) -> Type:
    """Two scalars -> BOOL."""
    common_dtype(call, 0, 1)
    return scalar(BOOL)


def common_dtype(call: Call, i: int, j: int, patterns: bool = False) -> DType:
    """Return the one dtype two scalar operands compute in: the wider of signed integers; INDEX mixes with any.

    Literals adapt, if they can (TG011); ``patterns``: also bit patterns of the dtype's width.
    """
    dtype = _common(call, i, j)
    for k in (i, j):
        require_literal(call, k, dtype, patterns)
    return dtype


def _common(call: Call, i: int, j: int) -> DType:
    a, b = call.type(i), call.type(j)
    for t in (a, b):
        if not isinstance(t, ScalarType):
            call.fail("TG006", f"needs scalars, got {t}")
    left: DType = a.dtype
    right: DType = b.dtype
    if left is right or isinstance(call.operands[j], Const):
        return left if not (isinstance(call.operands[i], Const) and left is INDEX) else right
    if isinstance(call.operands[i], Const) or (left is INDEX and right.is_int):
        return right
    if right is INDEX and left.is_int:
        return left
    if left.kind == right.kind == "int":
        return left if left.bits >= right.bits else right
    call.fail(
        "TG007",
        f"scalars have dtypes {left.name} and {right.name}",
        hint="cast one: pl.cast(x, pl.INDEX)",
    )


def retype(call: Call, dtype: DType) -> Type:
    """The first operand's tile or tensor type with another dtype."""
    t = call.type(0)
    if isinstance(t, TensorType):
        return TensorType(t.shape, dtype, kind=t.kind)
    return with_dtype(t, dtype)
