"""Operations of ``arith``, the LLVM dialect and the assembler's SIMT level read as operations of the language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr
from xdsl.ir import Operation

from ..ir import program as ir
from ..ir.dtypes import BOOL, DTYPES, INDEX, DType
from ..ir.types import PtrType, scalar
from .pto.elements import spell
from .reading import FunctionReader, dtype_of
from .reading_simt import SIMT

Handler = Callable[[FunctionReader, Any], None]


def read_op(r: FunctionReader, op: Operation) -> None:
    """Append what an operation is in the language."""
    handler = HANDLERS.get(op.name) or SIMT.get(op.name)
    if handler is not None:
        handler(r, op)
        return
    tiles = any("tile_buf" in spell(x.type) or "tensor_view" in spell(x.type) for x in (*op.operands, *op.results))
    reason = "tiles are not read back from assembly" if tiles else "the language has no such operation"
    r.fail(f"{op.name} cannot be read", reason)


def result_dtype(r: FunctionReader, op: Operation, unsigned: bool = False) -> DType:
    """Return the dtype of an operation's result."""
    found = dtype_of(op.results[0].type, unsigned)
    if found is None:
        r.fail(f"{op.name} gives a {spell(op.results[0].type)}", "the language has no such scalar")
    return found


def constant(r: FunctionReader, op: Operation) -> None:
    attr, dtype = op.properties.get("value", op.attributes.get("value")), result_dtype(r, op)
    value: int | float | bool
    if isinstance(attr, IntegerAttr):
        value = bool(attr.value.data) if dtype is BOOL else int(attr.value.data)
        if dtype is not BOOL and dtype is not INDEX and value > dtype.max_value:
            value -= 1 << dtype.bits
    elif isinstance(attr, FloatAttr):
        value = float(attr.value.data)
    else:
        r.fail("a constant of another kind than a number")
    r.known[op.results[0]] = ir.Const(value, dtype)


def _alike(name: str) -> Handler:
    """An operation that does not mind the sign: the first operand's dtype decides."""

    def handler(r: FunctionReader, op: Operation) -> None:
        first = next((x for x in op.operands if isinstance(r.value(x), ir.Value)), op.operands[0])
        dtype = r.dtype(first)
        real = f"scalar.{_LOGIC.get(name, name)}" if dtype is BOOL and name in _LOGIC else f"scalar.{name}"
        if dtype is BOOL and name == "bit_xor":
            _differ(r, op)
            return
        r.define(op.results[0], real, [r.as_dtype(x, dtype) for x in op.operands], scalar(dtype))

    return handler


#: Bit operations on conditions.
_LOGIC = {"bit_and": "and_", "bit_or": "or_"}


def _differ(r: FunctionReader, op: Operation) -> None:
    """Exclusive or of conditions: with true the opposite, else that they differ."""
    a, b = (r.value(x) for x in op.operands)
    for x, y in ((a, b), (b, a)):
        if isinstance(y, ir.Const) and y.value:
            r.define(op.results[0], "scalar.not_", [x], scalar(BOOL))
            return
    r.define(op.results[0], "scalar.ne", [a, b], scalar(BOOL))


def _signed(name: str, unsigned: bool, intrinsic: bool = False) -> Handler:
    """An operation that reads integers with a sign of its own."""

    def handler(r: FunctionReader, op: Operation) -> None:
        operands = [r.with_sign(x, unsigned) for x in op.operands]
        dtype = result_dtype(r, op, unsigned)
        if dtype is INDEX and unsigned:
            wide = r.made(name, operands, scalar(DTYPES["UINT64"]))
            r.define(op.results[0], "scalar.wrap", [wide], scalar(INDEX), {"dtype": INDEX})
            return
        r.define(op.results[0], name, operands, scalar(dtype))

    return handler


def _float(name: str) -> Handler:
    def handler(r: FunctionReader, op: Operation) -> None:
        r.define(op.results[0], name, [r.value(x) for x in op.operands], scalar(result_dtype(r, op)))

    return handler


_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")


def compare(r: FunctionReader, op: Operation) -> None:
    code = op.properties["predicate"].value.data  # type: ignore[attr-defined]
    unsigned = code >= 6
    if code < 2:
        dtype = r.dtype(next((x for x in op.operands if isinstance(r.value(x), ir.Value)), op.operands[0]))
        operands = [r.as_dtype(x, dtype) for x in op.operands]
    else:
        operands = [r.with_sign(x, unsigned) for x in op.operands]
    r.define(op.results[0], f"scalar.{_PREDICATES[code]}", operands, scalar(BOOL))


#: Ordered predicates of ``arith.cmpf`` with a comparison of their own, and the inverses of the others.
_ORDERED = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 13: "ne"}
_INVERSE = {9: "le", 10: "lt", 11: "ge", 12: "gt"}


