"""Literals computed from literals: the fact tables whose last columns are found by arithmetic, exactly.

A row ``inverse(c, d, r)`` says of a literal ``c`` met by a tile of dtype ``d`` that ``r`` is the literal 1 / c. Rows
are made for the literals of a region (``rewrite/providers.py``); the rule checks draw literals by ``example``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..ir import lazy_numpy as np
from ..ir.codes import decode
from ..ir.dtypes import BF16, DTYPES, FP16, FP32, INDEX, INT32, DType
from ..ir.literals import HALVES_AND_SINGLE, nearest, wrapped
from ..ir.ops._math import scalar_like
from ..ir.program import Const
from .facts import FACTS, MAGNITUDE, dtype_holds
from .rule import Condition, Term, Var, VarKind
from .terms import CODE_DTYPES, CODE_MODES, CODE_SATURATIONS

#: Results of a table for given literals and the dtype of the tile they meet; ``None``: no row.
Function = Callable[..., tuple[Const, ...] | None]


@dataclass(frozen=True)
class Computed:
    """A table of literals: ``inputs`` literals, a dtype (or ``codes``), then the results of ``function``.

    ``example`` draws input literals that often have a row. ``everywhere``: of two dtypes, the first is any
    of the region and the second that of the tiles a literal meets. ``folds``: rows come from the walk
    over a region (``rewrite/folding.py``); rules about the table load where there are any. ``among``: whether
    there can be rows for some dtypes.
    """

    meaning: str
    inputs: int
    outputs: int
    function: Function
    example: Callable[[np.random.Generator, DType], tuple[Const, ...]]
    codes: tuple[VarKind, ...] = ("dtype",)
    everywhere: bool = False
    folds: bool = False
    among: Callable[..., bool] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The kinds of the table's columns."""
        return (*["value"] * self.inputs, *self.codes, *["value"] * self.outputs)


#: The least normal number of each floating-point dtype with arithmetic.
_LEAST = {FP32: 2.0**-126, BF16: 2.0**-126, FP16: 2.0**-14}


def held(value: float, dtype: DType) -> bool:
    """Return whether a floating-point dtype holds a number exactly, as a normal number."""
    least = _LEAST.get(dtype)
    return least is not None and math.isfinite(value) and abs(value) >= least and nearest(value, dtype) == value


def power(value: int | float) -> int | None:
    """Return k where the number is 2**k or -2**k."""
    mantissa, exponent = math.frexp(value) if value and math.isfinite(value) else (0.0, 0)
    return exponent - 1 if abs(mantissa) == 0.5 else None


