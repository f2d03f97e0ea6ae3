"""The fact tables rules may ask, each with its meaning; rows are computed in Python and enter the e-graph.

Facts about values are keyed by the value (its e-class): those of :data:`FROM_ANALYSIS` come from the analysis of
the program, the others from types and literals. The dtype tables are fixed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..ir import valueset
from ..ir.dtypes import DType
from .rule import Condition, Term, Var
from .terms import CODE_DTYPES, CODE_SATURATIONS

#: Fact table -> (argument kinds, meaning).
FACTS: dict[str, tuple[tuple[str, ...], str]] = {
    "fits": (("value", "dtype"), "every value it can hold is exactly representable in the dtype"),
    "finite": (("value",), "no infinity can occur"),
    "within": (("value", "int"), "every number in it is at most that bound in magnitude (NaN may occur)"),
    "ordered": (("value",), "no NaN can occur"),
    "one_zero": (("value",), "-0 cannot occur"),
    "index": (("value",), "every element is an integer of at most 2**22 in magnitude, no NaN, no -0"),
    "positive": (("value",), "no element is negative"),
    "mixed": (("value",), "dividends of a signed integer quotient that rounds to zero, not known to be positive"),
    "typed": (("value", "dtype", "shape"), "a tile of that dtype and shape"),
    "windows": (("value", "dtype", "shape"), "a fully valid tile of that dtype and shape, read in several windows"),
    **{
        name: (
            (*kinds, "shape", "rest", "shape", "rest"),
            f"{what} on tiles of that shape cost less on one row; the reshape to it, the row's shape, the reshape back",
        )
        for name, kinds, what in (
            ("laid", ("dtype",), "elementwise operations"),
            ("laid_exp", ("dtype",), "a difference and its exponential"),
            ("laid_cast", ("dtype", "dtype"), "native conversions"),
            ("laid_row", (), "operations"),
        )
    },
    "literal": (("value",), "a literal number"),
    "nonzero": (("value",), "a literal that no dtype rounds to zero"),
    "keeps_infinity": (
        ("dtype", "saturation"),
        "conversion to the dtype with this saturation leaves infinities alone (or the dtype has none)",
    ),
    "tall": (("value", "rest"), "a window of the tile that has all its rows"),
    "beside": (("value", "rest", "value", "rest"), "windows of a tile and of a row with the same columns"),
    "halves": (("value", "rest", "rest"), "two windows that have all rows and together all columns of the tile"),
    "offers": (("int",), "the target's assembler has that instruction (a number in ``SELDOM``)"),
    "lacking": (("int", "dtype"), "the target lacks that operation (a number in ``CIRCUMVENTED``) on the dtype"),
    "argument": (("value", "dtype"), "a scalar that the program names, no literal, and that meets tiles of the dtype"),
    "rooted": (("dtype",), "the target has one form of 1 / sqrt(x) on the dtype, as good as the two instructions"),
    "is_float": (("dtype",), "a floating-point dtype"),
    "has_arithmetic": (("dtype",), "a floating-point dtype that instructions compute in"),
    "is_compared": (("dtype",), "a dtype that comparisons take"),
    "is_integer": (("dtype",), "an integer dtype"),
    "is_signed": (("dtype",), "a signed integer dtype of whole bytes"),
    "is_unsigned": (("dtype",), "an unsigned integer dtype of whole bytes"),
    "is_size": (("dtype",), "the dtype of sizes and offsets"),
    "repeats": ((), "some operation follows itself, or has equal operands: what rules about that load for"),
    "mirrored": ((), "two operations may differ by the order of their operands only: what rules about that load for"),
    "lacks_extrema": ((), "the target has no maximum and minimum of float scalars"),
    **{
        f"{word}_of{more}": (
            ("value", "value", *["value"] * bool(more), "shape"),
            f"the {word}imum over all elements of a column{' and a number' * bool(more)}; the shape of one element",
        )
        for word in ("max", "min") for more in ("", "_and")
    },
    "widens": (("dtype", "dtype"), "every value of the first dtype is a value of the second one"),
    "narrows": (("dtype", "dtype"), "integers; the second one's range lies within the first one's"),
}


#: Facts that providers read off the program or the target, which no type and no value tells again.
GIVEN = frozenset(
    {
        "argument", "lacks_extrema", "mirrored", "repeats",
        *(f"{word}_of{more}" for word in ("max", "min") for more in ("", "_and")),
    }
)  # fmt: skip

#: Facts that the forward analysis gives.
FROM_ANALYSIS = frozenset({"fits", "finite", "within", "ordered", "one_zero", "index", "positive"})

#: Magnitudes that ``within`` tells apart, by code: an eighth and a quarter of a turn, rounded up to FP32.
BOUNDS: tuple[float, ...] = (0.7853981852531433, 1.5707963705062866)


#: Largest magnitude of an ``index``: FP32 sums of two, and products that are indices again, are exact.
MAGNITUDE = 2**22


def is_index(x: Var | Term) -> Condition:
    """Every element of ``x`` is a small integer."""
    return Condition("index", (x,))


def positive(x: Var | Term) -> Condition:
    """No element of ``x`` is negative."""
    return Condition("positive", (x,))


def mixed(x: Var) -> Condition:
    """``x`` is divided, rounding to zero, and may be negative."""
    return Condition("mixed", (x,))


#: Dtypes of ``rooted``, on targets where it holds at all.
ROOTED = ("FP32", "FP16")


def rooted(dtype: Var) -> Condition:
    """The target's 1 / sqrt(x) on the dtype is no approximation."""
    return Condition("rooted", (dtype,))


