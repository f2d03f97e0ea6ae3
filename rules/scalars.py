"""Rules on scalar terms: plain operations to LLVM intrinsics by kind, kept forms to plain ones, cheaper integers.

They speak of the same e-graph as the tile rules. Which of the equal forms a function may use is a matter of price:
ordinary kernels are written with the assembler's ``arith`` subset, SIMT code with LLVM intrinsics.
"""

from __future__ import annotations

from ..ir.dtypes import BOOL
from ..ir.program import index
from .computed import computed
from .facts import is_float, ordered, positive
from .rule import Condition, Term, Var, rule
from .terms import DTYPE_CODES, rest_code

_a = Var("a", "dtype")
_x, _y, _c, _k, _m, _t, _z = (Var(n, "value") for n in "xyckmtz")
_row = Var("row", "shape")
_SCALAR = 0  # the shape code of scalars
_FP32 = DTYPE_CODES["FP32"]


def _term(op: str, *children: Var | Term, dtype: Var | int = _a) -> Term:
    return Term(op, (dtype, _SCALAR), children)


def _rule(name: str, lhs: Term, rhs: Term, when: list[Condition], reason: str) -> None:
    rule(name, lhs=lhs, rhs=rhs, when=when, contract="exact", reason=reason)


def _is(relation: str) -> Condition:
    return Condition(relation, (_a,))


#: The target has no maximum and minimum of float scalars.
LACKS_EXTREMA = Condition("lacks_extrema", ())


def _extrema() -> None:
    for word, better in (("max", "gt"), ("min", "lt")):
        plain = _term(f"scalar.{word}", _x, _y)
        kinds = ((is_float(_a), f"{word}num"), (_is("is_signed"), f"s{word}"), (_is("is_unsigned"), f"u{word}"))
        for kind, stem in kinds:
            reason = "the intrinsic of the operands' kind; no NaN propagation"
            _rule(f"scalar.{word}.{stem}", plain, _term(f"llvm.{stem}", _x, _y), [kind], reason)
        picked = _term(f"scalar.{better}", _x, _y, dtype=DTYPE_CODES[BOOL.name])
        _rule(f"scalar.{word}.size", plain, _term("scalar.select", picked, _x, _y), [_is("is_size")],
              "sizes are compared and selected")  # fmt: skip
        _rule(f"pto.f{word}.plain", _term(f"pto.f{word}", _x, _y), plain, [is_float(_a)],
              "the kept form has the meaning of the plain one")  # fmt: skip


def _compared() -> None:
    """Float extrema by comparison, for targets without the intrinsic: the same but for the sign of equal zeros."""
    boolean = DTYPE_CODES[BOOL.name]
    for word, better in (("max", "gt"), ("min", "lt")):
        first = _term("scalar.or_", _term(f"scalar.{better}", _x, _y, dtype=boolean),
                      _term("scalar.ne", _y, _y, dtype=boolean), dtype=boolean)  # fmt: skip
        _rule(f"scalar.{word}.compared", _term(f"scalar.{word}", _x, _y), _term("scalar.select", first, _x, _y),
              [LACKS_EXTREMA],
              "the better number, or the other operand where one is NaN; of equal zeros either may come")  # fmt: skip


def _reduced() -> None:
    """Maxima and minima over everything in a column, read element by element: one reduction and one read."""
    for word in ("max", "min"):
        best = _term(f"scalar.{word}", _x, _y, dtype=_FP32)
        origin = rest_code("tile.read", {}, ((0, 0),), (None, (index(0), index(0))))
        one = Term("tile.read", (_FP32, _SCALAR, origin), (Term(f"tile.col_{word}", (_FP32, _row), (_t,)),))
        reason = "the elements are combined in the tile; of equal zeros either may come"
        _rule(f"scalar.{word}.reduced", best, one,
              [Condition(f"{word}_of", (best, _t, _row)), ordered(_t)], reason)  # fmt: skip
        _rule(f"scalar.{word}.reduced-and", best, _term(f"scalar.{word}", one, _z, dtype=_FP32),
              [Condition(f"{word}_of_and", (best, _t, _z, _row)), ordered(_t)], reason)  # fmt: skip


def _mathematics() -> None:
    for plain, kept, intrinsic in (
        ("abs", "absf", "fabs"), ("sqrt", "sqrt", "sqrt"), ("exp", "exp", "exp"), ("log", "log", "log"),
    ):  # fmt: skip
        made, meant = _term(f"llvm.{intrinsic}", _x), _term(f"scalar.{plain}", _x)
        # The others take floats only.
        kind = [is_float(_a)] if plain == "abs" else []
        _rule(f"scalar.{plain}.{intrinsic}", meant, made, kind, "the intrinsic")
        _rule(f"pto.{kept}.plain", _term(f"pto.{kept}", _x), meant, [is_float(_a)], "the kept form means the plain one")
    for fact in ("is_signed", "is_size"):
        _rule(f"scalar.abs.{fact[3:]}", _term("scalar.abs", _x), _term("llvm.abs", _x), [_is(fact)], "the intrinsic")
    meant = _term("scalar.pow", _x, _y)
    _rule("scalar.pow.pow", meant, _term("llvm.pow", _x, _y), [], "the intrinsic")
    _rule("pto.pow.plain", _term("pto.pow", _x, _y), meant, [is_float(_a)], "the kept form means the plain one")


def _powers_of_two() -> None:
    power = computed("two_to", _c, dtype=_a, gives=(_k, _m))
    shift, mask = _term("scalar.shr", _x, _k), _term("scalar.bit_and", _x, _m)
    for word, made, when, reason in (
        ("floordiv", shift, [power], "an arithmetic shift rounds down, as floor division does"),
        ("mod", mask, [power], "the low bits are the remainder of floor division"),
        ("div", shift, [positive(_x), power], "truncation rounds down where nothing is negative"),
        ("rem", mask, [positive(_x), power], "the low bits are the remainder where nothing is negative"),
        ("mul", _term("scalar.shl", _x, _k), [power], "both wrap alike"),
    ):
        _rule(f"scalar.{word}.power-of-two", _term(f"scalar.{word}", _x, _c), made, when, reason)


_extrema()
_compared()
_reduced()
_mathematics()
_powers_of_two()
