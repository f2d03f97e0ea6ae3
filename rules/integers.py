"""Rules about index arithmetic: FP32 detours on small integers, and divisions by powers of two.

Kernels compute indices in FP32, truncating products with 2**-k. Where the forward analysis knows the values to be
integers of at most 2**22 in magnitude, FP32 sums and products are exact and the same steps may run on INT32.
"""

from __future__ import annotations

from ..ir.dtypes import INDEX
from .computed import computed
from .facts import is_index, positive, typed
from .rule import Pattern, Term, Var, modes, rests, rule, saturations, shapes, values
from .terms import DTYPE_CODES, LITERAL, MODE_CODES, literal_codes, plain_rest

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


def _bits(of: Pattern) -> Term:
    """An FP32 tile seen as INT32; no instruction."""
    name = "tile.reinterpret_view"
    return Term(name, (_INT, sh, plain_rest(name)), (of,))


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
            rhs=_i(f"{side}_expand", _bits(x), Term("tile.cast", (_INT, sv, _FLOAT, m, s, 0), (v,))),
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
    power = computed("power", c, dtype=_INT, gives=(k, mask))
    rule(
        "integer.muls.power", lhs=_i("muls", x, c), rhs=_i("shls", x, k), when=[power],
        contract="exact", reason="a product with 2**k is a shift, overflow included",
    )  # fmt: skip
    rule(
        "integer.divs.power", lhs=_i("divs", x, c), rhs=_i("shrs", x, k), when=[positive(x), power],
        contract="exact", reason="a quotient by 2**k is a shift where x is not negative",
    )  # fmt: skip
    rule(
        "integer.rems.power", lhs=_i("rems", x, c), rhs=_i("ands", x, mask), when=[power],
        contract="exact", reason="the remainder with the divisor's sign keeps the low k bits, of negative numbers too",
    )  # fmt: skip
    rule(
        "integer.fmods.power", lhs=_i("fmods", x, c), rhs=_i("ands", x, mask), when=[positive(x), power],
        contract="exact", reason="the remainder keeps the low k bits where x is not negative",
    )  # fmt: skip
    rule(
        "integer.low-bits", lhs=_i("sub", x, _i("muls", _i("shrs", x, k), c)), rhs=_i("ands", x, mask), when=[power],
        contract="exact", reason="x less its multiple of 2**k keeps the low k bits",
    )  # fmt: skip
    rule(
        "integer.ands.split", lhs=_i("ands", x, mask), rhs=_i("sub", x, _i("shls", _i("shrs", x, k), k)),
        when=[computed("low", mask, dtype=_INT, gives=(k,))],
        contract="exact", reason="what a shift down and up again loses; some hardware has no bitwise and",
    )  # fmt: skip


    pairs = _i("adds", _i("muls", _i("ands", x, _number(1)), _number(2)), _number(-1))
    rule(
        "integer.partner", lhs=_i("sub", x, pairs), rhs=_i("xors", x, _number(1)),
        contract="exact", reason="x + 1 for even x, x - 1 for odd x: the lowest bit changes",
    )  # fmt: skip


def _number(value: int) -> Term:
    return Term(LITERAL, literal_codes(value, INDEX), ())


_powers()
