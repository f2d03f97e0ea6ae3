# ruff: noqa: E501  (one form a line)
"""The forms of the language: types, operators, spellings, subscripts, calls, scopes, module level."""

import sys
from pathlib import Path

import pytest
from tilegg.ir.dtypes import BF16, BOOL, FP32, INDEX, INT8, INT32, INT64
from tilegg.ir.op import OPS
from tilegg.ir.program import Const, For, If, Op, Return, Scope, Value, Verbatim, While, walk
from tilegg.ir.text import parse, parse_with_remarks, print_program
from tilegg.ir.text.resolve import resolve
from tilegg.ir.types import OpaqueType, TensorType, TupleType, scalar, tensor, tile
from tilegg.ir.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from text_kernels import incore


def read(body, **options):
    """Read a body; the program must be sound and read back the same."""
    program = parse(incore(body, **options))
    assert verify(program) == []
    assert parse(print_program(program)) == program
    return program.functions[0]


def ops(body, **options):
    return [s for s in walk(read(body, **options).body) if isinstance(s, Op)]


LOAD = "t = pl.load(x, [0, 0], [16, 64])\n"


# -- types ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("pl.INT32", scalar(INT32)),
        ("pl.Scalar[pl.INT32]", scalar(INT32)),
        ("pl.Tensor[[16, 64], pl.BF16]", tensor([16, 64], BF16)),
        ("pl.Tensor[[16, 64], pl.BF16, pl.NZ]", TensorType((16, 64), BF16, layout="NZ")),
        ("pl.Tensor[[16, 64], pl.BF16, pl.TensorLayout.ND]", tensor([16, 64], BF16)),
        (
            "pl.Tensor[[16, 64], pl.BF16, pl.TensorView(stride=[128, 1], layout=pl.TensorLayout.DN, valid_shape=[8, 64])]",
            TensorType((16, 64), BF16, (128, 1), "DN", (8, 64)),
        ),
        ("pld.DistributedTensor[[4, 1], pl.INT32]", tensor([4, 1], INT32, "DistributedTensor")),
        ("pl.Tile[[16, 64], pl.FP32]", tile([16, 64], FP32, memory=None)),
        ("pl.Tile[[16, 64], pl.FP32, pl.MemorySpace.Mat]", tile([16, 64], FP32, memory="Mat")),
        ("pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[16, 64])]", tile([16, 64], FP32)),
        ("pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[n, 64])]", tile([16, 64], FP32, ["n", 64])),
        ("pl.Tile[[16, 1], pl.FP32, pl.Mem.Vec, pl.TileView(blayout=pl.TileLayout.col_major)]", tile([16, 1], FP32)),
        (
            "pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.TileView(blayout=pl.TileLayout.col_major, fractal=512)]",
            tile([16, 64], FP32, layout=(("blayout", "col_major"),)),
        ),
        ("pl.Tile[[16, 2 * 32], pl.FP32, pl.Mem.Vec]", tile([16, 64], FP32)),
        ("pl.Tensor[[n, (n + 7) // 8], pl.FP32]", tensor(["n", "(n + 7) // 8"], FP32)),
        ("pl.Tensor[[pl.min(n, 64), 2], pl.FP32]", tensor(["pl.min(n, 64)", 2], FP32)),
        ("tuple[pl.INT32, pl.Scalar[pl.BOOL]]", TupleType((scalar(INT32), scalar(BOOL)))),
        ("pl.Ptr", OpaqueType("pl.Ptr")),
        ("pld.CommCtxType", OpaqueType("pld.CommCtxType")),
        ("pl.Array[8, pl.INT32]", OpaqueType("pl.Array[8, pl.INT32]")),
    ],
)
def test_annotations(written, wanted):
    f = read("return n", params=f"p: {written}, n: pl.INDEX")
    assert f.params[0].value.type == wanted


def test_annotations_add_what_inference_does_not_know():
    (load,) = ops(
        "t: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[8, 64], blayout=pl.TileLayout.col_major)]"
        " = pl.load(x, [0, 0], [16, 64])"
    )
    assert load.result.type == tile([16, 64], FP32, [8, 64], layout=(("blayout", "col_major"),))


def test_module_constants_fold_and_dynamic_names_are_kept():
    text = incore("t = pl.load(x, OFF, SHAPE)\nu = t * SCALE\nreturn u", params="x: pl.Tensor[[M, N], DT]")
    head = 'N = 4 * 16\nOFF = [0, 0]\nSHAPE = (16, N)\nSCALE = 0.5\nDT = pl.FP32\nM = pl.dynamic("M_DYN")\n'
    program = parse(text.replace("@pl.function", head + "@pl.function"))
    assert program.dynamic == ("M_DYN",)
    assert program.functions[0].params[0].value.type == tensor(["M_DYN", 64], FP32)
    load, mul = program.functions[0].body.statements[:2]
    assert load.result.type == tile([16, 64], FP32) and mul.operands[1] == Const(0.5, FP32)
    assert parse(print_program(program)) == program


