"""Casts: the exact conversion of every dtype pair, round mode and saturation."""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..classification import Classification
from ..convert import convert
from ..dtypes import DTYPES, DType
from ..lanes import convert_lanes
from ..op import Array, Call, Dims, DTypeAttr, Env, Mode, Saturation, Scalar, Scratch, Tile, op
from ..tilearray import TileArray
from ..types import TensorType, Type, scalar
from ._result import retype
from ._scalar_facts import wrapped
from ._scalar_result import INTEGERS, dtype_at, require_listed

FAMILY = "casts"


def default_saturation(dst: DType) -> bool:
    """Integers clamp unless asked otherwise; floats overflow as their format does."""
    return not dst.is_float


def _cast_type(call: Call) -> Type:
    dst: DType = call.attr("target_type")
    src: DType = call.type(0).dtype
    for dtype in (src, dst):
        if not dtype.is_numeric:
            call.fail("TG007", f"no cast to or from {dtype.name}", hint="use a numeric dtype")
    return retype(call, dst)


@op(
    "tile.cast",
    result=_cast_type,
    pto="tcvt",
    unified="cast",
    family=FAMILY,
    target_defined="NaN and infinity to integers; out-of-range values without saturation",
)
def cast(
    tile: Tile,
    target_type: DTypeAttr,
    mode: Mode = "round",
    *,
    saturation_mode: Saturation = None,
    tmp: Scratch = None,
    env: Env,
) -> Any:
    """Convert each element with one rounding; integers clamp unless ``saturation_mode="off"``."""
    on = None if saturation_mode is None else saturation_mode == "on"
    return convert(tile, env.dtype(0), target_type, mode, on)


cast.facts(vs.cast)


@op("tensor.cast", result=_cast_type, unified="cast", family=FAMILY)
def tensor_cast(
    input: Array,
    target_type: DTypeAttr,
    mode: Mode = "round",
    *,
    saturation_mode: Saturation = None,
    env: Env,
) -> Any:
    """Convert a whole tensor, as :func:`cast` does a tile."""
    on = None if saturation_mode is None else saturation_mode == "on"
    return convert(np.asarray(input), env.dtype(0), target_type, mode, on)


def _reinterpret_type(call: Call) -> Type:
    t = call.type(0)
    dst: DType = call.attr("dtype")
    shape = call.operands[1]
    if shape is None and t.dtype.bits != dst.bits:
        call.fail(
            "TG007",
            f"{t.dtype.name} and {dst.name} differ in width",
            hint="give the new shape, with the same number of bytes",
        )
    if shape is not None or isinstance(t, TensorType):
        call.fail("TG008", "only tiles of unchanged shape can be reinterpreted")
    return retype(call, dst)


@op(
    "tile.reinterpret_view",
    result=_reinterpret_type,
    pto="bitcast",
    unified="reinterpret_view",
    family=FAMILY,
    raw=True,
)
def reinterpret_view(data: Tile, dtype: DTypeAttr, *, shape: Dims = None, env: Env) -> Any:
    """The same bits read as another dtype of the same width: another name of the tile, no instruction."""
    return TileArray(data.data.view(dtype.storage), data.valid)


_NUMBERS = tuple(name for name, d in DTYPES.items() if d.is_numeric)


def _scalar_cast_type(call: Call) -> Type:
    require_listed(call, dtype_at(call, 0))
    return scalar(require_listed(call, call.attr("dtype")))


@op("scalar.cast", result=_scalar_cast_type, unified="cast", family="scalar",
    scalar=Classification("E", "anywhere", "keep both", _NUMBERS, intrinsics={
        "float": "fpext, fptrunc, fptosi or fptoui (clamped)", "uint": "zext, trunc (clamped) or uitofp",
        "any": "sext, trunc (clamped) or sitofp"},
        differences="integers clamp, floats to integers truncate; hardware control is pto.convert's"))  # fmt: skip
def scalar_cast(value: Scalar, dtype: DTypeAttr, mode: Mode = "none", *, env: Env) -> Any:
    """Convert a scalar with one rounding; it clamps to integers and takes no saturation mode.

    By default floats are truncated to integers, and everything else is rounded to nearest even.
    """
    return convert_lanes(value, env.dtype(0), dtype, mode, None)


def _wrap_type(call: Call) -> Type:
    require_listed(call, dtype_at(call, 0))
    return scalar(require_listed(call, call.attr("dtype")))


@op("scalar.wrap", result=_wrap_type, family="scalar",
    scalar=Classification("E", "anywhere", "keep scalar", INTEGERS, intrinsics={
        "uint": "zext or trunc", "any": "sext or trunc"},
        differences="keeps the low bits, where scalar.cast clamps; between dtypes of one width only the sign changes"))
def scalar_wrap(value: Scalar, dtype: DTypeAttr) -> Any:
    """The integer of another dtype with the same low bits, extended by the sign of what it came from."""
    return value


scalar_wrap.facts(wrapped)
