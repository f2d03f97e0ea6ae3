"""Constant folding: operations on tiles that hold one number, carried out at compile time in the tile's own dtype.

The numbers are computed with the operations' own meanings, so that every step rounds as it would on the device.
Rows come from a walk over the region's constant tiles (``rewrite/folding.py``).
"""

from __future__ import annotations

from ..ir import lazy_numpy as np
from ..ir.codes import decode
from ..ir.convert import convert
from ..ir.dtypes import FP32, INDEX, DType
from ..ir.ops._math import scalar_like
from ..ir.program import Const
from ..ir.tilearray import Arr
from .arithmetic import d, op, rest, sh
from .casts import a, b, cast, m, s
from .check_eval import Unfit, Valued, evaluate
from .computed import Computed, Function, any_number, computed, declare
from .rule import Pattern, Term, rule, values
from .terms import CODE_DTYPES, CODE_MODES, CODE_SATURATIONS, plain_args

(x, c, c1, c2, r, like) = values("x c c1 c2 r like")

#: Operations that are carried out on constant tiles: with a scalar, and alone.
FOLDED_SCALAR = ("adds", "subs", "muls", "divs", "maximums", "minimums")
FOLDED_ALONE = ("neg", "abs")


def _literal_of(data: Arr, dtype: DType) -> tuple[Const, ...] | None:
    number = decode(data.reshape(-1)[:1], dtype)[0].item()
    if number != number:
        return None
    if not dtype.is_float and number >= 2**63:  # literals are 64 bits, signed
        return None
    return (Const(float(number), FP32),) if dtype.is_float else (Const(int(number), INDEX),)


def _element(c: Const, dtype: DType) -> Valued:
    return Valued.tile(np.asarray([scalar_like(c.value, dtype)]).astype(dtype.storage), dtype)


def operated(name: str) -> Function:
    """Return the function that carries out an operation on a constant tile, and a scalar if it takes one."""

    def run(*given: Const | DType) -> tuple[Const, ...] | None:
        *literals, dtype = given
        assert isinstance(dtype, DType)
        term = Term(f"tile.{name}", plain_args(f"tile.{name}", dtype), (x, c)[: len(literals)])
        try:
            known = {x: _element(literals[0], dtype)}  # type: ignore[arg-type]
            if len(literals) == 2:
                known[c] = Valued.scalar(literals[1].value, literals[1].dtype)  # type: ignore[union-attr]
            with np.errstate(all="ignore"):
                results = [evaluate(term, {}, known, other).data for other in (False, True)]
        except (Unfit, OverflowError):
            return None
        # What the documents leave open (zeros of both signs as operands of max and min) is not folded.
        return _literal_of(results[0], dtype) if results[0].tobytes() == results[1].tobytes() else None

    return run


def _converted(c: Const, src: DType, dst: DType, mode: str, saturation: str | None) -> tuple[Const, ...] | None:
    on = saturation == "on" if saturation is not None else not dst.is_float
    try:
        with np.errstate(all="ignore"):
            return _literal_of(convert(_element(c, src).data, src, dst, mode, on), dst)
    except (Unfit, OverflowError):
        return None


def converted(c: Const, src: int, dst: int, mode: int, saturation: int) -> tuple[Const, ...] | None:
    """Return the literal that a constant tile becomes by a conversion, given by codes."""
    return _converted(c, CODE_DTYPES[src], CODE_DTYPES[dst], CODE_MODES[mode], CODE_SATURATIONS[saturation])


def two_numbers(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    """Draw two literals."""
    return any_number(rng, dtype) + any_number(rng, dtype)


declare(
    {
        **{
            f"folded_{name}": Computed(
                f"a literal, another one, and what {name} makes of them", 2, 1, operated(name), two_numbers, folds=True
            )
            for name in FOLDED_SCALAR
        },
        **{
            f"folded_{name}": Computed(
                f"a literal, and what {name} makes of it", 1, 1, operated(name), any_number, folds=True
            )
            for name in FOLDED_ALONE
        },
        "converted": Computed(
            "a literal, and what a conversion makes of it", 1, 1, _converted, any_number,
            codes=("dtype", "dtype", "mode", "saturation"), folds=True,
        ),
    }
)  # fmt: skip


def _rules() -> None:
    reason = "the number is computed once, in the dtype of the tile, with the rounding of every step"

    def constants(dtype: object) -> list[tuple[str, Pattern, Pattern]]:
        full, spread = (dtype, sh, rest), (dtype, sh)
        return [
            ("full", Term("tile.full", full, (c1,)), Term("tile.full", full, (r,))),  # type: ignore[arg-type]
            ("expands", Term("tile.expands", spread, (like, c1)), Term("tile.expands", spread, (like, r))),  # type: ignore[arg-type]
        ]

    for (kind, constant, result), (_, narrow, _), (_, _, wide) in zip(constants(d), constants(a), constants(b)):
        for name in FOLDED_SCALAR:
            rule(
                f"fold.{name}.{kind}", lhs=op(name, constant, c2), rhs=result,
                when=[computed(f"folded_{name}", c1, c2, dtype=d, gives=(r,))], contract="exact", reason=reason,
            )  # fmt: skip
        for name in FOLDED_ALONE:
            rule(
                f"fold.{name}.{kind}", lhs=op(name, constant), rhs=result,
                when=[computed(f"folded_{name}", c1, dtype=d, gives=(r,))], contract="exact", reason=reason,
            )  # fmt: skip
        if kind == "full":
            rule(
                "fold.cast", lhs=cast(narrow, a, b, m, s), rhs=wide,
                when=[computed("converted", c1, dtype=a, more=(b, m, s), gives=(r,))],
                contract="exact", reason="the number is converted once, at compile time",
            )  # fmt: skip


_rules()
