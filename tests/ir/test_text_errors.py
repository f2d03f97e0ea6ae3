"""Malformed texts: each gives coded, located diagnostics, never a traceback."""

import sys
import time
from pathlib import Path

import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.text import parse, parse_with_remarks

sys.path.insert(0, str(Path(__file__).parent))
from text_kernels import SOFTMAX, incore


def failures(text):
    with pytest.raises(TileggError) as caught:
        parse(text, "k.py")
    for d in caught.value.diagnostics:
        assert d.severity == "error" and d.message
        assert d.span is None or (d.span.file == "k.py" and d.span.line >= 1 and d.span.column >= 1)
    return caught.value.diagnostics


def failure(body, **options):
    found = failures(incore(body, **options))
    assert len(found) == 1, [d.render() for d in found]
    return found[0]


LOAD = "t = pl.load(x, [0, 0], [16, 64])\n"


@pytest.mark.parametrize(
    ("body", "code", "hint"),
    [
        ("r = y + 1", "TG003", ""),
        ("total = n\nr = totall + 1", "TG003", "total"),
        (LOAD + "r = pl.tile.cast(t, pl.FP33)", "TG004", "FP32"),
        (LOAD + "r = pl.tile.cast(t, pl.BF16, mode='rond')", "TG004", "round"),
        (LOAD + "r = pl.tile.cast(t, pl.BF16, mode=9)", "TG004", ""),
        ("t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Vek)", "TG004", "Vec"),
        (LOAD + "r: pl.Tyle[[16, 64], pl.FP32] = t", "TG004", "pl.Tile"),
        (LOAD + "r = pl.tile.cast(t)", "TG005", "target_type"),
        (LOAD + "r = pl.tile.add(t, t, t)", "TG005", "lhs"),
        (LOAD + "r = pl.tile.cast(t, pl.BF16, mod='rint')", "TG005", "mode"),
        (LOAD + "r = pl.tile.cast(t, pl.BF16, target_type=pl.BF16)", "TG005", ""),
        (LOAD + "r = pl.exp()", "TG005", "tile.exp"),
        (LOAD + "a, b = pl.tile.exp(t)", "TG005", ""),
        (LOAD + "r = pl.tile.add(t, 2.0)", "TG006", "adds"),
        ("r = pl.tile.exp(x)", "TG006", "load"),
        (LOAD + "r = pl.tile.exp([1, 2])", "TG006", ""),
        ("t = pl.load(x, 0, [16, 64])", "TG006", ""),
        ("t = pl.load(x, [0.5, 0], [16, 64])", "TG006", ""),
        (LOAD + "r = 2 << t", "TG006", "expands"),
        (LOAD + "r = t > 0.0", "TG006", "cmps"),
        ("r = n[0]", "TG006", ""),
        (LOAD + "u = pl.cast(t, pl.BF16)\nr = t + u", "TG007", "cast"),
        ("a = pl.load(x, [0, 0], [16, 64])\nb = pl.load(x, [0, 0], [8, 64])\nr = a + b", "TG008", ""),
        ("t = pl.load(x, [8, 0], [16, 64])", "TG008", "valid_shape"),
        (LOAD + "r: pl.Tile[[16, 64], pl.BF16] = pl.exp(t)", "TG010", ""),
        (LOAD + "r: pl.Tile[[16, 32], pl.FP32] = pl.exp(t)", "TG010", ""),
        (LOAD + "r: pl.Tensor[[16, 64], pl.FP32] = pl.exp(t)", "TG010", ""),
        (LOAD + "r = t * 1e999", "TG011", ""),
        (LOAD + "r = t * 3.5e38", "TG011", ""),
        ("r = pl.const(300, pl.INT8)", "TG011", "" ),
        ("r = pl.const(1.5, pl.INT32)", "TG011", ""),
        ("r = n + 99999999999999999999", "TG011", ""),
        ("r = n + 1 // 0", "TG011", ""),
        (LOAD + "r = t * float('nan')", "TG002", "math.nan"),
        ("r = __import__('os').system('true')", "TG002", ""),
        ("r = open('x')", "TG003", "executed"),
        ("r = eval('1')", "TG003", ""),
        ("r = n if n > 2 else 3", "TG002", "if statement"),
        ("r = [i for i in n]", "TG002", ""),
        ("r = lambda: n", "TG002", ""),
        ("r = n ** 2", "TG002", ""),
        ("r = 1 < n < 3", "TG002", "and"),
        ("import os", "TG002", ""),
        ("def g():\n    pass", "TG002", ""),
        ("n", "TG002", "assign"),
        ("n.x = 3", "TG002", ""),
        ("a = b = n", "TG002", ""),
        ("r: pl.INDEX", "TG002", ""),
        ("for i in range(4):\n    a = i", "TG002", "pl.range"),
        ("for i in pl.range():\n    a = i", "TG005", ""),
        ("for i in pl.range(0, 4, 0):\n    a = i", "TG008", ""),
        ("for i in pl.range(1.5):\n    a = i", "TG006", ""),
        ("for i in pl.range(4):\n    a = i\nelse:\n    b = 1", "TG002", ""),
        ("for i in pl.parallel(4):\n    break", "TG002", "pl.range"),
        ("break", "TG002", ""),
        ("with open('f'):\n    a = 1", "TG002", "pl.at"),
        ("for i, (a,) in pl.range(4, init_values=(0, 1)):\n    b = pl.yield_(a)", "TG014", ""),
        ("for i, (a,) in pl.range(4, init_values=(0,)):\n    b, c = pl.yield_(a, a)", "TG014", ""),
        ("for i, (a,) in pl.range(4, init_values=(0,)):\n    b = pl.yield_(1.5)", "TG014", "pl.const"),
        ("for i, (a,) in pl.range(4, init_values=(0,)):\n    b = pl.yield_(a)\n    c = n", "TG014", ""),
        ("if n > 2:\n    a = pl.yield_(1)\nelse:\n    b = pl.yield_(2)", "TG014", ""),
        ("if n > 2:\n    a = pl.yield_(1)\nelse:\n    b = 2", "TG014", ""),
        ("if n > 2:\n    a = 1\nelse:\n    a = 1.5\nreturn a", "TG014", ""),
        ("a = pl.yield_(1)", "TG014", ""),
        ("for (a,) in pl.while_(init_values=(0,)):\n    b = pl.yield_(a)", "TG014", "" ),
        ("if n > 2:\n    a = 1\nreturn a", "TG009", ""),
        ("r = pl.yield_", "TG006", ""),
        ("return n, n, n.x", "TG006", ""),
        ("r = pl.range(4)", "TG002", "for i in"),
        ("r = self.missing(n)", "TG003", ""),
        ("r = kernel(n)", "TG005", ""),
        ("r = n(3)", "TG002", ""),
        ("r = x[1, 2, 3]", "TG008", ""),
        ("r = x[0:16:2]", "TG002", ""),
        ("x[0:4] = n", "TG006", ""),
    ],
)  # fmt: skip
def test_statements(body, code, hint):
    found = failure(body)
    assert found.code == code, found.render()
    assert hint in found.hint
    assert found.span.line >= 4


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ("x", "TG002"), ("x: int", "TG004"), ("x: pl.Tensor", "TG002"), ("x: pl.Tensor[[16, 64]]", "TG002"),
        ("x: pl.Tensor[16, pl.FP32]", "TG002"), ("x: pl.Tensor[[16, 64], pl.FP99]", "TG004"),
        ("x: pl.Tensor[[16, 64], pl.FP32, pl.XX]", "TG004"), ("x: pl.Tensor[[-1, 64], pl.FP32]", "TG008"),
        ("x: pl.Tensor[[1.5, 64], pl.FP32]", "TG002"), ("x: pl.Tile[[16], pl.FP32, 5]", "TG002"),
        ("x: pl.INDEX = 3", "TG002"), ("*x: pl.INDEX", "TG002"), ("x: pl.Out[pl.INDEX]", "TG006"),
        ("x: pl.INDEX, *, y: pl.INDEX", "TG002"), ("x: tuple[pl.Out[pl.INDEX], pl.INDEX]", "TG002"),
    ],
)  # fmt: skip
def test_parameters(params, code):
    assert [d.code for d in failures(incore("return", params=params))] == [code]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "TG002"), ("x = 1", "TG002"), ("def f(:", "TG001"), ("x = (1,\n  2", "TG001"), ("a\0b", "TG001"),
        ("\ud800", "TG001"), ("if x:\nreturn 1", "TG001"), ("  x = 1\n x = 2", "TG001"), ("9" * 5000, "TG001"),
        ("print(1)", "TG002"), ("while True:\n    pass", "TG002"), ("x = 1 / 0\n", "TG011"),
        ("x = " + "9" * 4000 + " * " + "9" * 4000, "TG011"),
        ("x = " + "(" * 300 + ")" * 300, "TG012"), ("x = " + "-" * 20000 + "1", "TG012"),
        ("x = " + "1+" * 100000 + "1", "TG012"),
        ("import pypto.language as pl\n@pl.program\nclass A:\n    pass", "TG002"),
    ],
)  # fmt: skip
def test_files(text, code):
    assert code in [d.code for d in failures(text)]


