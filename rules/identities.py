"""Operations that change nothing, and steps that one step does: exact for every value, NaN and -0 included.

x + 0 is x but for -0, which becomes +0: a fact excludes it. x - 0 becomes x + -0 by another rule. Numbers that change
nothing and literals of chains are computed tables, whose rows come from what a region contains (``rewrite/steps.py``).
"""

from __future__ import annotations

import math

from ..ir import lazy_numpy as np
from ..ir.dtypes import FP32, INDEX, DType
from ..ir.program import Const
from .arithmetic import d, op
from .computed import Computed, computed, declare, power, product_of
from .facts import is_index, is_integer, one_zero, ordered
from .folding import operated, two_numbers
from .rule import Condition, rule, values
from .select import m, sel

(x, c, c1, c2, r) = values("x c c1 c2 r")

#: Operations with a literal of which two in a row are one: extremes of every dtype, others of integers, which wrap.
CHAINED_EXTREMES = ("maximums", "minimums")
CHAINED_INTEGERS = ("adds", "muls", "ands", "ors", "xors")
CHAINED_SHIFTS = ("shls", "shrs")
#: Tables of factors of floats of which two in a row are one: of any tile, and of one that holds small integers.
CHAINED_FACTORS = ("scaled", "scaled_index")
#: Tables of numbers that change nothing.
NEUTRAL = ("one", "adds_nothing", "plus_zero")


def chain_table(name: str) -> str:
    """Return the table that makes one literal of those of an operation carried out twice."""
    return "added_shifts" if name in CHAINED_SHIFTS else f"folded_{name}"


def _shifted(a: Const, b: Const, dtype: DType) -> tuple[Const, ...] | None:
    """Return the sum of two amounts; what hardware does from the dtype's width on is left open."""
    if not dtype.is_int or not all(isinstance(n.value, int) and n.value >= 0 for n in (a, b)):
        return None
    total = int(a.value) + int(b.value)
    return (Const(total, INDEX),) if total < dtype.bits else None


def _scaled(a: Const, b: Const, dtype: DType) -> tuple[Const, ...] | None:
    """Return the product of two factors that together round what one does: of which one only can, or two halves.

    A power of two that does not shrink is exact until it overflows, which what follows cannot take back. After a whole
    number it is, too: what that leaves below the normal numbers is a multiple of the least one, not rounded. Half of
    an odd multiple of the least number rounds to an even one, so that half of that is exact, and nearest to a quarter.
    """
    product = product_of(a, b, dtype)
    if product is None or abs(a.value) == abs(b.value) == 0.5:
        return product
    if min(abs(a.value), abs(b.value)) < 1:
        return None
    second = power(b.value) is not None and a.value == int(a.value)
    return product if power(a.value) is not None or second else None


def _scaled_index(a: Const, b: Const, dtype: DType) -> tuple[Const, ...] | None:
    """Return the product of a power of two by which no small integer becomes inexact, and any number."""
    shrinks = power(a.value) is not None and 2**-64 <= abs(a.value) <= 1
    return product_of(a, b, dtype) if dtype is FP32 and shrinks else None


