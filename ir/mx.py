"""Block-scaled (MX) quantisation: groups of 32 elements that share one power-of-two scale, an E8M0 code.

Two scale algorithms: ``ocp`` takes the exponent of the group's maximum less the format's largest exponent, so that
maxima between a power of two and the format's largest value may be clipped; ``nv`` divides the maximum by the
format's largest value and rounds the exponent up, so that nothing is clipped. Facts: pto-isa TQUANT.md and the A5
header TQuant.hpp, OCP Microscaling v1.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from . import lazy_numpy as np
from .convert import decode, encode
from .diagnostics import error
from .dtypes import BF16, FP4, FP8E4M3FN, FP16, FP32, DType

Arr = np.Array

#: Elements that share a scale.
GROUP: Final = 32
ALGORITHMS: Final = ("ocp", "nv")
#: E8M0 codes: exponent bias, and the code of NaN.
SCALE_BIAS: Final = 127
SCALE_NAN: Final = 255


@dataclass(frozen=True)
class Format:
    """What a quantised format gives to the algorithms: largest value and the exponent that OCP subtracts."""

    dtype: DType
    largest: float
    exponent: int
    #: The code that NaN becomes: the format's own, or that of its largest value.
    nan_code: int


#: e2m1's largest exponent is 2 (OCP Microscaling; the pto-isa header agrees, its table says 1).
FORMATS: Final = {
    FP8E4M3FN: Format(FP8E4M3FN, 448.0, 8, 0x7F),
    FP4: Format(FP4, 6.0, 2, 0x7),
}


class Quantised(NamedTuple):
    """Element codes in the source's shape (one a byte), E8M0 scale codes by group, and the two workspaces."""

    codes: Arr
    scales: Arr
    maximum: Arr
    multiplier: Arr


def quantise(x: Arr, src: DType, dst: DType, axis: int, algorithm: str = "ocp") -> Quantised:
    """Quantise storage elements [R, C] of FP32, FP16 or BF16 in groups of 32 along ``axis`` (0 or 1).

    ``dst``: FP8E4M3FN, or FP4 for 16-bit sources. Scales have shape [R, C/32] for axis 1, [R/32, C] for axis 0.
    A group that holds a NaN has scale 255 and only NaN elements; a group of zeros has scale 0. Raises TG007 for
    other dtypes and TG008 for an extent that is no multiple of 32.
    """
    spec = FORMATS.get(dst)
    if spec is None or src not in (FP32, FP16, BF16) or (dst is FP4 and src is FP32):
        raise error("TG007", f"there is no block-scaled quantisation of {src.name} to {dst.name}")
    if algorithm not in ALGORITHMS:
        raise error("TG005", f"the scale algorithm is {' or '.join(ALGORITHMS)}, not {algorithm!r}")
    if x.ndim != 2 or x.shape[axis] % GROUP:
        raise error("TG008", f"{x.shape} has no groups of {GROUP} along dimension {axis}")
    grouped = _grouped(x, axis)
    maximum = group_maximum(grouped, src)
    scales = scale_codes(maximum, spec, algorithm)
    factors = multipliers(scales)
    codes = _scaled_codes(grouped, src, spec, factors)
    return Quantised(
        _ungrouped(codes, x.shape, axis),
        np.ascontiguousarray(scales.T) if axis == 0 else scales,
        np.ascontiguousarray(maximum.T) if axis == 0 else maximum,
        np.ascontiguousarray(factors.T) if axis == 0 else factors,
    )


def _grouped(x: Arr, axis: int) -> Arr:
    """Return [lines, groups, 32]."""
    lines = x.T if axis == 0 else x
    return np.ascontiguousarray(lines).reshape(lines.shape[0], -1, GROUP)


def _ungrouped(grouped: Arr, shape: tuple[int, ...], axis: int) -> Arr:
    if axis == 0:
        return np.ascontiguousarray(grouped.reshape(shape[1], shape[0]).T)
    return grouped.reshape(shape)


