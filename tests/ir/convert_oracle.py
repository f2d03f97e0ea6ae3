"""Expected results of conversions, by the libraries and not by tilegg's own arithmetic.

Float destinations: ``gfloat.round_ndarray`` on float64 (extended precision for 64-bit integers, which it
holds exactly); round-to-odd from its two directed roundings and the parity of its code.  HF8, which gfloat
does not know: thresholds between the values of ``en_dtypes.hifloat8``.  Integers: gfloat's rounding to a wide
integer format, then Python integers for clamping and wrapping.  ``expected_scalar`` repeats it all with
Fractions, one value at a time.
"""

import bisect
import math
from fractions import Fraction
from functools import cache

import en_dtypes
import gfloat
import numpy as np
from gfloat import Domain, FormatInfo, RoundMode
from gfloat import formats as known
from tilegg.ir.dtypes import (
    BF16,
    BOOL,
    FP4,
    FP4E1M2,
    FP8E4M3FN,
    FP8E5M2,
    FP8E8M0,
    FP16,
    FP32,
    HF8,
    UINT64,
    DType,
)  # fmt: skip

MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
FORMATS: dict[DType, FormatInfo] = {
    FP16: known.format_info_binary16,
    BF16: known.format_info_bfloat16,
    FP32: known.format_info_binary32,
    FP8E4M3FN: known.format_info_ocp_e4m3,
    FP8E5M2: known.format_info_ocp_e5m2,
    FP4: known.format_info_ocp_e2m1,
    FP8E8M0: known.format_info_ocp_e8m0,
    FP4E1M2: FormatInfo(
        "e1m2", 4, 3, bias=1, is_signed=True, domain=Domain.Finite, has_nz=True, num_high_nans=0,
        has_subnormals=True, is_twos_complement=False,
    ),
}  # fmt: skip
#: A format whose values are integers of 48 bits: gfloat's rounding to it is rounding to an integer.
_INTEGERS = FormatInfo(
    "int48", 48, 48, bias=-46, is_signed=True, domain=Domain.Finite, has_nz=False, num_high_nans=0,
    has_subnormals=True, is_twos_complement=True,
)  # fmt: skip
_GFLOAT = {
    "rint": RoundMode.TiesToEven,
    "round": RoundMode.TiesToAway,
    "floor": RoundMode.TowardNegative,
    "ceil": RoundMode.TowardPositive,
    "trunc": RoundMode.TowardZero,
}


def exact_values(array: np.ndarray, src: DType) -> np.ndarray:
    """The values of a storage array as extended precision (which holds every 64-bit integer) or float64."""
    if not src.is_float:
        return array.astype(np.longdouble if src.bits == 64 else np.float64)
    if src in (FP16, FP32):
        return array.astype(np.float64)
    if src is HF8:
        return array.view(en_dtypes.hifloat8).astype(np.float32).astype(np.float64)
    codes = array.view(np.uint16) if src is BF16 else array
    return gfloat.decode_ndarray(FORMATS[src], codes.astype(np.int64))


def expected(array: np.ndarray, src: DType, dst: DType, mode: str, saturate: bool) -> np.ndarray:
    """The values (float64, int64 or uint64) that conversion must give."""
    with np.errstate(all="ignore"):
        if dst is BOOL:
            return (exact_values(array, src) != 0).astype(np.int64)
        if not src.is_float and not dst.is_float:
            return _fit_integers(array.tolist(), dst, saturate)
        values = exact_values(array, src)
        if not dst.is_float:
            return _to_integer(values, dst, "trunc" if mode == "none" else mode, saturate)
        mode = "rint" if mode == "none" else mode
        if dst is HF8:
            return _to_hifloat8(values, mode, saturate)
        return _to_float(values, dst, mode, saturate)


def disagreements(result: np.ndarray, wanted: np.ndarray, dst: DType, decode) -> np.ndarray:
    """Positions where a storage array does not hold the wanted values (signs of zeros and NaN included)."""
    got = decode(result, dst)
    if not dst.is_float:
        return np.flatnonzero(got != wanted)
    same = (got == wanted) & (np.signbit(got) == np.signbit(wanted))
    return np.flatnonzero(~(same | (np.isnan(got) & np.isnan(wanted))))


# -- float destinations ------------------------------------------------------------------------------------


