"""Operations that a target lacks on integer dtypes, made of those that it has: exact for every value.

An instruction that takes a scalar may take fewer dtypes than the one that takes a tile of it. The rules load where the
target lacks the operation on a dtype of the region: elsewhere none of them makes anything cheaper.
"""

from __future__ import annotations

from .arithmetic import d, op, sh
from .computed import computed
from .facts import lacking
from .recipes.terms import whole
from .rule import Condition, Term, rule, values
from .terms import DTYPE_CODES

(x, c, n) = values("x c n")


def _scalar_operands() -> None:
    for name, of_tiles in (("ands", "and_"), ("ors", "or_"), ("xors", "xor"), ("rems", "rem"), ("fmods", "fmod")):
        rule(
            f"lacking.{name}", lhs=op(name, x, c), rhs=op(of_tiles, x, op("expands", x, n)),
            when=[lacking(f"tile.{name}", d), computed("as_held", c, dtype=d, gives=(n,))], contract="exact",
            reason="every element of the second tile is the scalar; the instruction for two tiles takes the dtype",
        )  # fmt: skip


def _others() -> None:
    rule(
        "lacking.abs", lhs=op("abs", x), rhs=op("maximum", x, op("neg", x)), when=[lacking("tile.abs", d)],
        contract="exact", reason="the larger of a number and its negation; the least integer wraps to itself in both",
    )  # fmt: skip
    rule(
        "lacking.neg", lhs=op("neg", x), rhs=op("sub", op("expands", x, whole(0)), x), when=[lacking("tile.neg", d)],
        contract="exact", reason="integers wrap in a negation as in a difference from 0",
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
    words = DTYPE_CODES["UINT32"]
    ones = Term("tile.expands", (words, sh), (x, whole(2**32 - 1)))
    rule(
        "lacking.not.words", lhs=Term("tile.not_", (words, sh), (x,)), rhs=Term("tile.xor", (words, sh), (x, ones)),
        when=[lacking("tile.not_", words)], contract="exact", reason="every bit changes",
    )  # fmt: skip


_scalar_operands()
_others()
