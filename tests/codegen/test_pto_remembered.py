"""What verifier and printer of the dialect remember of operations changes neither findings nor text."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest
from tilegg import lower, parse
from tilegg.codegen.emit import build_module
from tilegg.codegen.pto import printing, verify
from tilegg.codegen.pto.api import OPS, ModuleBuilder, parse_pto, print_pto, verify_module
from tilegg.codegen.pto.isolation import checks_of
from tilegg.codegen.pto.making import append, insert, make
from tilegg.ir.diagnostics import TileggError
from xdsl.dialects import arith
from xdsl.dialects.builtin import UNKNOWN_LOC, FunctionType, IntegerAttr, ModuleOp, i1, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block
from xdsl.traits import IsolatedFromAbove

sys.path.insert(0, str(Path(__file__).parent))
from emit_kernels import KERNELS

TILE, BITS = "!pto.tile_buf<vec, 32x64xf32>", "!pto.tile_buf<vec, 32x64xi32>"


def modules() -> list[ModuleOp]:
    """Return the modules of all sample kernels that can be written for a5."""
    made = []
    for text, *_ in KERNELS.values():
        try:
            made.append(build_module(lower(parse(text), "a5")))
        except TileggError:
            continue
    return made


def test_filled_forms_are_what_each_operation_prints_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    built = modules()
    filled = [print_pto(m) for m in built]
    monkeypatch.setattr(printing, "_form_of", lambda op: None)
    assert len(built) > 10
    assert filled == [print_pto(m) for m in built]


def test_full_tables_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    built = modules()
    wanted = [print_pto(m) for m in built]
    monkeypatch.setattr(printing, "_REMEMBERED", 2)
    monkeypatch.setattr(verify, "_REMEMBERED", 2)
    printing._FORMS.clear()
    verify._RIGHT.clear()
    for module, text in zip(built, wanted, strict=True):
        assert verify_module(module, "a5") == [] and print_pto(module) == text
    assert len(printing._FORMS) <= 2 and len(verify._RIGHT) <= 2


def kernel(body: str, args: str = f"%a: {TILE}, %b: {BITS}, %c: {BITS}, %s: i32") -> list[str]:
    module = parse_pto(f"func.func @k({args}) {{\n{body}\n  return\n}}", filename="k.pto")
    return [finding.message for finding in verify_module(module, "a5")]


def test_an_operand_twice_is_not_two_operands() -> None:
    right = f"pto.tands ins(%b, %s : {BITS}, i32) outs(%c : {BITS})"
    assert kernel(right) == []
    wrong = right.replace("%c", "%b")
    assert kernel(f"{right}\n{wrong}\n{right}") == ["pto.tands: src and dst must be different tiles"]
    module = parse_pto(f"func.func @k(%b: {BITS}, %c: {BITS}, %s: i32) {{\n{wrong}\n{right}\n  return\n}}")
    assert wrong in print_pto(module) and right in print_pto(module)


def test_constants_that_operands_are_tell_operations_apart() -> None:
    place = "%at{0} = arith.constant {0} : i64\n%t{0} = pto.alloc_tile addr = %at{0} : " + TILE
    assert kernel(place.format(64)) == []
    assert "multiple of 32" in kernel(f"{place.format(64)}\n{place.format(65)}")[0]


def test_what_defines_an_operand_tells_operations_apart() -> None:
    tile = "!pto.tile_buf<vec, 32x64xf32, valid=?x?>"
    made = f"%t = pto.alloc_tile valid_row = %n valid_col = %n : {tile}\npto.set_validshape %t, %n, %n : {tile}"
    assert kernel(made, "%n: index") == []
    given = kernel(f"pto.set_validshape %t, %n, %n : {tile}", f"%t: {tile}, %n: index")
    assert "an argument is not allowed" in given[0]


def test_the_architecture_tells_operations_apart() -> None:
    text = "func.func @k(%a: {0}, %b: {0}) {{\n  pto.tget_scale_addr ins(%a : {0}) outs(%b : {0})\n  return\n}}"
    module = parse_pto(text.format(TILE))
    assert verify_module(module, "a5") == [] and verify_module(module) == []
    assert "exists on a5 only" in verify_module(module, "a2")[0].message


def test_functions_use_no_values_from_outside_and_need_arguments_of_their_types() -> None:
    outer = ModuleBuilder("a5")
    one = arith.ConstantOp(IntegerAttr(1, i64))
    function = outer.function("k", [("n", i64)])
    function.body.add(arith.AddiOp(one.result, function.args["n"]))
    function.finish()
    outer.op.body.block.insert_op_before(one, function.op)
    assert "an operand is not defined before its use" in verify_module(outer.op)[0].message
    other = ModuleBuilder("a5")
    other.function("k", [("n", i64)]).finish()
    made = next(iter(other.op.body.block.ops))
    made.properties["function_type"] = FunctionType.from_lists([i1], [])
    assert "entry block arguments" in verify_module(other.op)[0].message
    for cls in (FuncOp, ModuleOp):
        checks = checks_of(cls)
        assert checks is not None and len(checks) == 2
        kept = [type(t) for t in checks[0].__self__.traits]
        assert IsolatedFromAbove not in kept and len(kept) + 1 == len(cls.traits.traits)


PLACES = ("in_threads(", "before_threads(", "parent_op(", "next_op", "prev_op", "_slot(")


def test_classes_whose_checks_ask_for_the_place_say_so() -> None:
    for name in OPS:
        cls = OPS[name]
        checks = [vars(c)["verify_own"] for c in cls.__mro__ if "verify_own" in vars(c)][:1]
        asks = any(word in inspect.getsource(check) for check in checks for word in PLACES)
        assert asks == cls.PLACED, name


def test_operations_made_cheaply_are_those_the_library_makes() -> None:
    block = Block(arg_types=[i64, i64])
    a, b = block.args
    properties = {"overflowFlags": arith.IntegerOverflowAttr("none")}
    for cls, given in ((arith.AddiOp, {}), (arith.AddiOp, properties), (arith.MinSIOp, {}), (arith.ShRSIOp, {})):
        wanted = cls.create(operands=[a, b], result_types=[i64], properties=given)
        made = make(cls, (a, b), (i64,), dict(given), wanted.location)
        ours, theirs = vars(made), vars(wanted)
        assert {k: ours.get(k, getattr(cls, k, None)) for k in theirs if k not in ("_operand_uses", "results")} == {
            k: v for k, v in theirs.items() if k not in ("_operand_uses", "results")
        }
        assert [(r.type, r.op, r.index) for r in made.results] == [(i64, made, 0)]
        assert [u.operation for u in a.uses] == [made] + [u.operation for u in a.uses][1:]
        append(block, made)
        assert block.last_op is made and made.parent is block
    first, last = (make(arith.ShLIOp, (a, b), (i64,), {}, UNKNOWN_LOC) for _ in range(2))
    insert(block, first, None)
    insert(block, last, block.last_op)
    second = make(arith.ShLIOp, (a, b), (i64,), {}, UNKNOWN_LOC)
    insert(block, second, first)
    assert list(block.ops)[:2] == [first, second] and block.first_op is first and block.last_op is last
    assert len(list(block.ops)) == 7 and list(reversed(block.ops)) == list(block.ops)[::-1]
    block.verify()
