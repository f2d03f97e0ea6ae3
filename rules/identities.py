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
from .computed import Computed, computed, declare
from .facts import is_integer, one_zero, ordered
from .folding import operated, two_numbers
from .rule import Condition, rule, values
from .select import m, sel

(x, c, c1, c2, r) = values("x c c1 c2 r")

#: Operations with a literal of which two in a row are one: extremes of every dtype, others of integers, which wrap.
CHAINED_EXTREMES = ("maximums", "minimums")
CHAINED_INTEGERS = ("adds", "muls", "ands", "ors", "xors")
CHAINED_SHIFTS = ("shls", "shrs")
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