#: Operations that the instruction sets have and most assemblers lack: their rules load where they can be emitted.
SELDOM = ("tile.muladd_dst", "tile.fused_muladd", "tile.subrelu", "tile.addrelu")


def offers(operation: str) -> Condition:
    """The target's assembler has the instruction of an operation of :data:`SELDOM`."""
    return Condition("offers", (SELDOM.index(operation),))


_BITS = ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32")
#: Operations that rules make of others where a target lacks them, with the dtypes on which the rules hold. The
#: complement of UINT8 may be one of a mask, which is another operation.
CIRCUMVENTED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("tile.ands", "tile.ors", "tile.xors", "tile.rems", "tile.fmods"), _BITS),
    "tile.not_": ("INT8", "INT16", "INT32", "UINT32"),
    **dict.fromkeys(("tile.abs", "tile.relu"), _BITS),
    "tile.neg": ("INT8", "INT16", "INT32", "UINT16", "UINT32"),
    **dict.fromkeys((f"tile.{n}{s}" for n in ("add", "sub", "mul") for s in ("", "s")), ("UINT16", "UINT32")),
}


def circumvented(operation: int, dtype: DType) -> bool:
    """Whether ``lacking`` can hold of the operation (a number in :data:`CIRCUMVENTED`) on the dtype."""
    return dtype.name in list(CIRCUMVENTED.values())[operation]


def lacking(operation: str, dtype: Var | int) -> Condition:
    """The target lacks an operation of :data:`CIRCUMVENTED` on the dtype."""
    return Condition("lacking", (list(CIRCUMVENTED).index(operation), dtype))


def argument(x: Var, dtype: Var | int) -> Condition:
    """``x`` is a scalar that meets a tile of the dtype, and no literal: filling a tile converts it in the same way."""
    return Condition("argument", (x, dtype))


def windows(x: Var | Term, dtype: Var | int, shape: Var) -> Condition:
    """``x`` is a fully valid tile of which several windows are read; binds its dtype and shape."""
    return Condition("windows", (x, dtype, shape))


#: Fact tables about windows.
WINDOWS = ("windows", "tall", "beside", "halves")


#: Fact tables that end in a shape, the reshape of its tiles to one row, the row's shape and the reshape back.
LAID = ("laid", "laid_exp", "laid_cast", "laid_row")


def laid(table: str, *codes: Var) -> Condition:
    """Tiles of a shape lie without gaps and gain by standing as one row; binds how they are reshaped there and back."""
    return Condition(table, codes)


def tall(x: Var, window: Var) -> Condition:
    """The window (the rest of a slice) has all rows of ``x``."""
    return Condition("tall", (x, window))


def beside(x: Var, window: Var, row: Var, part: Var) -> Condition:
    """The window has all rows of ``x``, and ``part`` is the same columns of ``row``, which has as many."""
    return Condition("beside", (x, window, row, part))


def halves(x: Var, first: Var, second: Var) -> Condition:
    """Two windows are ``x``, side by side."""
    return Condition("halves", (x, first, second))


def within(x: Var | Term, code: int) -> Condition:
    """Every number ``x`` can be is at most ``BOUNDS[code]`` in magnitude."""
    return Condition("within", (x, code))


def ordered(x: Var | Term) -> Condition:
    """No NaN can occur in ``x``."""
    return Condition("ordered", (x,))


def one_zero(x: Var | Term) -> Condition:
    """-0 cannot occur in ``x``."""
    return Condition("one_zero", (x,))


def typed(x: Var | Term, dtype: Var | int, shape: Var) -> Condition:
    """``x`` is a tile; binds its dtype and shape."""
    return Condition("typed", (x, dtype, shape))


def literal(x: Var | Term) -> Condition:
    """``x`` is a literal number."""
    return Condition("literal", (x,))


def nonzero(x: Var | Term) -> Condition:
    """``x`` is a literal other than zero."""
    return Condition("nonzero", (x,))


def fits(x: Var | Term, dtype: Var | int) -> Condition:
    """Every value ``x`` can hold is exactly representable in ``dtype``."""
    return Condition("fits", (x, dtype))


def finite(x: Var | Term) -> Condition:
    """No infinity can occur in ``x``."""
    return Condition("finite", (x,))


def keeps_infinity(dtype: Var, saturation: Var) -> Condition:
    """A conversion to ``dtype`` with this saturation turns no infinity into a finite number."""
    return Condition("keeps_infinity", (dtype, saturation))


def is_float(dtype: Var) -> Condition:
    """A floating-point dtype."""
    return Condition("is_float", (dtype,))