def _inverse(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    if not dtype.is_float or power(c.value) is None:
        return None
    inverse = 1.0 / c.value
    return (Const(inverse, FP32),) if held(float(c.value), dtype) and held(inverse, dtype) else None


def _minus(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    if dtype.is_float:
        return (Const(-float(c.value), FP32),) if c.value == c.value else None
    if dtype is not INT32 or not isinstance(c.value, int) or abs(c.value) >= 2**31:
        return None
    return (Const(-c.value, INDEX),)


def _is_word(dtype: DType) -> bool:
    """Whether tiles of the dtype are computed with as integers."""
    return dtype.kind in ("int", "uint") and dtype.bits in (8, 16, 32)


def _is_plain(dtype: DType) -> bool:
    """Whether tiles of the dtype are computed with as integers without a sign."""
    return _is_word(dtype) and not dtype.signed


def _mask(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    if not _is_word(dtype) or not isinstance(c.value, int) or isinstance(c.value, bool):
        return None
    if not 2 <= c.value <= dtype.max_value:
        return None
    k = power(c.value)
    return None if k is None else (Const(k, INDEX), Const(c.value - 1, INDEX))


def _signed_mask(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    found = _mask(c, dtype) if dtype.signed else None
    return None if found is None else (*found, Const(dtype.bits - 1, INDEX))


def _only_two(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    found = _signed_mask(c, dtype) if c.value == 2 else None
    return None if found is None else found[2:]


def _two_to(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    if not dtype.is_int or isinstance(c.value, bool) or not isinstance(c.value, int):
        return None
    if not 0 < c.value <= dtype.max_value or c.value & (c.value - 1):
        return None
    return Const(c.value.bit_length() - 1, c.dtype), Const(c.value - 1, c.dtype)


def _whole(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    if dtype is not FP32 or not abs(c.value) <= MAGNITUDE or c.value != int(c.value):
        return None
    return None if c.value == 0 and math.copysign(1.0, c.value) < 0 else (Const(int(c.value), INDEX),)


def _halving(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    k = power(c.value)
    if dtype is not FP32 or k is None or c.value < 0 or not -22 <= k <= -1:
        return None
    return (Const(-k, INDEX),)


def product_of(a: Const, b: Const, dtype: DType) -> tuple[Const, ...] | None:
    """Return the product of two numbers where a floating-point dtype holds all three exactly, as normal numbers."""
    if not dtype.is_float or not (held(float(a.value), dtype) and held(float(b.value), dtype)):
        return None
    # Two significands of at most 24 bits: double precision holds the product exactly.
    product = float(a.value) * float(b.value)
    return (Const(product, FP32),) if held(product, dtype) else None


def _shrunk(a: Const, b: Const, dtype: DType) -> tuple[Const, ...] | None:
    # Below the normal numbers x * 2**-k is rounded; what is left of it times b must stay far below 2**-25.
    k = power(a.value)
    if dtype is not FP32 or k is None or not -64 <= k <= 0 or not abs(b.value) <= 2.0**64:
        return None
    return product_of(a, b, dtype)


def _parted(a: Const, b: Const, dtype: DType) -> tuple[Const, ...] | None:
    inverse = _inverse(a, dtype)
    return _shrunk(inverse[0], b, dtype) if inverse is not None else None


def _slope(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    if not dtype.is_float or not math.isfinite(c.value):
        return None
    return () if 0 < _met(c, dtype) <= 1 else None


def _as_held(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    whole = dtype.is_int and math.isfinite(c.value) and float(c.value).is_integer()
    return (Const(wrapped(int(c.value), dtype), INDEX),) if whole else None


def _as_signed(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    return _as_held(c, DTYPES[f"INT{dtype.bits}"]) if _is_plain(dtype) else None


def _above_zero(c: Const, dtype: DType) -> tuple[Const, ...] | None:
    return () if c.value > 0 and math.isfinite(c.value) and _met(c, dtype) > 0 else None


def _ascending(lo: Const, hi: Const, dtype: DType) -> tuple[Const, ...] | None:
    if dtype.is_int and not (math.isfinite(lo.value) and math.isfinite(hi.value)):
        return None
    return () if _met(lo, dtype) <= _met(hi, dtype) else None


def _met(c: Const, dtype: DType) -> int | float:
    """Return the number a literal is where it meets a tile of a dtype."""
    if dtype in HALVES_AND_SINGLE:
        return nearest(float(c.value), dtype)
    if dtype.is_int:
        return wrapped(int(c.value), dtype)
    met: int | float = decode(np.asarray([scalar_like(c.value, dtype)]).astype(dtype.storage), dtype)[0].item()
    return met


def _exactly(c: Const, *dtypes: DType) -> tuple[Const, ...] | None:
    if not math.isfinite(c.value) or not all(dtype_holds("has_arithmetic", (d,)) for d in dtypes):
        return None
    return () if c.value == 0 or all(held(float(c.value), d) for d in dtypes) else None


def _bound(c: Const, *dtypes: DType) -> tuple[Const, ...] | None:
    # A number that is rounded to a zero may lose its sign to a bound of zero, by a choice the documents leave open.
    return _exactly(c, *dtypes) if c.value != 0 and dtypes[0].bits < dtypes[1].bits else None


def _power_held(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    """An integer power of two, mostly one that the dtype holds, often 2."""
    return (Const(2 ** max(1, int(rng.integers(-2, min(dtype.bits or 32, 32)))), INDEX),)


def _mostly_two(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    return (Const(int(rng.choice([2, 2, 2, 4])), INDEX),)


def _any_power(low: int, high: int) -> Callable[..., tuple[Const, ...]]:
    def draw(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
        k = int(rng.integers(low, high))
        if dtype.is_int:
            return (Const(2 ** abs(k), INDEX),)
        return (Const(math.ldexp(float(rng.choice([1.0, 1.0, -1.0])), k), FP32),)

    return draw


def _positive_power(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    return (Const(1 << int(rng.integers(0, (dtype.bits or 64) - dtype.signed)), dtype),)


def any_number(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    if dtype.is_int:
        return (Const(int(rng.integers(-(2**31) + 1, 2**31)), INDEX),)
    numbers = np.array([0.0, -0.0, 1.0, math.inf, *rng.standard_normal(4) * 100], np.float32)
    return (Const(float(rng.choice(numbers)), FP32),)


def _pattern(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    """An integer of the dtype, or of the other sign with as many bits."""
    bits = dtype.bits or 64
    return (Const(int(rng.integers(-(2 ** (bits - 1)), min(2**bits, 2**63))), INDEX),)


def _small(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    return (Const(float(rng.integers(-300, 300)), FP32),)


def _small_or_zero(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    return (Const(float(rng.choice([0.0, -0.0])), FP32),) if rng.random() < 0.25 else _small(rng, dtype)


def _two_short(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    a, b = (float(n) / 8 for n in rng.integers(-60, 60, 2))
    return Const(a, FP32), Const(b, FP32)


def _two_bounds(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    """Two bounds, mostly in order and often zeros."""
    if dtype.is_int:
        least, most = (int(n) for n in sorted(rng.integers(-3 if dtype.signed else 0, 9, 2)))
        return Const(least, INDEX), Const(most, INDEX)
    numbers = [math.copysign(float(n), s) for n, s in zip(rng.integers(0, 3, 2), rng.choice([1.0, -1.0], 2))]
    low, high = sorted(numbers) if rng.random() < 0.85 else numbers
    return Const(low, FP32), Const(high, FP32)


def _shrunk_and_any(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    number = float(rng.integers(-60, 60)) * 2.0 ** int(rng.integers(-6, 60))
    return (*_any_power(-64, 1)(rng, FP32), Const(number, FP32))


def _parted_and_any(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    a, b = _shrunk_and_any(rng, dtype)
    return Const(1 / a.value, FP32), b


def _fraction(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    return (Const(float(rng.choice([0.01, 0.2, 1.0, 0.5, 1.5, 1e-9])), FP32),)


def _small_or_held(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    """A small number, or one with all the digits that the first dtype has."""
    if dtype not in HALVES_AND_SINGLE or rng.random() < 0.5:
        return _small_or_zero(rng, dtype)
    return (Const(nearest(float(4 * rng.standard_normal()), dtype), FP32),)


#: Table -> how its rows come about.
COMPUTED: dict[str, Computed] = {
    "inverse": Computed("a power of two, and 1 divided by it", 1, 1, _inverse, _any_power(-30, 30)),
    "minus": Computed("a literal and its negation", 1, 1, _minus, any_number),
    "power": Computed("an integer 2**k, k, and 2**k - 1", 1, 2, _mask, _power_held, among=_is_word),
    "signed_power": Computed(
        "an integer 2**k, k, 2**k - 1 and the number of the sign bit", 1, 3, _signed_mask, _power_held, among=_is_word
    ),
    "only_two": Computed(
        "the integer 2, and the number of the sign bit", 1, 1, _only_two, _mostly_two, among=_is_word
    ),
    "two_to": Computed("a scalar's 2**k, k, and 2**k - 1", 1, 2, _two_to, _positive_power),
    "whole": Computed("an integral number and it as an integer", 1, 1, _whole, _small),
    "halving": Computed("2**-k and k", 1, 1, _halving, _any_power(-22, 0)),
    "product": Computed("two literals and their product, which is exact", 2, 1, product_of, _two_short),
    "shrunk": Computed("2**-k, a number, and their product", 2, 1, _shrunk, _shrunk_and_any),
    "parted": Computed("2**k, a number, and their quotient", 2, 1, _parted, _parted_and_any),
    "slope": Computed("a number above 0 and up to 1, in the dtype too", 1, 0, _slope, _fraction),
    "ascending": Computed(
        "two bounds, the first not above the second one, in the dtype too", 2, 0, _ascending, _two_bounds
    ),
    "as_signed": Computed(
        "an integer, and the signed one with the bits by which the unsigned dtype holds it",
        1, 1, _as_signed, _pattern, among=_is_plain,
    ),
    "as_held": Computed("an integer, and it as the dtype holds its bits", 1, 1, _as_held, _pattern),
    "above_zero": Computed("a number above 0, in the dtype too", 1, 0, _above_zero, any_number),
    "exactly": Computed(
        "a number that both dtypes hold", 1, 0, _exactly, _small_or_held, codes=("dtype", "dtype"), everywhere=True
    ),
}


def _whole_mostly(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    size = 8 if rng.random() < 0.75 else 120
    number = float(rng.integers(1, size)) * rng.choice([1.0, -1.0, 0.125])
    return (Const(float(number), FP32),)


COMPUTED["bound"] = replace(
    COMPUTED["exactly"], meaning="a number but zero that both dtypes hold, the first one narrower", function=_bound,
    example=_whole_mostly, among=lambda narrow, wide: narrow.bits < wide.bits,
)  # fmt: skip


def declare(tables: dict[str, Computed]) -> None:
    """Make tables known to rules and to the e-graph."""
    COMPUTED.update(tables)
    FACTS.update({name: (c.columns, c.meaning) for name, c in tables.items()})


declare(COMPUTED)


#: What codes stand for, by kind.
_CODED: dict[str, Any] = {"dtype": CODE_DTYPES, "mode": CODE_MODES, "saturation": CODE_SATURATIONS}


@dataclass(frozen=True)
class Asked:
    """A condition on a computed table, taken apart: the literals it is given, what its codes mean, what it gives."""

    table: Computed
    literals: tuple[Any, ...]
    kinds: tuple[Any, ...]
    gives: tuple[Any, ...]

    def row(self, *literals: Const) -> tuple[Const, ...] | None:
        """Return the literals that the table gives for these ones."""
        return self.table.function(*literals, *self.kinds)


def asked(c: Condition, code: Callable[[Any], int]) -> Asked:
    """Take a condition apart; ``code`` gives the code that a variable (or a code) stands for."""
    table = COMPUTED[c.relation]
    first, last = table.inputs, table.inputs + len(table.codes)
    kinds = tuple(_CODED[kind][code(a)] for kind, a in zip(table.codes, c.args[first:last]))
    return Asked(table, c.args[:first], kinds, c.args[last:])


def can_have_rows(c: Condition, codes: Mapping[Var, int]) -> bool:
    """Tell whether a condition may hold for dtypes: others than computed tables always may."""
    table = COMPUTED.get(c.relation)
    if table is None or table.among is None:
        return True
    row = asked(c, lambda a: codes[a] if isinstance(a, Var) else a)
    return table.among(*row.kinds)


def of_integers(c: Condition) -> bool:
    """Tell whether a condition is a computed table without rows for floating-point dtypes."""
    table = COMPUTED.get(c.relation)
    return table is not None and table.among is _is_word


def computed(
    table: str, *literals: Var | Term, dtype: Var | int, gives: tuple[Var, ...] = (), more: tuple[Var | int, ...] = ()
) -> Condition:
    """A row of a computed table: literals that the left side binds, the dtype (and further codes), what it gives."""
    made = COMPUTED[table]
    assert len(literals) == made.inputs and len(gives) == made.outputs and len(more) == len(made.codes) - 1
    return Condition(table, (*literals, dtype, *more, *gives))