def _to_float(values: np.ndarray, dst: DType, mode: str, saturate: bool) -> np.ndarray:
    info = FORMATS[dst]
    result = np.full(values.shape, np.nan if info.num_nans else 0.0)
    usable = ~np.isnan(values)
    if dst is FP8E8M0:
        # No zero and no sign: what is not a normal value is outside gfloat's contract.
        result[(values >= 0) & (values < 2.0**-127) | (values == 0)] = 2.0**-127
        usable = values >= 2.0**-127
    if not info.num_nans:
        saturate = True  # gfloat refuses overflow where there is no code for it; clamping is tilegg's choice
    chosen = values[usable]
    if mode == "odd":
        rounded = _gfloat_odd(chosen, info, saturate)
    else:
        rounded = gfloat.round_ndarray(info, chosen, _GFLOAT[mode], saturate)
    result[usable] = rounded.astype(np.float64)
    return result


def _gfloat_odd(values: np.ndarray, info: FormatInfo, saturate: bool) -> np.ndarray:
    down = gfloat.round_ndarray(info, values, RoundMode.TowardZero, saturate)
    up = np.where(
        values < 0,
        gfloat.round_ndarray(info, values, RoundMode.TowardNegative, True),
        gfloat.round_ndarray(info, values, RoundMode.TowardPositive, True),
    )
    exact = down == values
    finite = np.where(np.isfinite(down), down, 0).astype(np.float64)
    odd = (gfloat.encode_ndarray(info, finite) & np.uint64(1)) == 1
    return np.where(exact | odd | ~np.isfinite(values), down, up)


@cache
def _hifloat8_grid() -> tuple[np.ndarray, np.ndarray]:
    """Ascending magnitudes, the first beyond the range last, and the parity of their codes."""
    codes = np.arange(256, dtype=np.uint8)
    table = codes.view(en_dtypes.hifloat8).astype(np.float32).astype(np.float64)
    kept = codes[(table >= 0) & np.isfinite(table)]
    order = kept[np.argsort(table[kept], kind="stable")]
    return np.append(table[order], 49152.0), np.append(order & 1, 1)


def _to_hifloat8(values: np.ndarray, mode: str, saturate: bool) -> np.ndarray:
    grid, parity = _hifloat8_grid()
    magnitude = np.abs(np.where(np.isnan(values), 0, values)).astype(np.longdouble)
    top = len(grid) - 1
    down = np.minimum(np.searchsorted(grid, magnitude, "right") - 1, top)
    up = np.minimum(np.searchsorted(grid, magnitude, "left"), top)
    middles = (grid[1:] + grid[:-1]) / 2
    if mode == "rint":
        low, high = np.searchsorted(middles, magnitude, "left"), np.searchsorted(middles, magnitude, "right")
        rank = np.where(parity[np.minimum(low, top)] == 0, low, high)
    elif mode == "round":
        rank = np.searchsorted(middles, magnitude, "right")
    elif mode == "odd":
        rank = np.minimum(np.where(parity[down] == 1, down, up), top - 1)
    elif mode == "trunc":
        rank = np.minimum(down, top - 1)
    else:
        outward = (values < 0) == (mode == "floor")
        rank = np.where(outward, up, np.minimum(down, top - 1))
    over = (rank >= top) | np.isinf(values)
    result = np.where(over, grid[top - 1] if saturate else np.inf, grid[np.minimum(rank, top)])
    result = np.where(values < 0, -result, result)
    result[result == 0] = 0.0
    return np.where(np.isnan(values), np.nan, result)


# -- integer destinations ----------------------------------------------------------------------------------


def _to_integer(values: np.ndarray, dst: DType, mode: str, saturate: bool) -> np.ndarray:
    whole = np.array(values, np.float64)
    small = np.abs(values) < 2.0**40  # above, every float source is an integer already
    chosen = whole[small]
    if mode == "odd":
        down = gfloat.round_ndarray(_INTEGERS, chosen, RoundMode.TowardZero)
        away = np.where(
            chosen < 0,
            gfloat.round_ndarray(_INTEGERS, chosen, RoundMode.TowardNegative),
            gfloat.round_ndarray(_INTEGERS, chosen, RoundMode.TowardPositive),
        )
        whole[small] = np.where((down == chosen) | (np.fmod(down, 2) != 0), down, away)
    else:
        whole[small] = gfloat.round_ndarray(_INTEGERS, chosen, _GFLOAT[mode])
    special = ~np.isfinite(whole)
    result = _fit_integers([int(v) for v in np.where(special, 0, whole).tolist()], dst, saturate)
    if saturate:
        result[whole == np.inf], result[whole == -np.inf] = dst.max_value, dst.min_value
    else:
        result[whole == np.inf] = -1 if dst.signed else dst.max_value
    return result


def _fit_integers(values: list, dst: DType, saturate: bool) -> np.ndarray:
    low, high, span = dst.min_value, dst.max_value, 1 << dst.bits
    if saturate:
        fitted = [low if v < low else high if v > high else v for v in values]
    else:
        fitted = [(v - low) % span + low for v in values]
    return np.array(fitted, np.uint64 if dst is UINT64 else np.int64)