def test_an_undefined_name_in_a_shape_is_a_dynamic_dimension_with_a_warning():
    program, remarks = parse_with_remarks(incore("return n", params="x: pl.Tensor[[ROWZ, 64], pl.FP32], n: pl.INDEX"))
    assert [(d.code, d.severity) for d in remarks] == [("TG016", "warning")]
    assert program.dynamic == ("ROWZ",)
    assert remarks[0].span.line == 3


# -- operations and spellings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("pl.add(t, t)", "tile.add"), ("pl.add(t, 2.0)", "tile.adds"), ("t + t", "tile.add"), ("t + 2.0", "tile.adds"),
        ("2.0 + t", "tile.adds"), ("t - t", "tile.sub"), ("t * n", "tile.muls"), ("t / 4.0", "tile.divs"),
        ("-t", "tile.neg"), ("pl.exp(t)", "tile.exp"), ("pl.maximum(t, 0.0)", "tile.maximums"),
        ("pl.cmp(t, 0.0, cmp_type=2)", "tile.cmps"), ("pl.cmp(t, t)", "tile.cmp"),
        ("pl.row_max(t, t)", "tile.row_max"), ("pl.row_max(t, tmp_tile=t)", "tile.row_max"),
        ("pl.slice(t, [8, 64], [8, 0])", "tile.slice"), ("pl.slice(x, [8, 64], [8, 0])", "tensor.slice"),
        ("pl.cast(t, pl.BF16)", "tile.cast"), ("pl.cast(x, pl.BF16)", "tensor.cast"), ("pl.cast(n, pl.INT32)", "scalar.cast"),
        ("pl.cast(n, target_type=pl.INT32)", "scalar.cast"), ("pl.cast(input=t, target_type=pl.BF16)", "tile.cast"),
        ("pl.read(x, [0, n])", "tensor.read"), ("pl.read(t, [0, n])", "tile.read"), ("pl.write(t, [0, n], 1.0)", "tile.write"),
        ("pl.write(x, [0, n], 1.0)", "tensor.write"), ("pl.create_tensor([4, 4], dtype=pl.FP32)", "tensor.create"),
        ("pl.min(n, 4)", "scalar.min"), ("max(n, 4)", "scalar.max"), ("pl.add(n, n)", "scalar.add"),
        ("n * 3", "scalar.mul"), ("n // 3", "scalar.floordiv"), ("n % 3", "scalar.mod"), ("-n", "scalar.neg"),
        ("n == 3", "scalar.eq"), ("not (n > 2)", "scalar.not_"), ("n << 2", "scalar.shl"), ("n & 3", "scalar.bit_and"),
    ],
)  # fmt: skip
def test_spellings_resolve_by_operand_kinds(written, wanted):
    assert ops(LOAD + f"r = {written}\nreturn r")[-1].name == wanted


def test_a_unified_name_stands_for_its_forms_on_tiles_and_on_tensors():
    for name in OPS:
        space, _, short = name.rpartition(".")
        if space in ("tile", "tensor"):
            assert name in {p.decl.name for p in resolve(f"pl.{short}").plans}


def test_signed_scalars_meet_in_the_wider_dtype():
    params = "a: pl.INT32, b: pl.INT64, x: pl.Tensor[[64], pl.INT32]"
    first, second = ops("c = a + b\nd = pl.tensor.read(x, 3)\nreturn c, d", params=params)
    assert first.result.type == scalar(INT64) and second.operands[1] == (Const(3),)


def test_values_of_unknown_type_are_indexed_as_they_stand():
    f = read("u = pl.array.create(8, pl.INT32)\nu[n + 1] = 5\na = u[n]\nb = u[0:n, :]\nreturn a, b")
    assert [s.name for s in f.body if isinstance(s, Op)][1:] == ["scalar.add", "setitem", "getitem", "getitem"]
    assert f.body.statements[4].operands[1:] == (Verbatim("0:n"), Verbatim(":"))


def test_a_scalar_minus_a_tile():
    neg, adds = ops(LOAD + "r = 1.0 - t\nreturn r")[-2:]
    assert (neg.name, adds.name, adds.operands) == ("tile.neg", "tile.adds", (neg.result, Const(1.0, FP32)))
    assert adds.result.name == "r"