def test_two_programs_and_doubled_functions():
    kernel = incore("return n")
    assert "TG009" in [d.code for d in failures(kernel + kernel.replace("import pypto.language as pl\n", ""))]
    program = "@pl.program\nclass A:\n    @pl.function\n    def f(self):\n        return\n"
    assert [d.code for d in failures(program + program.replace("A", "B"))] == ["TG002"]


def test_bytes_that_are_no_utf8():
    assert failures(b"\xff\xfe\x00x")[0].code == "TG013"
    assert parse("﻿" + SOFTMAX) == parse(SOFTMAX.encode())


def test_all_errors_are_reported_together_up_to_twenty():
    body = "a = y1\nb = a + 1\nc = y2\nfor i in pl.range(y3):\n    d = y4\ne = c + y5"
    found = failures(incore(body))
    assert [(d.code, d.span.line) for d in found] == [("TG003", k) for k in (4, 6, 7, 9)]
    assert len(failures(incore("\n".join(f"a{i} = y{i}" for i in range(50))))) == 20


def test_the_place_is_exact():
    (found,) = failures(incore(LOAD + "r = pl.exp(pl.tile.cast(t, pl.FP32X))"))
    assert (found.span.line, found.span.column, found.span.end_column) == (5, 32, 40)
    rendered = found.render(incore(LOAD + "r = pl.exp(pl.tile.cast(t, pl.FP32X))"))
    assert rendered.splitlines()[2].strip() == "^" * 8


