"""Execution domains inferred from marks, calls and sections; section kinds only from what proves them."""

import pytest
from tilegg.ir.domains import contexts, section_evidence, sections
from tilegg.ir.text import parse, print_program
from tilegg.ir.verify import verify

HEAD = "import pypto.language as pl\n@pl.program\nclass P:\n"


def program(*functions):
    return parse(HEAD + "".join(functions), "k.py")


def function(body, name="f", params="", type="InCore"):
    lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
    return f"    @pl.function(type=pl.FunctionType.{type})\n    def {name}({params}):\n{lines}\n"


def codes(*functions):
    return [d.code for d in verify(program(*functions))]


PTR = 'p: pl.InOut[pl.Ptr[pl.FP32, "gm"]]'
QUERY = "t = pl.pto.get_tid_x()"
LDG = "x = pl.pto.ldg(p, 0)"


def test_ordinary_functions_refuse_simt_operations_with_a_stable_code():
    for line in (QUERY, LDG, "pl.pto.syncthreads()", "y = pl.pto.resume(pl.FP32)", "b = pl.pto.vote_any(True)"):
        found = verify(program(function(line, params=PTR)))
        assert [d.code for d in found] == ["TG055"], line
        assert found[0].span.line == 6 and "section_simt" in found[0].hint


def test_simt_entries_take_them_and_refuse_tiles():
    assert codes(function(f"{QUERY}\n{LDG}\npl.pto.syncthreads()", params=PTR, type="SimtEntry")) == []
    tile = "a = pl.tile.create([16, 16], dtype=pl.FP32)"
    assert codes(function(tile, type="SimtEntry")) == ["TG056"]
    assert codes(function("x = pl.pto.load_scalar(p, 0)", params=PTR, type="SimtEntry")) == ["TG056"]
    assert codes(function("b = pl.foo.bar()", type="SimtEntry")) == ["TG056"]
    assert codes(function("return", params="x: pl.Tensor[[4], pl.FP32]", type="SimtEntry")) == ["TG056"]


def test_sections_are_simt_code_inside_an_ordinary_function():
    body = f"with pl.section_simt(32, 1, 1):\n    {QUERY}\n    {LDG}\n"
    assert codes(function(body, params=PTR)) == []
    assert codes(function(body + LDG, params=PTR)) == ["TG055"]
    inside = "with pl.section_simt(32, 1, 1):\n    a = pl.tile.create([16, 16], dtype=pl.FP32)\n"
    assert codes(function(inside)) == ["TG056"]
    assert codes(function("with pl.section_vector():\n    " + QUERY)) == ["TG055"]


def test_a_section_inside_of_a_section():
    body = "with pl.section_simt(32, 1, 1):\n    t = pl.pto.get_tid_x()\n"
    assert codes(function(body, type="SimtEntry")) == ["TG056"]


def helper(body, name="helper", params=""):
    return function(body, name, params)


CALL = "self.helper()"


def test_helpers_run_where_they_are_called():
    entry, main = function(CALL, "entry", type="SimtEntry"), function(CALL, "main")
    assert codes(helper(QUERY), entry) == []
    assert codes(helper(QUERY), main) == ["TG055"]
    found = verify(program(helper(QUERY), entry, main))
    assert [d.code for d in found] == ["TG057"] and "helper" in found[0].message
    assert codes(helper("s = 1 + 2"), entry, main) == []
    assert codes(helper("a = pl.tile.create([16, 16], dtype=pl.FP32)"), entry, main) == ["TG057"]
    section = function(f"with pl.section_simt(4, 1, 1):\n    {CALL}", "main")
    assert codes(helper(QUERY), section) == []


def test_contexts_follow_calls():
    p = program(helper("s = 1 + 2"), function(CALL, "entry", type="SimtEntry"), function(CALL, "main"))
    assert contexts(p) == {
        "helper": frozenset({"ordinary", "simt"}), "entry": frozenset({"simt"}), "main": frozenset({"ordinary"}),
    }  # fmt: skip


def test_entries_are_launched_not_called():
    entry = function(QUERY, "entry", "n: pl.Scalar[pl.INT32]", "SimtEntry")
    assert codes(entry, function('pl.pto.simt_launch("entry", [32, 1, 1], pl.const(3, pl.INT32))', "main")) == []
    assert codes(entry, function("self.entry(pl.const(3, pl.INT32))", "main")) == ["TG055"]
    assert codes(entry, function('pl.pto.simt_launch("entry", [32, 1, 1])', "main")) == ["TG005"]
    assert codes(entry, function('pl.pto.simt_launch("other", [32, 1, 1])', "main")) == ["TG055"]
    assert codes(entry, function('pl.pto.simt_launch("entry", [32, 1, 1], 1.0)', "main")) == ["TG006"]
    plain = function("s = 1 + 2", "entry")
    assert codes(plain, function('pl.pto.simt_launch("entry", [32, 1, 1])', "main")) == ["TG055"]
    again = function('pl.pto.simt_launch("entry", [32, 1, 1], pl.const(3, pl.INT32))', "main", type="SimtEntry")
    assert codes(entry, again) == ["TG056"]