# -- one value at a time -----------------------------------------------------------------------------------


@cache
def _value_list(dst: DType) -> tuple[list[Fraction], list[int]]:
    """Ascending magnitudes of a float dtype of at most 16 bits, and their codes, by library."""
    if dst is HF8:
        grid, parity = _hifloat8_grid()
        return [Fraction(v) for v in grid[:-1].tolist()], parity.tolist()
    info = FORMATS[dst]
    codes = np.arange(1 << (info.k - (1 if info.is_signed else 0)))
    table = gfloat.decode_ndarray(info, codes)
    kept = [(Fraction(v), c) for c, v in enumerate(table.tolist()) if math.isfinite(v)]
    return [v for v, _ in kept], [c for _, c in kept]


def _neighbours(magnitude: Fraction, dst: DType) -> tuple[Fraction, Fraction, int]:
    """The values around a magnitude on the grid continued beyond the range, and the lower one's parity."""
    if dst is FP32:
        exponent = max(math.frexp(float(magnitude))[1] - 1, -126)
        if Fraction(2) ** exponent > magnitude > 0 and exponent > -126:
            exponent -= 1  # float() rounded up to a power of two
        quantum = Fraction(2) ** (exponent - 23)
        steps = magnitude // quantum
        return steps * quantum, (steps + (steps * quantum != magnitude)) * quantum, steps % 2
    values, codes = _value_list(dst)
    index = bisect.bisect_right(values, magnitude) - 1
    if index < 0:
        return values[0], values[0], 0
    low, high = values[index], values[index + 1] if index + 1 < len(values) else 2 * values[-1] - values[-2]
    if index + 1 == len(values) and (dst is HF8 or dst is FP8E8M0):
        high = values[-1] * (2 if dst is FP8E8M0 else Fraction(3, 2))
    return low, low if low == magnitude else high, codes[index] % 2


def _pick(
    low: Fraction, high: Fraction, magnitude: Fraction, odd: int, negative: bool, mode: str
) -> Fraction:
    if low == high:
        return low
    if mode in ("rint", "round"):
        gap = (magnitude - low) - (high - magnitude)
        away = gap > 0 or (gap == 0 and (mode == "round" or odd == 1))
    else:
        away = {"trunc": False, "odd": not odd, "floor": negative, "ceil": not negative}[mode]
    return high if away else low


def expected_scalar(value, dst: DType, mode: str, saturate: bool) -> int | float:
    """The value one exact number (int, float or Fraction) converts to, by Fractions."""
    special = isinstance(value, float) and not math.isfinite(value)
    if dst is BOOL:
        return int(value != 0)
    if not dst.is_float:
        return _scalar_integer(value, special, dst, "trunc" if mode == "none" else mode, saturate)
    mode = "rint" if mode == "none" else mode
    nan = math.nan if dst not in (FP4, FP4E1M2) else 0.0
    if special and math.isnan(value):
        return nan
    negative = math.copysign(1, value) < 0 if isinstance(value, float) else value < 0
    if dst is FP8E8M0 and value < 0:
        return math.nan
    top = Fraction(2) ** 128 - Fraction(2) ** 104 if dst is FP32 else _value_list(dst)[0][-1]
    if not special:
        low, high, odd = _neighbours(abs(Fraction(value)), dst)
        result = _pick(low, high, abs(Fraction(value)), odd, negative, mode)
        inward = mode in ("trunc", "odd") or mode == ("ceil" if negative else "floor")
        result = min(result, top) if inward else result
        if result <= top:
            signed = negative and dst is not FP8E8M0 and (result > 0 or dst is not HF8)
            return -float(result) if signed else float(result)
    if saturate or dst in (FP4, FP4E1M2):
        return -float(top) if negative else float(top)
    if dst in (FP8E4M3FN, FP8E8M0):
        return math.nan
    return -math.inf if negative else math.inf


def _scalar_integer(value, special: bool, dst: DType, mode: str, saturate: bool) -> int:
    low, high = dst.min_value, dst.max_value
    if special and math.isnan(value):
        return 0
    if special:
        if saturate:
            return high if value > 0 else low
        return 0 if value < 0 else (-1 if dst.signed else high)
    exact = Fraction(value)
    below = Fraction(math.floor(abs(exact)))
    above = below + (below != abs(exact))
    whole = _pick(below, above, abs(exact), int(below % 2), exact < 0, mode)
    result = int(-whole if exact < 0 else whole)
    return min(max(result, low), high) if saturate else (result - low) % (1 << dst.bits) + low