def group_maximum(grouped: Arr, src: DType) -> Arr:
    """Return the largest magnitude of each group as FP32, NaN where the group has one.

    FP16 maxima are cut to BF16's significand, which keeps the exponent (pto-isa converts them so).
    """
    magnitude = np.abs(decode(grouped, src))
    largest = np.max(magnitude, axis=-1).astype(np.float32)
    if src is FP16:
        cut = (largest.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        largest = np.where(np.isnan(largest), largest, cut)
    return np.asarray(largest)


def _fields(value: Arr) -> tuple[Arr, Arr]:
    """Return exponent and mantissa fields of non-negative FP32 numbers."""
    bits = value.view(np.uint32).astype(np.int64)
    return (bits >> 23) & 0xFF, bits & 0x7FFFFF


def scale_codes(maximum: Arr, spec: Format, algorithm: str) -> Arr:
    """Return the E8M0 codes (uint8) of group maxima (FP32, not negative)."""
    if algorithm == "nv":
        return _nv_codes(maximum, spec)
    exponent, mantissa = _fields(maximum)
    code = np.where(exponent <= spec.exponent, 0, exponent - spec.exponent)
    code = np.where((exponent == 255) & (mantissa != 0), SCALE_NAN, code)
    return code.astype(np.uint8)


def _nv_codes(maximum: Arr, spec: Format) -> Arr:
    with np.errstate(all="ignore"):
        quotient = np.asarray(maximum * np.float32(1.0 / spec.largest), np.float32)
    exponent, mantissa = _fields(quotient)
    tiny = (exponent == 0) & (mantissa <= 0x400000)
    code = exponent + ((mantissa > 0) & (exponent != 254) & ~tiny)
    code = np.where(maximum == 0, 0, code)
    code = np.where(np.isinf(quotient), 254, code)
    return np.where(np.isnan(quotient), SCALE_NAN, code).astype(np.uint8)


def multipliers(scales: Arr) -> Arr:
    """Return what elements are multiplied with, 2 ** (127 - code) as FP32; NaN for code 255."""
    power = np.ldexp(np.float64(1.0), SCALE_BIAS - scales.astype(np.int64))
    return np.where(scales == SCALE_NAN, np.nan, power).astype(np.float32)


def _scaled_codes(grouped: Arr, src: DType, spec: Format, factors: Arr) -> Arr:
    with np.errstate(all="ignore"):
        product = decode(grouped, src) * factors[..., None].astype(np.float64)
        # The product is rounded in the working type: FP32, or the source's own for BF16 elements to FP4.
        working = BF16 if spec.dtype is FP4 and src is BF16 else FP32
        scaled = decode(encode(product, working, "rint", False), working)
    clipped = np.clip(scaled, -spec.largest, spec.largest)
    nan = np.isnan(clipped)
    codes = encode(np.where(nan, 0.0, clipped), spec.dtype, "rint", True)
    return np.where(nan, np.uint8(spec.nan_code), codes).astype(np.uint8)


def scale_values(scales: Arr) -> Arr:
    """Return the values of E8M0 codes: 2 ** (code - 127), NaN for 255."""
    power = np.ldexp(np.float64(1.0), scales.astype(np.int64) - SCALE_BIAS)
    return np.where(scales == SCALE_NAN, np.nan, power)


def dequantise(codes: Arr, scales: Arr, dtype: DType, axis: int) -> Arr:
    """Return the values (float64) that codes [R, C] with scales by group along ``axis`` stand for."""
    factors = np.repeat(scale_values(scales), GROUP, axis=axis)
    with np.errstate(all="ignore"):
        values: Arr = decode(codes, dtype) * factors
    return values


# -- memory order ----------------------------------------------------------------------------------------


def zz_order(scales: Arr) -> Arr:
    """Return scales [M, C] in the order in which a ZZ tile holds them: boxes of 16 rows by 2 columns.

    M is a multiple of 16 and C is even; the result is flat, row block by row block, box by box.
    """
    rows, cols = scales.shape
    return np.ascontiguousarray(scales.reshape(rows // 16, 16, cols // 2, 2).transpose(0, 2, 1, 3)).reshape(-1)


def from_zz_order(flat: Arr, rows: int, cols: int) -> Arr:
    """Return the scales [M, C] of a ZZ tile's bytes."""
    boxes = flat.reshape(rows // 16, cols // 2, 16, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(boxes).reshape(rows, cols)
