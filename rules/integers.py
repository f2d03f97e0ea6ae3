"""Rules about index arithmetic: FP32 detours on small integers, and divisions by powers of two.

Kernels compute indices in FP32, truncating products with 2**-k. Where the forward analysis knows the values to be
integers of at most 2**22 in magnitude, FP32 sums and products are exact and the same steps may run on INT32.
"""

from __future__ import annotations

from ..ir.dtypes import INT32
from .arithmetic import d, op
from .computed import computed
from .facts import is_index, is_integer, mixed, positive, typed
from .recipes.terms import view, whole
from .rule import Condition, Pattern, Term, Var, modes, rests, rule, saturations, shapes, values
from .terms import DTYPE_CODES, MODE_CODES

(x, y, v, c, k, mask, n) = values("x y v c k mask n")
(sh, sv) = shapes("sh sv")
(rest,) = rests("rest")
(m,) = modes("m")
(s,) = saturations("s")
_INT, _FLOAT = DTYPE_CODES["INT32"], DTYPE_CODES["FP32"]
_RINT = MODE_CODES["rint"]


def _i(name: str, *children: Pattern) -> Term:
    return Term(f"tile.{name}", (_INT, sh), children)


def _f(name: str, *children: Pattern) -> Term:
    return Term(f"tile.{name}", (_FLOAT, sh), children)


def to_int(of: Pattern, mode: Var | int = _RINT, saturation: Var | int = 1) -> Term:
    """The conversion of FP32 to INT32."""
    return Term("tile.cast", (_INT, sh, _FLOAT, mode, saturation, 0), (of,))


def to_float(of: Pattern) -> Term:
    """The conversion of INT32 to FP32."""
    return Term("tile.cast", (_FLOAT, sh, _INT, _RINT, 0, 0), (of,))


def _detours() -> None:
    reason = "small integers: the FP32 operation is exact, so that INT32 gives the same"
    for name in ("add", "sub", "mul"):
        # Sums and differences of two indices are exact whatever they are; products are where they are indices.
        small = [is_index(_f(name, x, y))] if name == "mul" else []
        rule(
            f"index.{name}", lhs=to_int(_f(name, x, y), m, s), rhs=_i(name, to_int(x), to_int(y)),
            when=[is_index(x), is_index(y), *small], contract="exact", reason=reason,
        )  # fmt: skip
    for name in ("adds", "subs", "muls"):
        small = [is_index(_f(name, x, c))] if name == "muls" else []
        rule(
            f"index.{name}", lhs=to_int(_f(name, x, c), m, s), rhs=_i(name, to_int(x), n),
            when=[is_index(x), *small, computed("whole", c, dtype=_FLOAT, gives=(n,))],
            contract="exact", reason=reason,
        )  # fmt: skip
    vector = Term("tile.cast", (_INT, sv, _FLOAT, _RINT, 1, 0), (v,))
    for side in ("row", "col"):
        name = f"{side}_expand_add"
        rule(
            f"index.{name}", lhs=to_int(_f(name, x, v), m, s), rhs=_i(name, to_int(x), vector),
            when=[is_index(x), is_index(v), typed(v, _FLOAT, sv)],
            contract="exact", reason=reason,
        )  # fmt: skip
        rule(
            f"index.{side}_expand",
            lhs=to_int(_f(f"{side}_expand", x, v), m, s),
            rhs=_i(f"{side}_expand", view(x, INT32), Term("tile.cast", (_INT, sv, _FLOAT, m, s, 0), (v,))),
            when=[typed(v, _FLOAT, sv)],
            contract="exact",
            reason="conversion is elementwise; of the target nothing but the shape is used, so that its bits will do",
        )
    rule(
        "index.reshape",
        lhs=to_int(Term("tile.reshape", (_FLOAT, sh, rest), (x,)), m, s),
        rhs=Term("tile.reshape", (_INT, sh, rest), (Term("tile.cast", (_INT, sv, _FLOAT, m, s, 0), (x,)),)),
        when=[typed(x, _FLOAT, sv)],
        contract="exact",
        reason="conversion is elementwise: the shape may change before or after",
    )
    rule(
        "index.sub.float",
        lhs=_f("sub", x, y),
        rhs=to_float(_i("sub", to_int(x), to_int(y))),
        when=[is_index(x), is_index(y)],
        contract="exact",
        reason="small integers: the difference may be taken in INT32 and converted",
    )
    for mode, facts in (("trunc", [positive(x)]), ("floor", [])):
        rule(
            f"index.halving.{mode}",
            lhs=to_int(_f("muls", x, c), MODE_CODES[mode], s),
            rhs=_i("shrs", to_int(x), k),
            when=[is_index(x), *facts, computed("halving", c, dtype=_FLOAT, gives=(k,))],
            contract="exact",
            reason="rounding x / 2**k down is an arithmetic shift"
            + ("; truncation is the same where x is not negative" if facts else ""),
        )


