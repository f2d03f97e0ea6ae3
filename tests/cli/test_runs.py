"""``run``, ``equiv`` and ``verify``."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from tilegg.ir.npz import read_npz
from tilegg.ir.program import Op

from .conftest import EXAMPLES, cast_kernel, kernel

ADD = kernel("FP32", "FP32", "pl.tile.adds(a, 1.5)")


@pytest.fixture
def inputs(tmp_path):
    path = tmp_path / "x.npz"
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    np.savez(path, x=x)
    return path, x


def test_run_writes_outputs_by_parameter_name(tilegg, source, inputs, tmp_path):
    path, x = inputs
    assert tilegg("run", source(ADD), "--inputs", path, "-o", tmp_path / "y.npz").code == 0
    found = read_npz(tmp_path / "y.npz")
    assert list(found) == ["out"]
    np.testing.assert_array_equal(found["out"], x + np.float32(1.5))


def test_run_shows_outputs(tilegg, source, inputs):
    done = tilegg("run", source(ADD), "--inputs", inputs[0], "--function", "k")
    assert done.out.startswith("out: float32 16x64\n") and "1.5" in done.out


def test_run_gives_bf16_as_codes(tilegg, source, inputs, tmp_path):
    words = ("--inputs", inputs[0], "-o", tmp_path / "y.npz")
    assert tilegg("run", source(cast_kernel("FP32", "BF16")), *words).code == 0
    found = read_npz(tmp_path / "y.npz")["out"]
    assert found.dtype == np.uint16 and found[0, 1] == 0x3F80


def test_run_through_pipes(source, inputs, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(inputs[0].read_bytes())))
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    from tilegg.cli import main

    assert main(["run", str(source(ADD)), "--inputs", "-", "-o", "-"]) == 0
    out.flush()
    assert np.load(io.BytesIO(out.buffer.getvalue()))["out"][0, 0] == 1.5


@pytest.mark.parametrize(
    ("name", "array", "hint"),
    [("y", np.zeros((16, 64), np.float32), "no parameter"), ("x", np.zeros((16, 65), np.float32), "shape"),
     ("x", np.full((16, 64), 0.1), "FP32")],
)  # fmt: skip
def test_run_refuses_inputs_that_do_not_fit(name, array, hint, tilegg, source, tmp_path):
    np.savez(tmp_path / "x.npz", **{name: array})
    done = tilegg("run", source(ADD), "--inputs", tmp_path / "x.npz", "-o", tmp_path / "y.npz")
    assert done.code == 1 and "error[TG030]" in done.err and hint in done.err
    assert not (tmp_path / "y.npz").exists()


def test_run_names_the_functions_there_are(tilegg, source, inputs):
    done = tilegg("run", source(ADD), "--inputs", inputs[0], "--function", "z")
    assert done.code == 1 and "it has k" in done.err


# -- equiv -------------------------------------------------------------------------------------------------


def test_equal_programs(tilegg, source):
    other = ADD.replace("adds(a, 1.5)", "sub(a, pl.tile.full([16, 64], pl.FP32, -1.5))")
    a, b = source(ADD, "a.py"), source(other, "b.py")
    done = tilegg("equiv", a, b, "--samples", "8")
    assert done.code == 0 and "no difference" in done.out


def test_different_programs_give_a_small_counterexample(tilegg, source):
    a, b = source(cast_kernel("FP32", "BF16", "rint"), "a.py"), source(cast_kernel("FP32", "BF16", "round"), "b.py")
    done = tilegg("equiv", a, b, "--json", "--seed", "3")
    assert done.code == 1
    found = done.json["counterexample"]
    assert not done.json["equal"] and found["output"] == "out"
    assert len(found["inputs"]) <= 1 and found["expected"] != found["actual"]
    assert tilegg("equiv", a, b, "--json", "--seed", "3").json == done.json


def test_ulp_contract_and_ranges(tilegg, source):
    a, b = source(cast_kernel("FP32", "BF16", "rint"), "a.py"), source(cast_kernel("FP32", "BF16", "round"), "b.py")
    assert tilegg("equiv", a, b, "--contract", "ulp:1").code == 0
    assert tilegg("equiv", a, b, "--contract", "ulp:x").code == 1
    assert tilegg("equiv", a, b, "--range", "x=0:0").code == 0
    assert tilegg("equiv", a, b, "--range", "x=1:0").code == 1
    assert tilegg("equiv", a, b, "--range", "x").code == 2


@pytest.mark.parametrize(
    ("option", "form", "words"),
    [("--range", "NAME=LO:HI or NAME=finite", ("x", "x=", "x=5", "x=:5", "x=5:", "=1:2")),
     ("--dim", "NAME=SIZE", ("N", "N=", "=3"))],
)  # fmt: skip
def test_an_option_without_its_form_says_the_form(option, form, words, tilegg):
    for word in words:
        done = tilegg("equiv", "a.py", "b.py", option, word)
        assert done.code == 2 and f"{word!r} is no {form}" in done.err


def test_every_input(tilegg, source):
    a, b, c = (source(cast_kernel("FP16", "INT8", mode), f"{mode}.py") for mode in ("rint", "round", "trunc"))
    done = tilegg("equiv", a, a, "--exhaustive")
    assert done.code == 0 and "every one of 65,536 inputs" in done.out
    assert tilegg("equiv", a, b, "--exhaustive", "--json").json["cases"] == 65536
    assert tilegg("equiv", b, c, "--exhaustive", "--range", "x=-0.25:0.25").code == 0
    wide = source(cast_kernel("FP32", "INT8"), "wide.py")
    done = tilegg("equiv", wide, wide, "--exhaustive")
    assert done.code == 1 and "error[TG033]" in done.err
    done = tilegg("verify", source(cast_kernel("BF16", "INT8"), "bf16.py"), "--arch", "a5", "--exhaustive", "--json")
    assert done.code == 0 and done.json["functions"][0]["cases"] == 65536


def test_processes_share_the_runs(tilegg, source):
    a, b = source(cast_kernel("FP32", "BF16", "rint"), "a.py"), source(cast_kernel("FP32", "BF16", "round"), "b.py")
    for words in ((a, a, "--samples", "40"), (a, b, "--samples", "40", "--seed", "2")):
        assert tilegg("equiv", *words, "--json", "--jobs", "2").out == tilegg("equiv", *words, "--json").out
    assert tilegg("equiv", a, b, "--jobs", "0").code == 2


# -- verify ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("name", ["quant_int8", "dequant_bf16", "rope_index", "softmax"])
def test_examples_verify(name, arch, tilegg):
    done = tilegg("verify", EXAMPLES / f"{name}.py", "--arch", arch, "--samples", "6")
    assert done.code == 0 and "no difference" in done.out, done.out


def test_reported_inexact_casts_are_admitted(tilegg, source):
    path = source(cast_kernel("INT32", "BF16"))
    done = tilegg("verify", path, "--arch", "a5", "--json", "--range", "x=16842753:16842753")
    assert done.code == 0 and done.json["ok"]
    (cast,) = done.json["inexact"]
    assert (cast["src"], cast["dst"], cast["max_ulp"]) == ("INT32", "BF16", 1) and 0 < cast["rate"] < 1e-4


def test_verify_says_which_casts_round_once_in_another_mode(tilegg, source):
    path = source(cast_kernel("FP16", "FP8E5M2", "floor"))
    done = tilegg("verify", path, "--arch", "a5", "--samples", "2")
    assert "apart from 1 cast that the target does not do as asked:" in done.out and "twice" not in done.out
    assert "not both results are finite for 255 of them: -57376.0 gives -57344.0, not -inf" in done.out
    assert "a5 ignores mode floor: FP32 to FP8E5M2 is always rint" in done.out
    (cast,) = tilegg("verify", path, "--arch", "a5", "--samples", "2", "--json").json["inexact"]
    assert cast["not_finite"] == {"rate": 255 / 65536, "value": -57376.0, "wanted": "-inf", "got": -57344.0}


def test_the_admitted_difference_is_there(tilegg, source):
    path = source(cast_kernel("INT32", "BF16"))
    lowered = source(tilegg("lower", path, "--arch", "a5", "--emit", "ir").out, "lowered.py")
    done = tilegg("equiv", path, lowered, "--range", "x=16842753:16842753")
    assert done.code == 1 and "16908288" in done.out and "16777216" in done.out


def test_a_wrong_lowering_is_caught(tilegg, source, monkeypatch):
    from tilegg.extract import lower as module

    right = module.lower

    def wrong(program, *args, **options):
        made = right(program, *args, **options)
        (f,) = made.program.functions
        body = [
            replace(s, attrs={**s.attrs, "mode": "floor"}) if isinstance(s, Op) and s.name == "tile.cast" else s
            for s in f.body
        ]
        changed = replace(f, body=replace(f.body, statements=tuple(body)))
        return replace(made, program=replace(made.program, functions=(changed,)))

    monkeypatch.setattr(module, "lower", wrong)
    done = tilegg("verify", source(cast_kernel("FP32", "BF16")), "--arch", "a5")
    assert done.code == 1
    assert "differ" in done.out and "expected" in done.out


def test_composites_are_put_back(tilegg, source):
    done = tilegg("verify", source(kernel("FP32", "FP32", "pl.tile.sin(a)")), "--arch", "a5", "--samples", "4")
    assert done.code == 0
    assert "apart from 1 composite computed by recipes:" in done.out and "tile.sin by sin." in done.out


def test_left_out_roundings_need_a_bound(tilegg, source):
    words = ("verify", source(kernel("FP32", "FP32", "pl.tile.add(pl.tile.muls(a, 3.1), a)")), "--arch", "a5")
    failed = tilegg(*words, "--contract", "contracted")
    assert failed.code == 1 and "allow them with --within ulp:2" in failed.out
    assert tilegg(*words, "--contract", "contracted", "--within", "ulp:1").code == 0
    assert tilegg(*words, "--within", "near").code == 1


SIZED = """
import pypto.language as pl
N = pl.dynamic("N")
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[N, 16], pl.FP32], rows: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[N, 16], pl.FP32]]):
    a = pl.tile.load(x, [0, 0], [8, 16])
    return pl.tile.store(a, [0, 0], y)
"""


@pytest.mark.parametrize("verb", ["run", "equiv", "verify", "check"])
def test_sizes_given_by_an_unknown_name_are_refused(tilegg, source, verb, tmp_path):
    np.savez(tmp_path / "s.npz", x=np.ones((8, 16), np.float32), rows=8)
    k = source(SIZED)
    words = {
        "run": ("--inputs", tmp_path / "s.npz"), "equiv": (k, "--samples", 2),
        "verify": ("--arch", "a5", "--samples", 2), "check": (),
    }[verb]  # fmt: skip
    assert tilegg(verb, k, *words, "--dim", "N=8").code == 0
    done = tilegg(verb, k, *words, "--dim", "FOO=3")
    assert done.code != 0 and "TG030" in done.err and "--dim FOO" in done.err
    assert "sizes with a name: N, rows" in done.err
    assert "did you mean N?" in tilegg(verb, k, *words, "--dim", "N=8", "--dim", "NN=3").err
