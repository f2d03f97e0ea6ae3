"""Operations that a target lacks on integer dtypes, made of those that it has: exact for every value.

An instruction that takes a scalar may take fewer dtypes than the one that takes a tile of it. The rules load where the
target lacks the operation on a dtype of the region: elsewhere none of them makes anything cheaper.
"""

from __future__ import annotations

from ..ir.dtypes import INT16, INT32, UINT16, UINT32, DType
from .arithmetic import d, op, sh
from .computed import computed
from .facts import argument, lacking, typed
from .recipes.terms import view, whole
from .rule import Condition, Pattern, Term, rule, values
from .terms import DTYPE_CODES

(x, y, c, n, like) = values("x y c n like")


#: The tile over which a number is spread: of all tiles of the type one, so that equal numbers are spread once.
_LIKE = typed(like, d, sh)
_OF_TILES = {"ands": "and_", "ors": "or_", "xors": "xor", "rems": "rem", "fmods": "fmod"}
_SUMS = ("add", "sub", "mul")


def _scalar_operands() -> None:
    for name, of_tiles in _OF_TILES.items():
        rule(
            f"lacking.{name}", lhs=op(name, x, c), rhs=op(of_tiles, x, op("expands", like, n)), contract="exact",
            when=[lacking(f"tile.{name}", d), _LIKE, computed("as_held", c, dtype=d, gives=(n,))],
            reason="every element of the second tile is the scalar; the instruction for two tiles takes the dtype",
        )  # fmt: skip
    for name, of_tiles in (_OF_TILES | {f"{name}s": name for name in _SUMS}).items():
        rule(
            f"lacking.{name}.argument", lhs=op(name, x, c), rhs=op(of_tiles, x, op("expands", like, c)),
            when=[lacking(f"tile.{name}", d), _LIKE, argument(c, d)], contract="exact",
            reason="every element of the second tile is the scalar; the instruction for two tiles takes the dtype",
        )  # fmt: skip


def _sums() -> None:
    """Sums, differences and products of unsigned numbers: the low bits of all three are the same without a sign."""
    for unsigned, signed in ((UINT16, INT16), (UINT32, INT32)):
        for name in _SUMS:
            rule(
                f"lacking.{name}.{unsigned}", lhs=_of(unsigned, name, x, y),
                rhs=view(_of(signed, name, view(x, signed), view(y, signed)), unsigned),
                when=[lacking(f"tile.{name}", DTYPE_CODES[unsigned.name])], contract="exact",
                reason="sums, differences and products wrap to the same bits whether the highest one is a sign or not",
            )  # fmt: skip
            rule(
                f"lacking.{name}s.{unsigned}", lhs=_of(unsigned, f"{name}s", x, c),
                rhs=view(_of(signed, f"{name}s", view(x, signed), n), unsigned),
                when=[lacking(f"tile.{name}s", DTYPE_CODES[unsigned.name]),
                      computed("as_signed", c, dtype=DTYPE_CODES[unsigned.name], gives=(n,))],
                contract="exact",
                reason="sums, differences and products wrap to the same bits whether the highest one is a sign or not",
            )  # fmt: skip


def _of(dtype: DType, name: str, *children: Pattern) -> Term:
    return Term(f"tile.{name}", (DTYPE_CODES[dtype.name], sh), children)


def _others() -> None:
    rule(
        "lacking.relu", lhs=op("relu", x), rhs=op("maximums", x, whole(0)), contract="exact",
        when=[Condition("is_signed", (d,)), lacking("tile.relu", d)], reason="the larger of a number and 0",
    )  # fmt: skip
    for name in ("relu", "abs"):
        rule(
            f"lacking.{name}.unsigned", lhs=op(name, x), rhs=x, contract="exact",
            when=[Condition("is_unsigned", (d,)), lacking(f"tile.{name}", d)],
            reason="no number without a sign is below 0",
        )  # fmt: skip
    rule(
        "lacking.abs", lhs=op("abs", x), rhs=op("maximum", x, op("neg", x)),
        when=[Condition("is_signed", (d,)), lacking("tile.abs", d)],
        contract="exact", reason="the larger of a number and its negation; the least integer wraps to itself in both",
    )  # fmt: skip
    rule(
        "lacking.neg", lhs=op("neg", x), rhs=op("sub", op("expands", like, whole(0)), x),
        when=[lacking("tile.neg", d), _LIKE], contract="exact",
        reason="integers wrap in a negation as in a difference from 0",
    )  # fmt: skip
    signed = [Condition("is_signed", (d,)), lacking("tile.not_", d)]
    rule(
        "lacking.not.sum", lhs=op("not_", x), rhs=op("adds", op("neg", x), whole(-1)), when=signed,
        contract="exact", reason="the complement of the bits of x is -x - 1, which wraps",
    )  # fmt: skip
    rule(
        "lacking.not.bits", lhs=op("not_", x), rhs=op("xors", x, whole(-1)), when=signed,
        contract="exact", reason="every bit changes",
    )  # fmt: skip
    ones = _of(UINT32, "expands", like, whole(2**32 - 1))
    rule(
        "lacking.not.words", lhs=_of(UINT32, "not_", x), rhs=_of(UINT32, "xor", x, ones),
        when=[lacking("tile.not_", DTYPE_CODES["UINT32"]), typed(like, DTYPE_CODES["UINT32"], sh)],
        contract="exact", reason="every bit changes",
    )  # fmt: skip


_scalar_operands()
_sums()
_others()