_detours()


def _powers() -> None:
    power = computed("power", c, dtype=d, gives=(k, mask))
    rule(
        "integer.muls.power", lhs=op("muls", x, c), rhs=op("shls", x, k), when=[power],
        contract="exact", reason="a product with 2**k is a shift, overflow included",
    )  # fmt: skip
    rule(
        "integer.rems.power", lhs=op("rems", x, c), rhs=op("ands", x, mask), when=[power],
        contract="exact", reason="the remainder with the divisor's sign keeps the low k bits, of negative numbers too",
    )  # fmt: skip
    for word, known in (("", positive(x)), (".unsigned", Condition("is_unsigned", (d,)))):
        rule(
            f"integer.divs.power{word}", lhs=op("divs", x, c), rhs=op("shrs", x, k), when=[known, power],
            contract="exact", reason="a quotient by 2**k is a shift where x is not negative",
        )  # fmt: skip
        rule(
            f"integer.fmods.power{word}", lhs=op("fmods", x, c), rhs=op("ands", x, mask), when=[known, power],
            contract="exact", reason="the remainder keeps the low k bits where x is not negative",
        )  # fmt: skip
    for name in ("rems", "fmods"):
        rule(
            f"integer.{name}.one", lhs=op(name, x, whole(1)), rhs=op("ands", x, whole(0)), when=[is_integer(d)],
            contract="exact", reason="1 divides every integer",
        )  # fmt: skip
    rule(
        "integer.ands.none", lhs=op("ands", x, whole(0)), rhs=op("expands", x, whole(0)), when=[is_integer(d)],
        contract="exact", reason="no bit is left",
    )  # fmt: skip
    rule(
        "integer.low-bits", lhs=op("sub", x, op("muls", op("shrs", x, k), c)), rhs=op("ands", x, mask), when=[power],
        contract="exact", reason="x less its multiple of 2**k keeps the low k bits",
    )  # fmt: skip


def _signed_powers() -> None:
    """Quotients and remainders that round to zero: of a negative x, 2**k - 1 more, which cannot overflow."""
    power = computed("signed_power", c, dtype=d, gives=(k, mask, n))
    sign = op("shrs", x, n)
    factor, masked = op("muls", sign, mask), op("ands", sign, mask)
    for word, raised, back in (
        ("signed", op("sub", x, factor), ("add", factor)), ("masked", op("add", x, masked), ("sub", masked)),
    ):  # fmt: skip
        rule(
            f"integer.divs.power.{word}", lhs=op("divs", x, c), rhs=op("shrs", raised, k), when=[mixed(x), power],
            contract="exact", reason="a quotient by 2**k is a shift of x, raised by 2**k - 1 where it is negative",
        )  # fmt: skip
        rule(
            f"integer.fmods.power.{word}", lhs=op("fmods", x, c), rhs=op(back[0], op("ands", raised, mask), back[1]),
            when=[mixed(x), power], contract="exact",
            reason="the low k bits of x, raised by 2**k - 1 where it is negative, less what it was raised by",
        )  # fmt: skip
    rule(
        "integer.divs.two", lhs=op("divs", x, c), rhs=op("shrs", op("sub", x, sign), whole(1)),
        when=[mixed(x), computed("only_two", c, dtype=d, gives=(n,))],
        contract="exact", reason="a half rounded to zero is a shift of x, raised by 1 where it is negative",
    )  # fmt: skip


def _bits_of_both() -> None:
    pairs = _i("adds", _i("muls", _i("ands", x, whole(1)), whole(2)), whole(-1))
    rule(
        "integer.partner", lhs=_i("sub", x, pairs), rhs=_i("xors", x, whole(1)),
        contract="exact", reason="x + 1 for even x, x - 1 for odd x: the lowest bit changes",
    )  # fmt: skip
    rule(
        "xor.parts", lhs=op("xor", x, y), rhs=op("sub", op("or_", x, y), op("and_", x, y)),
        when=[is_integer(d)], contract="exact",
        reason="the bits of either less those of both, without a borrow; some hardware makes xor of several steps",
    )  # fmt: skip


_powers()
_signed_powers()
_bits_of_both()
