"""The operations that assembly is written with, against the library's own of the same names."""

from __future__ import annotations

from io import StringIO
from itertools import product

import pytest
from tilegg.codegen.pto import arith, func, scf
from tilegg.codegen.pto.api import ModuleBuilder, verify_module
from xdsl.dialects import arith as library_arith
from xdsl.dialects import func as library_func
from xdsl.dialects import scf as library_scf
from xdsl.dialects.builtin import (
    Attribute,
    Float16Type,
    Float32Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    SymbolRefAttr,
)
from xdsl.ir import Block, Operation
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

PAIRS = ((arith, library_arith.Arith), (scf, library_scf.Scf), (func, library_func.Func))
LIBRARY = {cls.name: cls for _, dialect in PAIRS for cls in dialect.operations}
OWN = {
    cls.name: cls for module, _ in PAIRS for cls in vars(module).values()
    if isinstance(cls, type) and cls.__module__ == module.__name__ and isinstance(vars(cls).get("name"), str)
}  # fmt: skip
TYPES = (IndexType(), IntegerType(1), IntegerType(8), IntegerType(64), Float16Type(), Float32Type())
CONSTANTS = [IntegerAttr(3, t) if isinstance(t, IndexType | IntegerType) else FloatAttr(1.5, t) for t in TYPES[2:]]


def text(op: Operation) -> str:
    out = StringIO()
    Printer(out).print_op(op)
    return out.getvalue()


def passes(op: Operation) -> bool:
    try:
        op.verify_()
    except VerifyException:
        return False
    return True


def cases(name: str) -> list[tuple[list[Attribute], Attribute, dict[str, Attribute]]]:
    """Return operand types, result type and properties, right ones and wrong ones."""
    if name == "arith.constant":
        return [([], t, {"value": value}) for t, value in product(TYPES, CONSTANTS)]
    count = OWN[name].OPERANDS
    predicates: list[dict[str, Attribute]] = [{}]
    if "cmp" in name:
        predicates = [{"predicate": IntegerAttr(n, 64)} for n in range(10)]
    firsts = [list(pair) for pair in product(TYPES, repeat=2)] if count > 1 else [[t] for t in TYPES]
    return [([*first, *first[-1:] * (count - len(first))], r, p) for first, r, p in product(firsts, TYPES, predicates)]


@pytest.mark.parametrize("name", [name for name in OWN if name.startswith("arith.")])
def test_arithmetic_is_written_as_the_library_writes_it(name: str) -> None:
    accepted = 0
    defaults = {
        k: d.default_value for k, d in LIBRARY[name].get_irdl_definition().properties.items()
        if getattr(d, "default_value", None) is not None
    }  # fmt: skip
    for operands, result, properties in cases(name):
        values = Block(arg_types=operands).args
        own = OWN[name].create(operands=values, result_types=[result], properties=properties)
        other = LIBRARY[name].create(operands=values, result_types=[result], properties={**defaults, **properties})
        if passes(own):
            accepted += 1
            assert passes(other) and text(own) == text(other)
    assert accepted


def test_every_operation_has_the_librarys_name() -> None:
    assert set(OWN) <= set(LIBRARY) and len(OWN) > 40


def messages(value: str, *more: Operation) -> list[str]:
    """Return what is wrong in a module of a function that calls ``@other``, declared for one type, and of another."""
    module = ModuleBuilder("a5")
    module.declare("other", [{"index": IndexType(), "i32": IntegerType(32)}[value]])
    made = module.function("kernel", [("n", IndexType())])
    made.body.add(func.CallOp.create(operands=[made.args["n"]], properties={"callee": SymbolRefAttr("other")}))
    made.finish()
    beside = module.function("beside", [("m", IndexType())])
    for op in more:
        op.operands = [made.args["n"]] * len(op.operands)
        beside.body.add(op)
    beside.finish()
    return [d.message for d in verify_module(module.op)]


def test_flow_is_checked_as_the_librarys_is() -> None:
    assert messages("index") == []
    assert messages("i32") == ["func.call: it takes and gives what @other does not"]
    # A function sees nothing of another one, and a yield stands in loops and branches only.
    n = Block(arg_types=[IndexType()]).args[0]
    outside = arith.AddiOp.create(operands=[n, n], result_types=[IndexType()])
    assert "not defined before its use" in messages("index", outside)[0]
    assert "it ends the body of a loop" in messages("index", scf.YieldOp.create())[0]
    nobody = func.CallOp.create(properties={"callee": SymbolRefAttr("nobody")})
    assert messages("index", nobody) == ["func.call: a call names a function of the module"]