def has_arithmetic(dtype: Var) -> Condition:
    """A floating-point dtype that instructions compute in: no FP8, no FP4."""
    return Condition("has_arithmetic", (dtype,))


def is_compared(dtype: Var) -> Condition:
    """A dtype that comparisons take: no FP8, no FP4, no masks."""
    return Condition("is_compared", (dtype,))


def is_integer(dtype: Var) -> Condition:
    """An integer dtype."""
    return Condition("is_integer", (dtype,))


def narrows(wide: Var, narrow: Var) -> Condition:
    """Both integers, and the range of ``narrow`` lies within that of ``wide``."""
    return Condition("narrows", (wide, narrow))


def widens(narrow: Var, wide: Var) -> Condition:
    """Every value of ``narrow`` is a value of ``wide``."""
    return Condition("widens", (narrow, wide))


def differ(a: Var, b: Var) -> Condition:
    """Unequal codes."""
    return Condition("!=", (a, b))


def dtype_holds(relation: str, dtypes: tuple[DType, ...]) -> bool:
    """Return whether a dtype fact holds; the rows of the e-graph tables and the rule checks come from here."""
    match relation:
        case "is_float":
            return dtypes[0].is_float
        case "has_arithmetic":
            return dtypes[0].is_float and not dtypes[0].is_coded
        case "is_compared":
            return dtypes[0].is_numeric and not dtypes[0].is_coded and dtypes[0].kind != "bool"
        case "rooted":
            return dtypes[0].name in ROOTED
        case "is_integer":
            return dtypes[0].is_int and dtypes[0].kind != "index"
        case "is_signed":
            return dtypes[0].kind == "int" and dtypes[0].bits >= 8
        case "is_unsigned":
            return dtypes[0].kind == "uint" and dtypes[0].bits >= 8
        case "is_size":
            return dtypes[0].kind == "index"
        case "widens":
            return valueset.representable(valueset.of_dtype(dtypes[0]), dtypes[1])
        case "narrows":
            wide, narrow = dtypes
            if not all(dtype_holds("is_integer", (d,)) for d in dtypes):
                return False
            return wide.min_value <= narrow.min_value and narrow.max_value <= wide.max_value
        case _:
            raise KeyError(relation)


def infinity_kept(dtype: DType, saturation: int) -> bool:
    """The ``keeps_infinity`` fact; ``saturation`` is a code of :data:`SATURATION_CODES`."""
    return not (dtype.has_inf and CODE_SATURATIONS[saturation] == "on")


def dtype_rows() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield every row of the fixed dtype tables as (relation, codes)."""
    numeric = [(i, d) for i, d in enumerate(CODE_DTYPES) if d.is_numeric]
    kinds = ("is_float", "has_arithmetic", "is_compared", "is_integer", "is_signed", "is_unsigned", "is_size")
    for relation in kinds:
        yield from ((relation, (i,)) for i, d in numeric if dtype_holds(relation, (d,)))
    for i, a in numeric:
        yield from (("narrows", (i, j)) for j, b in numeric if dtype_holds("narrows", (a, b)))
        yield from (("widens", (i, j)) for j, b in numeric if i != j and dtype_holds("widens", (a, b)))
        yield from (("keeps_infinity", (i, s)) for s in range(len(CODE_SATURATIONS)) if infinity_kept(a, s))


def value_fits(values: valueset.ValueSet, dtype: DType) -> bool:
    """The ``fits`` fact."""
    return valueset.representable(values, dtype)


def value_finite(values: valueset.ValueSet) -> bool:
    """The ``finite`` fact."""
    return not values.inf


def value_within(values: valueset.ValueSet, code: int) -> bool:
    """The ``within`` fact."""
    return not values.inf and -BOUNDS[code] <= values.lo and values.hi <= BOUNDS[code]


def value_ordered(values: valueset.ValueSet) -> bool:
    """The ``ordered`` fact."""
    return not values.nan


def value_one_zero(values: valueset.ValueSet) -> bool:
    """The ``one_zero`` fact."""
    return not values.negative_zero


def value_index(values: valueset.ValueSet) -> bool:
    """The ``index`` fact."""
    plain = not (values.nan or values.inf or values.negative_zero)
    return plain and values.grid >= 0 and values.lo >= -MAGNITUDE and values.hi <= MAGNITUDE


def value_positive(values: valueset.ValueSet) -> bool:
    """The ``positive`` fact."""
    return not (values.nan or values.minus_inf) and values.lo >= 0


#: Literals of at least this magnitude are no zero in any dtype with arithmetic (FP16's smallest number).
LEAST = 2.0**-24


def literal_holds(relation: str, value: int | float) -> bool:
    """A fact about a literal, whatever the dtype of the tile it meets."""
    match relation:
        case "literal":
            return True
        case "ordered":
            return value == value
        case "nonzero":
            return abs(value) >= LEAST
        case "one_zero":
            return value <= -LEAST or (value >= 0 and math.copysign(1.0, value) > 0)
        case _:
            raise KeyError(relation)


#: Facts that literals have.
OF_LITERALS = ("literal", "ordered", "one_zero", "nonzero")