SCALAR = """
a = pl.max(x, 1.0)
b = pl.sqrt(a)
c = pl.pto.fma(a, b, x)
d = pl.pto.fmax(c, a)
e = pl.cast(d, pl.INT32)
f = pl.pto.mulhi(e, e)
g = pl.pto.load(p, 0)
pl.pto.store(g, p, 1)
h = pl.load(p, 2, contiguous=1)
"""


def test_plain_scalar_code_proves_no_section():
    f = program(function(SCALAR, params=f"x: pl.Scalar[pl.FP32], {PTR}")).functions[0]
    assert sections(f) == () and verify(program(function(SCALAR, params=f"x: pl.Scalar[pl.FP32], {PTR}"))) == []


@pytest.mark.parametrize(
    "line", [QUERY, "b = pl.pto.vote_any(True)", "pl.pto.threadfence()", "pl.pto.keep(x)", "r = pl.pto.redux_add(x)"]
)
def test_queries_collectives_and_state_prove_simt(line):
    f = program(function(SCALAR + line, params=f"x: pl.Scalar[pl.FP32], {PTR}")).functions[0]
    assert sections(f) == ("simt",) and [e.line for e in section_evidence(f)] == [15]


def test_tile_helpers_and_explicit_sections():
    tile = "a = pl.tile.create([16, 16], dtype=pl.FP32)\nb = pl.tile.add(a, a)"
    assert sections(program(function(tile)).functions[0]) == ("vector",)
    assert sections(program(function("with pl.section_cube():\n    s = 1 + 2")).functions[0]) == ("cube",)
    both = f"{tile}\nwith pl.section_simt(4, 1, 1):\n    s = 1 + 2"
    assert sections(program(function(both)).functions[0]) == ("simt", "vector")
    memory = function("x = pl.pto.ldg(p, 0)\ny = pl.pto.atomic_add(p, 1.0)", params=PTR)
    assert sections(program(memory).functions[0]) == ()


MIXED = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.SimtEntry)
    def entry(p: pl.InOut[pl.Ptr[pl.FP32, "gm"]], n: pl.Scalar[pl.INT32]):
        t = pl.pto.get_tid_x()
        s = self.scaled(n, t)
        x = pl.pto.ldg(p, s)
        pl.pto.stg(pl.max(x, 0.0), p, t)

    @pl.function
    def scaled(n: pl.Scalar[pl.INT32], t: pl.Scalar[pl.INT32]) -> pl.Scalar[pl.INT32]:
        return pl.rem(pl.max(n, t), 16)

    @pl.function
    def helper(a: pl.Tile[[16, 16], pl.FP32], x: pl.Scalar[pl.FP32]) -> pl.Tile[[16, 16], pl.FP32]:
        return pl.tile.adds(a, pl.max(x, 1.0))

    @pl.function(type=pl.FunctionType.InCore)
    def plain(x: pl.Scalar[pl.FP32], p: pl.InOut[pl.Ptr[pl.FP32, "gm"]]):
        pl.pto.store(pl.pto.fma(pl.sqrt(x), pl.max(x, 1.0), pl.pto.load(p, 1)), p, 0)

    @pl.function(type=pl.FunctionType.InCore)
    def main(x: pl.Tensor[[16, 16], pl.FP32], p: pl.InOut[pl.Ptr[pl.FP32, "gm"]], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        pl.pto.simt_launch("entry", [16, 1, 1], p, pl.const(3, pl.INT32))
        t = pl.tile.load(x, [0, 0], [16, 16])
        with pl.section_simt(16, 1, 1):
            i = pl.pto.get_laneid()
            pl.pto.stg(1.0, p, i)
        pl.tile.store(t, [0, 0], o)
"""  # noqa: E501


def test_sections_of_a_mixed_program():
    p = parse(MIXED)
    assert verify(p) == []
    # Plain arithmetic, target intrinsics and pointers fit anywhere; a launch alone is no SIMT code.
    assert {f.name: sections(f) for f in p.functions} == {
        "entry": ("simt",), "scaled": (), "helper": ("vector",), "plain": (), "main": ("simt", "vector"),
    }  # fmt: skip
    assert contexts(p) == {
        "entry": {"simt"}, "scaled": {"simt"}, "helper": {"ordinary"}, "plain": {"ordinary"}, "main": {"ordinary"},
    }  # fmt: skip


@pytest.mark.parametrize("sizes", ["", "0, 1, 1", "-1, 1, 1", "1, 1, 1, 1", "n + 1, 1, 1", "'a'", "1.5"])
def test_wrong_section_sizes(sizes):
    body = f"with pl.section_simt({sizes}):\n    {QUERY}"
    assert "TG006" in codes(function(body, params="n: pl.Scalar[pl.INDEX]"))
    assert codes(function(f"with pl.section_simt(n, 4):\n    {QUERY}", params="n: pl.Scalar[pl.INDEX]")) == []


def test_sections_survive_printing():
    p = program(function(f"with pl.section_simt(8, 4, 1):\n    {QUERY}"))
    assert parse(print_program(p)) == p
