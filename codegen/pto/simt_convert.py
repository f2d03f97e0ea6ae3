"""The conversions of ``pto.convert``: types as the assembler spells them, and what each pair takes."""

from __future__ import annotations

from ...ir.dtypes import DTYPES, DType
from ...ir.ops.scalar_target import CONVERSIONS
from .conditions import fail

#: Spelling of scalar and packed types -> their dtypes; integers have no sign of their own.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "f16": ("FP16",), "bf16": ("BF16",), "f32": ("FP32",), "i32": ("INT32", "UINT32"), "i64": ("INT64", "UINT64"),
    "vector<2xf32>": ("FP32X2",), "vector<2xf16>": ("FP16X2",), "vector<2xbf16>": ("BF16X2",),
    "vector<2xf8E4M3FN>": ("FP8E4M3FNX2",), "vector<2xf8E5M2>": ("FP8E5M2X2",), "!pto.hif8x2": ("HF8X2",),
    "!pto.f4E2M1x2": ("FP4X2",), "!pto.f4E1M2x2": ("FP4E1M2X2",),
}  # fmt: skip


def typed(spelling: str, sign: str) -> DType | None:
    """Return the dtype a type stands for, integers by the sign word."""
    names = SPELLINGS.get(spelling)
    return None if names is None else DTYPES[names[-1 if sign == "unsigned" else 0]]


def check_convert(src: str, dst: str, rounding: str, saturation: str, sign: str) -> None:
    """Raise unless the instruction has the conversion."""
    a, b = typed(src, sign), typed(dst, sign)
    letters = CONVERSIONS.get((a.name, b.name)) if a is not None and b is not None else None
    if letters is None or a is None or b is None:
        fail(f"there is no conversion from {src} to {dst}")
        return
    if rounding not in letters:
        fail(f"{src} to {dst} has no round({rounding}); it has {', '.join(letters)}")
    whole = a.is_int or b.is_int
    if whole != bool(sign):
        fail("needs signed or unsigned, as one side is an integer" if whole else f"has no sign for {src} to {dst}")
    if b.is_int and saturation != "sat":
        fail("a conversion to integers saturates: write sat")