@pytest.mark.parametrize("mode", ["'rint'", '"RINT"', "1", "pl.RoundMode.rint"])
def test_enumerations_read_as_words_strings_and_integers(mode):
    cast = ops(LOAD + f"r = pl.tile.cast(t, pl.BF16, mode={mode})")[-1]
    assert cast.attrs == {"target_type": BF16, "mode": "rint"}


@pytest.mark.parametrize(
    ("dtype", "written", "kept"),
    [("INT8", '"on"', None), ("INT8", '"off"', "off"), ("INT8", "1", None), ("INT8", "0", "off"), ("BF16", '"on"', "on"),
     ("BF16", "False", "off")],
)  # fmt: skip
def test_saturation_is_kept_where_it_deviates(dtype, written, kept):
    cast = ops(LOAD + f"r = pl.tile.cast(t, target_type=pl.{dtype}, saturation_mode={written})")[-1]
    assert cast.attrs.get("saturation_mode") == kept


def test_defaults_are_not_stored():
    (load,) = ops("t = pl.load(x, [0, 0], [16, 64], None, pl.Mem.Vec, False)")
    assert load.attrs == {} and load.operands[3] is None


def test_options_in_any_order_and_attrs_dictionaries_are_kept():
    (load,) = ops(
        "t = pl.tile.load(x, shapes=[16, 64], offsets=[0, 0], target_memory=pl.MemorySpace.Mat, attrs={'a': [1, 2], \"b\": n})"
    )
    assert load.attrs == {"target_memory": "Mat", "attrs": (("a", "[1, 2]"), ("b", "n"))}


def test_typed_literals():
    *_, first, second = ops(LOAD + "i: pl.Scalar[pl.INT32] = 5\nr = pl.tile.full([16, 64], pl.INT8, pl.const(-3, pl.INT8))\ns = r + i")
    assert first.operands[1] == Const(-3, INT8) and second.operands[1] == Const(5, INT32)


def test_literals_fold_but_typed_ones_keep_their_operation():
    f = read("a = 2 * 8 + n\nb = pl.const(2, pl.INDEX) * 8\nreturn a, b")
    add, mul = f.body.statements[:2]
    assert add.operands == (Const(16, INDEX), Value("n", scalar()))
    assert mul.name == "scalar.mul" and mul.operands == (Const(2), Const(8))


def test_options_the_operation_does_not_model_keep_the_call_verbatim():
    *_, op = ops(LOAD + "r = pl.tile.slice(t, [8, 64], [n, 0], drop_dims=[0])")
    assert op.name == "pl.tile.slice" and isinstance(op.operands[-1], tuple)
    assert ops(LOAD + "r = pl.tile.slice(t, [8, 64], [n, 0], drop_dims=None)")[-1].name == "tile.slice"


# -- unknown operations ---------------------------------------------------------------------------------------


def test_unknown_operations_are_kept_verbatim_with_one_remark():
    body = LOAD + (
        "a: pl.Tile[[16, 16], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(t, t)\n"
        "b = pl.tile.matmul(a, a)\n"
        "pl.system.bar(t, [1, n], pipe=pl.PipeType.V, peer=n * 2, flag=True, name='w')\n"
        "return b"
    )
    program, remarks = parse_with_remarks(incore(body))
    assert [d.code for d in remarks] == ["TG018", "TG018"]
    matmul, again, mul, bar = program.functions[0].body.statements[1:5]
    assert matmul.name == "pl.tile.matmul" and matmul.result.type == tile([16, 16], FP32, memory="Acc")
    assert again.result.type == OpaqueType("pl.UnknownType")
    assert mul.name == "scalar.mul"
    assert bar.attrs == {"pipe": "pl.PipeType.V", "name": "'w'", "keywords": ("peer", "flag")}
    assert bar.operands[-2:] == (mul.result, Const(True, BOOL))
    assert parse(print_program(program)) == program


def test_a_near_miss_is_mentioned():
    _, remarks = parse_with_remarks(incore(LOAD + "r: pl.Tile[[16, 64], pl.FP32] = pl.tile.expp(t)"))
    assert remarks[0].code == "TG018" and "pl.tile.exp" in remarks[0].hint


def test_casts_inside_unknown_calls_are_found():
    (_, cast, op) = ops(LOAD + "pl.foo(pl.cast(t, pl.BF16), [pl.const(1, pl.INT32), 2], pl.Bar.X)")
    assert cast.name == "tile.cast" and op.operands == (cast.result, (Const(1, INT32), Const(2)), Verbatim("pl.Bar.X"))


# -- subscripts -----------------------------------------------------------------------------------------------


