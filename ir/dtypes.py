"""The element types: one row each, with everything else (ranges, special codes, values) derived from it.

Integers are two's complement.  A float row gives its field widths, its bias and how it writes infinity and
NaN; HiFloat8, whose exponent and mantissa widths change with the magnitude, gives its prefix fields instead.
Sources: IEEE 754 (FP16, FP32), bfloat16, OCP OFP8 (FP8E4M3FN, FP8E5M2), OCP Microscaling v1.0 (FP4 = E2M1,
FP8E8M0), the pto-isa headers (FP4E1M2, PTO spellings) and the HiFloat8 format paper (HF8).

Element arrays are NumPy arrays of ``dtype.storage``: the natural type where NumPy or ml_dtypes has one and
arithmetic on it is meaningful; INT4 in int8, UINT4 in uint8, and the floats of at most eight bits as uint8
bit codes, one element per byte.  Packing two elements per byte happens at memory boundaries only.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from .diagnostics import Span, error

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["int", "uint", "float", "bool", "index", "opaque"]
#: How a float format writes NaN: not at all; exponent all ones and mantissa not zero; every magnitude bit
#: one; the code that minus zero would have.
NanCode = Literal["none", "ieee", "all_ones", "minus_zero"]


class TaperField(NamedTuple):
    """One field of a tapered float: codes whose bits under the sign start with ``prefix``.

    Then follow ``exponent_bits`` of a sign-and-magnitude exponent, whose leading one is implicit, and
    ``mantissa_bits``.
    """

    prefix: str
    exponent_bits: int
    mantissa_bits: int


@dataclass(frozen=True, eq=False, repr=False)
class DType:
    """One element type. There is one instance per name, so identity is equality.

    ``significand_bits`` counts the hidden bit; for a tapered format it is the widest.  ``pto`` is the
    spelling in PTO assembly, empty when the assembler has none; ``aliases`` are further names read in text,
    in any letter case.  ``packed_of``: the element of a packed pair in one register, which is opaque as a dtype.
    """

    name: str
    kind: Kind
    bits: int
    storage_name: str = ""
    pto: str = ""
    aliases: tuple[str, ...] = ()
    exponent_bits: int = 0
    significand_bits: int = 0
    bias: int = 0
    has_inf: bool = False
    nan: NanCode = "none"
    has_sign: bool = True
    taper: tuple[TaperField, ...] = ()
    packed_of: str = ""

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _by_name, (self.name,)

    # -- kind ------------------------------------------------------------------------------------------

    @property
    def short(self) -> str:
        """The lower-case name, as used for generated names and on the command line."""
        return self.name.lower()

    @cached_property
    def is_float(self) -> bool:
        return self.kind == "float"

    @cached_property
    def is_int(self) -> bool:
        """True of signed and unsigned integers and INDEX; not of BOOL."""
        return self.kind in ("int", "uint", "index")

    @cached_property
    def is_numeric(self) -> bool:
        """True when elements have values: every type but the opaque ones."""
        return self.kind != "opaque"

    @cached_property
    def signed(self) -> bool:
        return self.kind in ("int", "index") or (self.kind == "float" and self.has_sign)

    # -- memory ----------------------------------------------------------------------------------------

    @cached_property
    def values_per_byte(self) -> int:
        """Elements that share a byte of memory: 2 for four-bit types, else 1."""
        return 2 if self.bits == 4 else 1

    @cached_property
    def bytes(self) -> int:
        """Bytes that one element takes up, a partial byte counted whole (see :meth:`nbytes`)."""
        return -(-self.bits // 8)

    def nbytes(self, count: int) -> int:
        """Bytes that ``count`` consecutive elements take up in memory."""
        return -(-count // self.values_per_byte) * self.bytes

    @cached_property
    def storage(self) -> np.dtype[Any]:
        """The NumPy dtype of element arrays; raises TG032 for a type without numerics."""
        import numpy as np

        if not self.storage_name:
            raise error("TG032", f"{self.name} has no element arithmetic")
        if self.storage_name != "bfloat16":
            return np.dtype(self.storage_name)
        import ml_dtypes

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16

    @cached_property
    def is_coded(self) -> bool:
        """True when element arrays hold bit codes rather than values."""
        return self.is_float and self.storage_name == "uint8"

    # -- range -----------------------------------------------------------------------------------------

    @cached_property
    def max_value(self) -> int | float:
        """The largest finite value, exactly: an int for integers and BOOL, else a float."""
        if self.is_float:
            return self.code_value(self.max_code)
        return int((1 << (self.bits - (1 if self.signed else 0))) - 1)

    @cached_property
    def min_value(self) -> int | float:
        """The least finite value, exactly; 2**-127 for FP8E8M0, which has neither zero nor sign."""
        if self.is_float:
            return -self.max_value if self.has_sign else self.code_value(0)
        return -(1 << (self.bits - 1)) if self.signed else 0

    @cached_property
    def min_positive(self) -> int | float:
        """The least value above zero."""
        if not self.is_float:
            return 1
        return self.code_value(0) or self.code_value(1)

    @cached_property
    def min_exponent(self) -> int:
        """The exponent of the least normal value (value = 1.m * 2**exponent); floats only."""
        if self.taper:
            return -max(_exponent_range(field)[1] for field in self.taper)
        return (0 if self.significand_bits == 1 else 1) - self.bias

    @cached_property
    def max_exponent(self) -> int:
        """The exponent of the largest finite value; floats only."""
        return math.frexp(self.max_value)[1] - 1

    @cached_property
    def quantum_exponent(self) -> int:
        """Every finite value is a multiple of 2**this; 0 for integers."""
        return math.frexp(self.min_positive)[1] - 1 if self.is_float else 0

    def precision_at(self, exponent: int) -> int:
        """Significand bits of values in [2**exponent, 2**(exponent+1)); 0 where there is none.

        The values there are the multiples of ``2**(exponent - precision_at(exponent) + 1)`` (up to
        ``max_value``). Raises TG007 for a type that is no float.
        """
        if not self.is_float:
            raise error("TG007", f"{self.name} is no float type")
        if not self.quantum_exponent <= exponent <= self.max_exponent:
            return 0
        for field in self.taper:
            low, high = _exponent_range(field)
            if low <= abs(exponent) <= high:
                return field.mantissa_bits + 1
        if self.taper:
            return 1
        return min(self.significand_bits, exponent - self.quantum_exponent + 1)

    # -- codes of float types --------------------------------------------------------------------------

    @cached_property
    def has_nan(self) -> bool:
        return self.nan != "none"

    @cached_property
    def has_zero(self) -> bool:
        """False of FP8E8M0 only (and of types without values)."""
        return not self.is_float or self.has_sign

    @cached_property
    def has_negative_zero(self) -> bool:
        return self.is_float and self.has_sign and self.nan != "minus_zero"

    @cached_property
    def magnitude_mask(self) -> int:
        """The bits of a float code below the sign."""
        return (1 << (self.bits - (1 if self.has_sign else 0))) - 1

    @cached_property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1) if self.has_sign else 0

    @cached_property
    def inf_code(self) -> int | None:
        """The code of +infinity."""
        if not self.has_inf:
            return None
        if self.nan == "ieee":
            return self.magnitude_mask >> (self.significand_bits - 1) << (self.significand_bits - 1)
        # Tapered: every bit one but the exponent's sign, that is the largest magnitude.
        top = self.taper[0]
        return self.magnitude_mask ^ 1 << (top.exponent_bits + top.mantissa_bits - 1)

    @cached_property
    def nan_code(self) -> int | None:
        """The code that conversions write for NaN (quiet, positive)."""
        if self.nan == "ieee" and self.inf_code is not None:
            return self.inf_code | 1 << (self.significand_bits - 2)
        if self.nan == "all_ones":
            return self.magnitude_mask
        return self.sign_bit if self.nan == "minus_zero" else None

    @cached_property
    def max_code(self) -> int:
        """The code of the largest finite value. Codes 0..max_code have ascending values, except in HF8."""
        if self.inf_code is not None:
            return self.inf_code - 1
        return self.magnitude_mask - (1 if self.nan == "all_ones" else 0)

    def code_value(self, code: int) -> float:
        """Return the exact value of one float code (every float format here fits in a Python float)."""
        magnitude = code & self.magnitude_mask
        sign = -1.0 if code & self.sign_bit else 1.0
        if self.nan == "minus_zero" and code == self.sign_bit:
            return math.nan
        if magnitude == self.inf_code:
            return sign * math.inf
        if self.nan == "all_ones" and magnitude == self.magnitude_mask:
            return math.nan
        if self.nan == "ieee" and self.inf_code is not None and magnitude > self.inf_code:
            return math.nan
        if self.taper:
            return sign * _tapered_value(self, magnitude)
        return sign * _binary_value(self, magnitude)


def _binary_value(dtype: DType, magnitude: int) -> float:
    fraction_bits = dtype.significand_bits - 1
    exponent = magnitude >> fraction_bits
    fraction = magnitude & ((1 << fraction_bits) - 1)
    if fraction_bits == 0:
        return math.ldexp(1.0, exponent - dtype.bias)
    if exponent == 0:
        return math.ldexp(fraction, 1 - dtype.bias - fraction_bits)
    return math.ldexp(fraction + (1 << fraction_bits), exponent - dtype.bias - fraction_bits)


def _tapered_value(dtype: DType, magnitude: int) -> float:
    width = dtype.bits - 1
    text = format(magnitude, f"0{width}b")
    for prefix, exponent_bits, mantissa_bits in dtype.taper:
        if text.startswith(prefix):
            rest = text[len(prefix) :]
            exponent = _tapered_exponent(rest[:exponent_bits])
            mantissa = int(rest[exponent_bits:], 2)
            return math.ldexp(mantissa + (1 << mantissa_bits), exponent - mantissa_bits)
    # Below the fields the code itself is an exponent: powers of two up to the least normal value; 0 is zero.
    tail = width - len(dtype.taper[-1].prefix)
    return math.ldexp(1.0, magnitude + dtype.min_exponent - (1 << tail)) if magnitude else 0.0


def _tapered_exponent(bits: str) -> int:
    if not bits:
        return 0
    size = int("1" + bits[1:], 2)
    return -size if bits[0] == "1" else size


def _exponent_range(field: TaperField) -> tuple[int, int]:
    """The least and largest exponent magnitude of a field."""
    if field.exponent_bits == 0:
        return 0, 0
    return 1 << (field.exponent_bits - 1), (1 << field.exponent_bits) - 1


_HIFLOAT8_FIELDS: Final = (
    TaperField("11", 4, 1),
    TaperField("10", 3, 2),
    TaperField("01", 2, 3),
    TaperField("001", 1, 3),
    TaperField("0001", 0, 3),
)

INT4: Final = DType("INT4", "int", 4, "int8", "", ("i4", "si4", "s4"))
INT8: Final = DType("INT8", "int", 8, "int8", "i8", ("si8", "s8"))
INT16: Final = DType("INT16", "int", 16, "int16", "i16", ("si16", "s16"))
INT32: Final = DType("INT32", "int", 32, "int32", "i32", ("si32", "s32"))
INT64: Final = DType("INT64", "int", 64, "int64", "i64", ("si64", "s64"))
UINT4: Final = DType("UINT4", "uint", 4, "uint8", "", ("u4", "ui4"))
UINT8: Final = DType("UINT8", "uint", 8, "uint8", "ui8", ("u8",))
UINT16: Final = DType("UINT16", "uint", 16, "uint16", "ui16", ("u16",))
UINT32: Final = DType("UINT32", "uint", 32, "uint32", "ui32", ("u32",))
UINT64: Final = DType("UINT64", "uint", 64, "uint64", "ui64", ("u64",))
BOOL: Final = DType("BOOL", "bool", 1, "bool", "i1", ())
INDEX: Final = DType("INDEX", "index", 64, "int64", "index", ())
FP16: Final = DType("FP16", "float", 16, "float16", "f16", ("float16", "half"), 5, 11, 15, True, "ieee")
BF16: Final = DType("BF16", "float", 16, "bfloat16", "bf16", ("bfloat16",), 8, 8, 127, True, "ieee")
FP32: Final = DType("FP32", "float", 32, "float32", "f32", ("float32", "float"), 8, 24, 127, True, "ieee")
FP8E4M3FN: Final = DType(
    "FP8E4M3FN", "float", 8, "uint8", "f8E4M3FN", ("fp8e4m3", "f8e4m3", "e4m3", "e4m3fn", "float8_e4m3fn"),
    4, 4, 7, False, "all_ones",
)  # fmt: skip
FP8E5M2: Final = DType(
    "FP8E5M2", "float", 8, "uint8", "f8E5M2", ("e5m2", "float8_e5m2"), 5, 3, 15, True, "ieee"
)
HF8: Final = DType(
    "HF8", "float", 8, "uint8", "!pto.hif8", ("hif8", "hifloat8"), 0, 4, 0, True, "minus_zero",
    taper=_HIFLOAT8_FIELDS,
)  # fmt: skip
FP4: Final = DType(
    "FP4", "float", 4, "uint8", "!pto.f4E2M1x2", ("fp4e2m1", "f4e2m1", "f4e2m1x2", "e2m1"), 2, 2, 1
)
FP4E1M2: Final = DType(
    "FP4E1M2", "float", 4, "uint8", "!pto.f4E1M2x2", ("f4e1m2", "f4e1m2x2", "e1m2"), 1, 3, 1
)
FP8E8M0: Final = DType(
    "FP8E8M0", "float", 8, "uint8", "!pto.f8E8M0", ("f8e8m0", "e8m0", "e8m0fnu"), 8, 1, 127, False,
    "all_ones", has_sign=False,
)  # fmt: skip
#: HiFloat4 (64-element groups with three-level scales) and task handles: names without element values.
HF4: Final = DType("HF4", "opaque", 4, aliases=("hif4",))
TASK_ID: Final = DType("TASK_ID", "opaque", 64)
#: Packed pairs in one register of a SIMT thread (``v2f16`` ...): carriers of two elements, not element types.
PACKED: Final = tuple(
    DType(f"{row.name}X2", "opaque", 2 * row.bits, aliases=(alias,), packed_of=row.name)
    for row, alias in (
        (FP16, "v2f16"), (BF16, "v2bf16"), (FP32, "v2f32"), (FP8E4M3FN, "v2f8e4m3"), (FP8E5M2, "v2f8e5m2"),
        (HF8, "hif8x2"), (FP4, "v2f4e2m1"), (FP4E1M2, "v2f4e1m2"),
    )
)  # fmt: skip

#: Every dtype by name, in the order of declaration.
DTYPES: Final[dict[str, DType]] = {
    row.name: row
    for row in (
        INT4, INT8, INT16, INT32, INT64, UINT4, UINT8, UINT16, UINT32, UINT64, BOOL, INDEX,
        FP16, BF16, FP32, FP8E4M3FN, FP8E5M2, HF8, FP4, FP4E1M2, FP8E8M0, HF4, TASK_ID, *PACKED,
    )
}  # fmt: skip


def _by_name(name: str) -> DType:
    return DTYPES[name]


def _spellings() -> dict[str, DType]:
    table: dict[str, DType] = {}
    for row in DTYPES.values():
        for text in (row.name, row.pto, row.pto.removeprefix("!pto."), *row.aliases):
            if text and table.setdefault(text.lower(), row) is not row:
                raise AssertionError(f"two dtypes are spelt {text!r}")
    return table


_SPELLINGS: Final = _spellings()


def parse_dtype(text: str, span: Span | None = None) -> DType:
    """Return the dtype a word names: its name, PTO spelling or a customary short form, in any letter case.

    Raises TG004, with the closest names as a hint.
    """
    found = _SPELLINGS.get(text.strip().lower())
    if found is not None:
        return found
    close = difflib.get_close_matches(text.strip().lower(), _SPELLINGS, n=3)
    names = list(dict.fromkeys(_SPELLINGS[word].name for word in close))
    hint = f"did you mean {' or '.join(names)}?" if names else f"known dtypes: {', '.join(DTYPES)}"
    raise error("TG004", f"unknown dtype {text[:60]!r}", span, hint=hint)