def compare_floats(r: FunctionReader, op: Operation) -> None:
    code = op.properties["predicate"].value.data  # type: ignore[attr-defined]
    a, b = (r.value(x) for x in op.operands)
    result, t = op.results[0], scalar(BOOL)

    def test(how: str, x: Any, y: Any) -> ir.Value:
        return r.made(f"scalar.{how}", [x, y], t)

    if code in _ORDERED:
        r.define(result, f"scalar.{_ORDERED[code]}", [a, b], t)
    elif code in _INVERSE:
        r.define(result, "scalar.not_", [test(_INVERSE[code], a, b)], t)
    elif code in (0, 15):
        r.known[result] = ir.Const(code == 15, BOOL)
    elif code == 6:
        r.define(result, "scalar.or_", [test("lt", a, b), test("gt", a, b)], t)
    elif code == 8:
        r.define(result, "scalar.not_", [r.made("scalar.or_", [test("lt", a, b), test("gt", a, b)], t)], t)
    else:
        name, how = ("scalar.and_", "eq") if code == 7 else ("scalar.or_", "ne")
        r.define(result, name, [test(how, a, a), test(how, b, b)], t)


def select(r: FunctionReader, op: Operation) -> None:
    when, *values = op.operands
    dtype = r.dtype(next((x for x in values if isinstance(r.value(x), ir.Value)), values[0]))
    operands = [r.value(when), *(r.as_dtype(x, dtype) for x in values)]
    r.define(op.results[0], "scalar.select", operands, scalar(dtype))


def _resize(unsigned: bool) -> Handler:
    """Extensions, truncations and casts of indices: the low bits, extended by the sign of what is read."""

    def handler(r: FunctionReader, op: Operation) -> None:
        (x,) = op.operands
        dtype = result_dtype(r, op, unsigned and not isinstance(r.value(x), ir.Const))
        if r.dtype(x) is BOOL:
            _extend_bool(r, op, x, dtype, unsigned)
            return
        found = r.with_sign(x, unsigned)
        if isinstance(found, ir.Const):
            r.known[op.results[0]] = ir.Const(found.value, dtype)
        elif dtype is BOOL:
            low = r.made("scalar.bit_and", [found, ir.Const(1, found.type.dtype)], found.type)  # type: ignore[union-attr]
            r.define(op.results[0], "scalar.ne", [low, ir.Const(0, low.type.dtype)], scalar(BOOL))  # type: ignore[union-attr]
        else:
            r.define(op.results[0], "scalar.wrap", [found], scalar(dtype), {"dtype": dtype})

    return handler


def _extend_bool(r: FunctionReader, op: Operation, x: Any, dtype: DType, unsigned: bool) -> None:
    one = ir.Const(1 if unsigned else -1, dtype)
    r.define(op.results[0], "scalar.select", [r.value(x), one, ir.Const(0, dtype)], scalar(dtype))


def _convert(unsigned: bool = False, mode: str = "") -> Handler:
    """Conversions with floats on one side or both."""

    def handler(r: FunctionReader, op: Operation) -> None:
        (x,) = op.operands
        dtype = result_dtype(r, op, unsigned)
        found = r.with_sign(x, unsigned) if r.dtype(x).is_int else r.value(x)
        attrs: dict[str, Any] = {"dtype": dtype, **({"mode": mode} if mode else {})}
        r.define(op.results[0], "scalar.cast", [found], scalar(dtype), attrs)

    return handler


_WHOLE = {"llvm.intr.rint": "rint", "llvm.intr.round": "round", "llvm.intr.floor": "floor", "llvm.intr.ceil": "ceil"}


def rounded(r: FunctionReader, op: Operation) -> None:
    """A rounding: part of the conversion that alone reads it, else the assembler's own."""
    (result,) = op.results
    readers = [use.operation for use in result.uses]
    if readers and all(_saturating(reader) for reader in readers):
        r.known[result] = r.known[op.operands[0]]
        return
    r.define(result, f"pto.{_WHOLE[op.name]}", [r.value(op.operands[0])], scalar(result_dtype(r, op)))


def _saturating(op: Operation) -> bool:
    return op.name == "llvm.call_intrinsic" and ".sat." in op.properties["intrin"].data  # type: ignore[attr-defined]


def call_intrinsic(r: FunctionReader, op: Operation) -> None:
    """The saturating conversions of floats to integers."""
    name = op.properties["intrin"].data  # type: ignore[attr-defined]
    if not name.startswith(("llvm.fptosi.sat.", "llvm.fptoui.sat.")):
        r.fail(f"the intrinsic {name} cannot be read")
    (x,) = op.operands
    before = x.owner.name if isinstance(x.owner, Operation) else ""
    _convert(name.startswith("llvm.fptoui"), _WHOLE.get(before, ""))(r, op)