def test_subscripts_are_slices_and_reads():
    row, read_, tail = ops("a = x[n:n + 8, 0:32]\nb = x[n, 3]\nc = x[8:]\nreturn a, b, c")
    assert row.name == "tensor.slice" and row.result.type == tensor([8, 32], FP32)
    assert read_.name == "tensor.read" and read_.operands[1] == (Value("n", scalar()), Const(3))
    assert tail.result.type == tensor([8, 64], FP32) and tail.operands[2] == (Const(8), Const(0))


def test_a_scalar_index_drops_the_dimension():
    slice_, reshape = ops("a = x[n]\nreturn a")
    assert slice_.result.type == tensor([1, 64], FP32) and reshape.result.type == tensor([64], FP32)
    assert ops(LOAD + "a = t[3]\nreturn a")[-1].result.type == tile([1, 64], FP32)


def test_writing_through_a_subscript():
    params = "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"
    f = read(LOAD + "out[:] = t\nout[0:16, :] = t * 2.0\nout[3, 4] = 1.0\nreturn out", params=params)
    stores = [s for s in f.body.statements if isinstance(s, Op) and s.name in ("tile.store", "tensor.write")]
    assert [s.operands[2].name for s in stores[:2]] == ["out", "out__ssa_v1"]
    assert stores[2].operands[:2] == (stores[1].result, (Const(3), Const(4)))
    assert f.body.statements[-1].operands == (stores[2].result,)


# -- functions, tuples, scopes --------------------------------------------------------------------------------

PAIR = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[128, 64], pl.FP32], o: pl.Out[pl.Tensor[[128, 64], pl.FP32]]):
        r = self.k(a, o)
        u, v = self.k(r[0], r[1], device=r[2])
        self.k(u, v)
        return u
""".replace("u, v = self.k", "u, v, w = self.k")
KERNEL = """
    @pl.function
    def k(self, x: pl.Tensor[[m, 64], pl.FP32], o: pl.Out[pl.Tensor[[m, 64], pl.FP32]]):
        return o, x, pl.tensor.dim(x, 0)
"""


def test_calls_infer_results_from_a_function_defined_later():
    program, remarks = parse_with_remarks(PAIR + KERNEL)
    assert [d.code for d in remarks] == ["TG016"]
    first, second, third, ret = program.function("main").body.statements
    assert [v.name for v in first.results] == ["r_0", "r_1", "r_2"]
    assert first.results[0].type == tensor([128, 64], FP32)
    assert second.attrs == {"callee": "k", "keywords": ("device",)} and second.operands[2] is first.results[2]
    assert third.results == () and isinstance(ret, Return)
    assert parse(print_program(program)) == program


def test_scopes_keep_their_headers_and_are_transparent():
    f = read(LOAD + "u = t\nu = u + t\nwith pl.at(level=pl.Level.CORE_GROUP, deps=[u]) as tid:\n    v = u * 2.0\nreturn v")
    scope = next(s for s in f.body if isinstance(s, Scope))
    assert scope.header == "pl.at(level=pl.Level.CORE_GROUP, deps=[u]) as tid"


def test_names_in_headers_follow_their_values():
    f = read(LOAD + "t = t + t\nwith pl.at(deps=[t]):\n    v = t * 2.0\nreturn v")
    assert next(s for s in f.body if isinstance(s, Scope)).header == "pl.at(deps=[t__ssa_v1])"


def test_loops_of_every_kind():
    body = (
        "for i in pl.range(4):\n    a = i + 1\n"
        "for i in pl.parallel(2, n):\n    a = i + 1\n"
        "for i in pl.unroll(0, 8, 2):\n    a = i + 1\n"
        "for i in pl.pipeline(n, stage=2, attrs={'x': 1}):\n    a = i + 1\n"
        "for i in pl.spmd(n):\n    a = i + 1\n"
        "return n"
    )
    loops = [s for s in read(body).body if isinstance(s, For)]
    assert [s.kind for s in loops] == ["range", "parallel", "unroll", "pipeline", "spmd"]
    assert loops[2].bounds == (Const(0), Const(8), Const(2))
    assert loops[3].attrs == {"stage": "2", "attrs": (("x", "1"),)}
    assert [s.var.name for s in loops] == ["i", "i__ssa_v1", "i__ssa_v2", "i__ssa_v3", "i__ssa_v4"]


def test_static_calls_and_docstrings_make_no_code():
    f = read('"""doc"""\npl.static_print("n", n)\npl.static_assert(True)\npass\nreturn n')
    assert len(f.body.statements) == 1


def test_if_and_while_kinds():
    f = read("k = 0\nwhile k < n:\n    k = k + 1\nif n > 2:\n    k = k * 2\nreturn k")
    assert isinstance(f.body.statements[0], While) and any(isinstance(s, If) for s in f.body)
