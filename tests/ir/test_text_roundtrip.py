"""Reading and writing: what is written reads back as the same program."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tilegg.ir.dtypes import FP16, FP32, INT32
from tilegg.ir.interp import run
from tilegg.ir.program import For, If, Op, walk
from tilegg.ir.text import parse, parse_with_remarks, print_op, print_program, print_type
from tilegg.ir.types import tensor, tile
from tilegg.ir.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from text_kernels import DUMP, KERNELS, QUANT, RMSNORM, ROPE, SOFTMAX, incore


@pytest.mark.parametrize("name", KERNELS)
def test_written_programs_read_back(name):
    program = parse(KERNELS[name])
    assert verify(program) == []
    text = print_program(program)
    again = parse(text)
    assert again == program
    assert print_program(again) == text


def names(program):
    return [s.name for f in program.functions for s in walk(f.body) if isinstance(s, Op)]


def test_softmax_means_softmax():
    program = parse(SOFTMAX)
    x = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
    got = run(program, {"x": x})["out"]
    e = np.exp(x - x.max(axis=1, keepdims=True))
    assert np.allclose(got, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def test_rmsnorm_means_rmsnorm():
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(16, 64)), rng.normal(size=(1, 64))
    got = run(parse(RMSNORM), {"x": bf16(x), "w": bf16(w)})["out"].astype(np.float64)
    x, w = (np.asarray(bf16(v), dtype=np.float64) for v in (x, w))
    want = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * w
    assert np.allclose(got, want, rtol=1e-2, atol=1e-3)


def bf16(x):
    import ml_dtypes

    return x.astype(ml_dtypes.bfloat16)


def test_quantisation_flattens_nested_casts_and_keeps_their_modes():
    program = parse(QUANT)
    casts = [s for s in walk(program.function("act_quant").body) if isinstance(s, Op) and s.name == "tile.cast"]
    assert [(c.attrs["target_type"].name, c.attrs.get("mode", "round")) for c in casts] == [
        ("FP32", "round"), ("INT32", "rint"), ("FP16", "round"), ("INT8", "trunc")
    ]  # fmt: skip
    assert casts[3].attrs["saturation_mode"] == "off"
    call = next(s for s in walk(program.function("main").body) if isinstance(s, Op) and s.name == "call")
    assert call.attrs == {"callee": "act_quant"}
    assert [o.name for o in call.operands] == ["x", "q", "scale"]
    assert [v.type for v in call.results] == [v.type for v in (call.operands[1], call.operands[2])]


def test_rope_carries_the_output_through_branches():
    program = parse(ROPE)
    assert program.dynamic == ("SEQ",)
    loop = next(s for s in walk(program.functions[0].body) if isinstance(s, For))
    assert loop.kind == "parallel" and [c.arg.name for c in loop.carried] == ["out__ssa_v1", "half"]
    branch = next(s for s in walk(program.functions[0].body) if isinstance(s, If))
    assert len(branch.results) == 2
    pos = np.arange(20 * 64, dtype=np.int32).reshape(20, 64)
    got = run(program, {"pos": pos, "n": 2})["out"][:2]
    f = pos[:2].astype(np.float32) * np.float32(0.5)
    assert (got == np.floor(np.trunc(f) + f + np.float32(0.5)).astype(np.int32)).all()


def test_dumps_without_self_with_enum_integers_and_implicit_prefixes():
    more = "signal_0: pl.UnknownType, peer_0: pl.Scalar[pl.INT32], out__ssa_v0: pl.Out"
    text = DUMP.replace("out__ssa_v0: pl.Out", more)
    program, remarks = parse_with_remarks(text)
    assert program.header == ("# after pass: ConvertToSSA",)
    f = program.function("kernel__aiv")
    assert not f.has_self
    assert f.attrs == {
        "type": "pl.FunctionType.AIV", "level": "pl.Level.CHIP_DIE", "role": "pl.Role.SubWorker"
    }  # fmt: skip
    cast = f.body.statements[2]
    assert cast.attrs == {"target_type": FP16} and cast.result.type.valid_shape == (8, 64)
    assert parse(print_program(program)) == program
    assert {d.code for d in remarks} <= {"TG018"}


def test_types_print_as_annotations():
    assert print_type(tile([16, 64], FP32)) == "pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec]"
    assert print_type(tensor([16, "n"], INT32)) == "pl.Tensor[[16, n], pl.INT32]"
    shown = print_type(tile([16, 64], FP32, [8, "n"], layout=(("blayout", "col_major"),)))
    assert shown == (
        "pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, "
        "pl.TileView(valid_shape=[8, n], blayout=pl.TileLayout.col_major)]"
    )


def test_an_operation_prints_on_one_line():
    cast = parse(QUANT).function("act_quant").body.statements[1]
    assert print_op(cast) == (
        "t: pl.Tile[[16, 256], pl.FP32, pl.Mem.Vec] = pl.tile.cast(t__arg_tmp_v0, target_type=pl.FP32, mode=\"round\")"
    )


@pytest.mark.parametrize("written", ["0.1", "0.31830988618", "1e-45", "3.4028234663852886e+38", "-0.0", "16777217.0"])
def test_fp32_constants_are_the_nearest_value_and_read_back(written):
    program = parse(incore(f"t = pl.load(x, [0, 0], [16, 64])\nu = t * {written}\nreturn u"))
    constant = program.functions[0].body.statements[1].operands[1]
    assert repr(constant.value) == repr(float(np.float32(written)))
    assert parse(print_program(program)) == program


def test_special_constants_read_back():
    program = parse(incore("t = pl.load(x, [0, 0], [16, 64])\nu = pl.tile.maximums(t, -math.inf)\nreturn u"))
    text = print_program(program)
    assert "import math\n" in text and "-math.inf" in text
    assert parse(text) == program


def test_writing_is_deterministic_and_spans_do_not_count():
    program = parse(SOFTMAX)
    shifted = parse("\n\n\n" + SOFTMAX)
    assert shifted == program
    assert print_program(shifted) == print_program(program)
