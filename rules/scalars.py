"""Rules on scalar terms: plain operations to LLVM intrinsics by kind, kept forms to plain ones, cheaper integers.

They speak of the same terms as the tile rules but are applied by a lowering of their own
(:mod:`tilegg.extract.scalars`), since the assembler's text wants scalars as written. What a fact table holds:
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.dtypes import BOOL, INDEX, DType
from ..ir.valueset import ValueSet
from .facts import is_float
from .rule import Condition, Rule, Term, Var, variables
from .terms import CODE_DTYPES, DTYPE_CODES

#: Fact table -> (argument kinds, meaning).
SCALAR_FACTS: dict[str, tuple[tuple[str, ...], str]] = {
    "is_float": (("dtype",), "a floating-point dtype"),
    "is_signed": (("dtype",), "a signed integer dtype"),
    "is_unsigned": (("dtype",), "an unsigned integer dtype"),
    "is_size": (("dtype",), "the dtype of sizes and offsets"),
    "is_whole": (("dtype",), "integers and sizes"),
    "nonneg": (("value",), "no value below zero can occur"),
    "lacks_extrema": ((), "the target has no maximum and minimum of float scalars"),
    "power": (("value", "value", "value"), "a literal 2**k with the literals k and 2**k - 1"),
}

#: The scalar rules by name, numbered apart from the tile rules.
SCALAR_RULES: dict[str, Rule] = {}
_FIRST = 10_001

_a = Var("a", "dtype")
_x, _y, _c, _k, _m = (Var(n, "value") for n in ("x", "y", "c", "k", "m"))
_SCALAR = 0  # the shape code of scalars


def _term(op: str, *children: Var | Term, dtype: Var | int = _a) -> Term:
    return Term(op, (dtype, _SCALAR), children)


def _rule(name: str, lhs: Term, rhs: Term, when: list[Condition], reason: str) -> None:
    known = set(variables(lhs)) | {v for c in when for v in c.args if isinstance(v, Var)}
    assert known.issuperset(variables(rhs)) and name not in SCALAR_RULES
    SCALAR_RULES[name] = Rule(name, lhs, rhs, tuple(when), "exact", reason, "lower", _FIRST + len(SCALAR_RULES))


def _is(relation: str) -> Condition:
    return Condition(relation, (_a,))


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
        _rule(f"pto.f{word}.plain", _term(f"pto.f{word}", _x, _y), _term(f"llvm.{word}num", _x, _y), [is_float(_a)],
              "the kept form has the meaning of the intrinsic")  # fmt: skip


def _compared() -> None:
    """Float extrema by comparison, for targets without the intrinsic: the same but for the sign of equal zeros."""
    boolean = DTYPE_CODES[BOOL.name]
    for word, better in (("max", "gt"), ("min", "lt")):
        first = _term("scalar.or_", _term(f"scalar.{better}", _x, _y, dtype=boolean),
                      _term("scalar.ne", _y, _y, dtype=boolean), dtype=boolean)  # fmt: skip
        _rule(f"scalar.{word}.compared", _term(f"scalar.{word}", _x, _y), _term("scalar.select", first, _x, _y),
              [is_float(_a), Condition("lacks_extrema", ())],
              "the better number, or the other operand where one is NaN; of equal zeros either may come")  # fmt: skip


def _mathematics() -> None:
    for plain, kept, intrinsic in (
        ("abs", "absf", "fabs"), ("sqrt", "sqrt", "sqrt"), ("exp", "exp", "exp"), ("log", "log", "log"),
    ):  # fmt: skip
        made = _term(f"llvm.{intrinsic}", _x)
        _rule(f"scalar.{plain}.{intrinsic}", _term(f"scalar.{plain}", _x), made, [is_float(_a)], "the intrinsic")
        _rule(f"pto.{kept}.plain", _term(f"pto.{kept}", _x), made, [is_float(_a)], "the kept form means the intrinsic")
    for kind in ("is_signed", "is_size"):
        _rule(f"scalar.abs.{kind[3:]}", _term("scalar.abs", _x), _term("llvm.abs", _x), [_is(kind)], "the intrinsic")
    power = _term("llvm.pow", _x, _y)
    _rule("scalar.pow.pow", _term("scalar.pow", _x, _y), power, [is_float(_a)], "the intrinsic")
    _rule("pto.pow.plain", _term("pto.pow", _x, _y), power, [is_float(_a)], "the kept form means the intrinsic")


def _powers_of_two() -> None:
    whole, power, nonneg = _is("is_whole"), Condition("power", (_c, _k, _m)), Condition("nonneg", (_x,))
    shift, mask = _term("scalar.shr", _x, _k), _term("scalar.bit_and", _x, _m)
    for word, made, when, reason in (
        ("floordiv", shift, [whole, power], "an arithmetic shift rounds down, as floor division does"),
        ("mod", mask, [whole, power], "the low bits are the remainder of floor division"),
        ("div", shift, [whole, power, nonneg], "truncation rounds down where nothing is negative"),
        ("rem", mask, [whole, power, nonneg], "the low bits are the remainder where nothing is negative"),
        ("mul", _term("scalar.shl", _x, _k), [whole, power], "both wrap alike"),
    ):
        _rule(f"scalar.{word}.power-of-two", _term(f"scalar.{word}", _x, _c), made, when, reason)


_extrema()
_compared()
_mathematics()
_powers_of_two()


def scalar_dtype_holds(relation: str, dtype: DType) -> bool:
    """Return whether a dtype fact of the scalar rules holds."""
    match relation:
        case "is_float":
            return dtype.is_float
        case "is_signed":
            return dtype.kind == "int"
        case "is_unsigned":
            return dtype.kind == "uint"
        case "is_size":
            return dtype is INDEX
        case "is_whole":
            return dtype.is_int
    raise KeyError(relation)


def scalar_dtype_rows() -> Iterator[tuple[str, int]]:
    """Yield the rows of the dtype tables as (relation, code)."""
    for relation, (kinds, _) in SCALAR_FACTS.items():
        if kinds == ("dtype",):
            yield from ((relation, i) for i, d in enumerate(CODE_DTYPES) if scalar_dtype_holds(relation, d))


def never_negative(values: ValueSet) -> bool:
    """The ``nonneg`` fact."""
    return values.lo >= 0 and not values.inf and not values.nan and not values.negative_zero


def power_of(value: object) -> int | None:
    """Return k of a literal 2**k, ``None`` for any other."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0 or value & (value - 1):
        return None
    return value.bit_length() - 1