# -- the stack ---------------------------------------------------------------------------------------------------


def alloca(r: FunctionReader, op: Any) -> None:
    count = r.value(op.operands[0])
    dtype = dtype_of(op.properties["elem_type"])
    if dtype is None or not isinstance(count, ir.Const):
        r.fail("the stack takes a literal number of numbers")
    attrs: dict[str, Any] = {"dtype": dtype, **({"count": int(count.value)} if count.value != 1 else {})}
    r.define(op.results[0], "llvm.alloca", [], PtrType(dtype, "local"), attrs)


def getelementptr(r: FunctionReader, op: Any) -> None:
    base = r.value(op.operands[0])
    given = op.properties["rawConstantIndices"]
    assert isinstance(given, DenseArrayBase)
    places = [int(n) for n in given.get_values()]
    if not isinstance(getattr(base, "type", None), PtrType) or len(places) != 1:
        r.fail("the address is not that of one element")
    at = ir.Const(places[0], INDEX) if len(op.operands) == 1 else r.as_dtype(op.operands[1], INDEX)
    r.define(op.results[0], "pto.addptr", [base, at], base.type)


def stack_load(r: FunctionReader, op: Any) -> None:
    ptr = _stack_pointer(r, op.operands[0])
    r.define(op.results[0], "llvm.load", [ptr, ir.Const(0, INDEX)], scalar(ptr.type.dtype))


def stack_store(r: FunctionReader, op: Any) -> None:
    value, at = op.operands
    ptr = _stack_pointer(r, at)
    r.made("llvm.store", [r.as_dtype(value, ptr.type.dtype), ptr, ir.Const(0, INDEX)], None)


def _stack_pointer(r: FunctionReader, x: Any) -> Any:
    ptr = r.value(x)
    if not isinstance(getattr(ptr, "type", None), PtrType):
        r.fail("the pointer was not made by llvm.alloca here")
    return ptr


def unsupported_extrema(r: FunctionReader, op: Operation) -> None:
    r.fail(f"{op.name} cannot be read", "it hands NaN on, which the language's maximum and minimum do not",
           f"write {op.name.replace('imum', 'num')}")  # fmt: skip


_INTEGER_OPS = {"addi": "add", "subi": "sub", "muli": "mul", "andi": "bit_and", "ori": "bit_or", "xori": "bit_xor",
                "shli": "shl"}  # fmt: skip
_BY_SIGN = {
    "divsi": ("div", False), "divui": ("div", True), "remsi": ("rem", False), "remui": ("rem", True),
    "floordivsi": ("floordiv", False), "shrsi": ("shr", False), "shrui": ("shr", True), "minsi": ("min", False),
    "maxsi": ("max", False), "minui": ("min", True), "maxui": ("max", True),
}  # fmt: skip
_FLOAT_OPS = {"addf": "add", "subf": "sub", "mulf": "mul", "divf": "div", "negf": "neg", "maxnumf": "max",
              "minnumf": "min"}  # fmt: skip
_FLOAT_INTRINSICS = ("maxnum", "minnum", "fabs", "sqrt", "exp", "log", "pow")

HANDLERS: dict[str, Handler] = {
    "arith.constant": constant,
    **{f"arith.{n}": _alike(to) for n, to in _INTEGER_OPS.items()},
    **{f"arith.{n}": _signed(f"scalar.{to}", sign) for n, (to, sign) in _BY_SIGN.items()},
    **{f"arith.{n}": _float(f"scalar.{to}") for n, to in _FLOAT_OPS.items()},
    "arith.maximumf": unsupported_extrema,
    "arith.minimumf": unsupported_extrema,
    "arith.cmpi": compare,
    "arith.cmpf": compare_floats,
    "arith.select": select,
    "arith.trunci": _resize(False),
    "arith.extsi": _resize(False),
    "arith.extui": _resize(True),
    "arith.index_cast": _resize(False),
    "arith.index_castui": _resize(True),
    "arith.sitofp": _convert(),
    "arith.uitofp": _convert(True),
    "arith.fptosi": _convert(),
    "arith.fptoui": _convert(True),
    "arith.extf": _convert(),
    "arith.truncf": _convert(),
    **{f"llvm.intr.{n}": _float(f"llvm.{n}") for n in _FLOAT_INTRINSICS},
    **{f"llvm.intr.{n}": _signed(f"llvm.{n}", n.startswith("u")) for n in ("smax", "smin", "umax", "umin", "abs")},
    **dict.fromkeys(_WHOLE, rounded),
    "llvm.call_intrinsic": call_intrinsic,
    "llvm.alloca": alloca,
    "llvm.getelementptr": getelementptr,
    "llvm.load": stack_load,
    "llvm.store": stack_store,
}