def test_columns_count_characters_not_bytes():
    (found,) = failures(incore('"""é∞"""; r = missing'))
    assert (found.span.line, found.span.column) == (4, 19)


def test_deep_nesting_is_refused_not_fatal():
    deep = "".join("    " * k + "if n > 2:\n" for k in range(95)) + "    " * 95 + "a = 1"
    parse(incore(deep))
    parse(incore("r = " + "-" * 80 + "n"))
    assert {d.code for d in failures(incore("r = n" + " + n" * 3000))} == {"TG012"}


@pytest.mark.parametrize(
    "junk",
    [
        "@$%^" * 2_500_000, "x" * 10_000_000, "\n" * 10_000_000, " " * 10_000_000, "(" * 10_000_000, '"' * 9_999_999,
        "x = y\n" * 1_600_000, "x = y\n" * 150_000, "x = [" + "1," * 300_000 + "]",
        "x=y;" * 2_500_000, "#" * 10_000_000, "1" * 10_000_000, "[[" * 5_000_000, "\t \n" * 3_000_000,
    ],
    ids=str.__len__,
)  # fmt: skip
def test_ten_megabytes_of_junk_are_answered_in_seconds(junk):
    start = time.process_time()
    failures(junk)
    assert time.process_time() - start < 20


def test_a_flood_of_unknown_operations():
    start = time.process_time()
    _, remarks = parse_with_remarks(incore("\n".join(f"pl.tile.expx{i}(n)" for i in range(5000))))
    assert len(remarks) == 5000 and time.process_time() - start < 10


def test_a_text_beyond_the_limit():
    assert failures("#" * 33_000_000)[0].code == "TG012"


@pytest.mark.parametrize(
    "annotation",
    [
        "pl.Tile[[4, 8], pl.FP32, pl.TileView(valid_shape=[4])]",
        "pl.Tile[[4, 8], pl.FP32, pl.TileView(valid_shape=[4, 9])]",
        "pl.Tile[[4, 8], pl.FP32, pl.TileView(valid_shape=[n, 9])]",
        "pl.Tensor[[4, 8], pl.FP32, pl.TensorView(valid_shape=[4, 8, 1], layout=pl.TensorLayout.ND)]",
        "pl.Tensor[[4, 8], pl.FP32, pl.TensorView(valid_shape=[5, n], layout=pl.TensorLayout.ND)]",
        "pl.Tensor[[4, 8], pl.FP32, pl.TensorView(stride=[1], layout=pl.TensorLayout.ND)]",
    ],
)
def test_a_valid_part_lies_inside_its_shape(annotation):
    (found,) = failures(incore(f"r: {annotation} = pl.exp(n)"))
    assert found.code == "TG008" and "[4, 8]" in found.message and found.span is not None