def _factors(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    k, number = int(rng.integers(0, 7)), float(rng.integers(-60, 60)) / float(rng.choice([1.0, 1.0, 8.0]))
    if rng.random() < 0.2:
        k, number = -1, 0.5
    drawn = [Const(float(rng.choice([-1.0, 1.0])) * 2.0**k, FP32), Const(number, FP32)]
    return (drawn[0], drawn[1]) if rng.random() < 0.5 else (drawn[1], drawn[0])


def _shrinking(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    return Const(2.0 ** -int(rng.integers(0, 30)), FP32), Const(float(rng.integers(-600, 600)) / 8, FP32)


def _amounts(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    first, second = (int(n) for n in rng.integers(0, (dtype.bits or 64) // 2 + 2, 2))
    return Const(first, INDEX), Const(second, INDEX)


def _one(number: Const, dtype: DType) -> tuple[Const, ...] | None:
    return () if number.value == 1 and dtype.is_numeric and not dtype.is_coded else None


def _adds_nothing(number: Const, dtype: DType) -> tuple[Const, ...] | None:
    negative = math.copysign(1.0, number.value) < 0
    return () if number.value == 0 and dtype.is_numeric and (dtype.is_int or negative) else None


def _plus_zero(number: Const, dtype: DType) -> tuple[Const, ...] | None:
    return () if number.value == 0 and dtype.is_float and math.copysign(1.0, number.value) > 0 else None


def _near_one(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    value = rng.choice([-0.0, 0.0, 1.0, 1.0, -1.0])
    return (Const(int(value), INDEX) if dtype.is_int and rng.random() < 0.8 else Const(float(value), FP32),)


declare(
    {
        **{
            f"folded_{name}": Computed(
                f"a literal, another one, and what {name} makes of them", 2, 1, operated(name), two_numbers, folds=True
            )
            for name in ("ands", "ors", "xors")
        },
        "added_shifts": Computed(
            "two amounts of a shift and their sum, less than the width", 2, 1, _shifted, _amounts, folds=True
        ),
        "scaled": Computed(
            "two factors, one a power of two and none below 1, or two halves, and their product", 2, 1, _scaled,
            _factors, folds=True,
        ),
        "scaled_index": Computed(
            "2**-k, a number, and their product, of FP32", 2, 1, _scaled_index, _shrinking, folds=True
        ),
        "one": Computed("the number 1", 1, 0, _one, _near_one, folds=True),
        "adds_nothing": Computed("-0 for floats, 0 for integers", 1, 0, _adds_nothing, _near_one, folds=True),
        "plus_zero": Computed("+0, for floats", 1, 0, _plus_zero, _near_one, folds=True),
    }
)  # fmt: skip


def _chains() -> None:
    integers: list[Condition] = [is_integer(d)]
    for names, when, reason in (
        (CHAINED_EXTREMES, [], "the outer number bounds the inner one's result: their extreme bounds the operand"),
        (CHAINED_INTEGERS, integers, "integers wrap, so that the order of the steps does not matter"),
        (CHAINED_SHIFTS, [], "two shifts move as far as one by the sum, which is less than the width"),
    ):
        for name in names:
            rule(
                f"chain.{name}", lhs=op(name, op(name, x, c1), c2), rhs=op(name, x, r),
                when=[*when, computed(chain_table(name), c1, c2, dtype=d, gives=(r,))],
                contract="exact", reason=reason,
            )  # fmt: skip


def _factor_chains() -> None:
    for table, when, reason in (
        ("scaled", [], "a factor that is a power of two and does not shrink is exact, and half of a half rounds once"),
        ("scaled_index", [is_index(x)], "a power of two times a small integer is exact: only the second factor rounds"),
    ):
        lhs, rhs = op("muls", op("muls", x, c1), c2), op("muls", x, r)
        rule(
            f"chain.muls.{table.replace('_', '-')}", lhs=lhs, rhs=rhs,
            when=[*when, computed(table, c1, c2, dtype=d, gives=(r,))], contract="exact", reason=reason,
        )  # fmt: skip


def _neutral() -> None:
    one, nothing = computed("one", c, dtype=d), computed("adds_nothing", c, dtype=d)
    reason = "the number itself, NaN and zeros of both signs included"
    for name, when in (("muls", one), ("divs", one), ("adds", nothing)):
        what = "one" if when is one else "nothing"
        rule(f"{name}.{what}", lhs=op(name, x, c), rhs=x, when=[when], contract="exact", reason=reason)
    for name in ("ors", "xors", "shls", "shrs"):
        rule(
            f"{name}.nothing", lhs=op(name, x, c), rhs=x, when=[nothing], contract="exact",
            reason="the number changes no bit",
        )  # fmt: skip
    rule(
        "adds.zero", lhs=op("adds", x, c), rhs=x, when=[one_zero(x), computed("plus_zero", c, dtype=d)],
        contract="exact", reason="the number itself where it cannot be -0, which would become +0",
    )  # fmt: skip


_chains()
_factor_chains()
_neutral()


def _repetitions() -> None:
    again = Condition("repeats", ())
    for name in ("maximum", "minimum", "and_", "or_"):
        rule(
            f"{name.rstrip('_')}.self", lhs=op(name, x, x), rhs=x, when=[again], contract="exact",
            reason="both operands are the same value, which is the result whichever one is taken",
        )  # fmt: skip
    rule(
        "sel.self", lhs=sel(m, x, x), rhs=x, when=[again], contract="exact", reason="both branches are the same value"
    )
    for name, why in (("abs", "a magnitude is its own magnitude; the least integer wraps to itself"),
                      ("relu", "what is rectified stays as it is")):  # fmt: skip
        once = op(name, x)
        rule(f"{name}.{name}", lhs=op(name, once), rhs=once, when=[again], contract="exact", reason=why)
    rule(
        "relu.maximums.positive",
        lhs=op("relu", op("maximums", x, c)),
        rhs=op("maximums", x, c),
        when=[again, ordered(x), computed("above_zero", c, dtype=d)],
        contract="exact",
        reason="the larger of a number and a positive one is positive",
    )


_repetitions()
