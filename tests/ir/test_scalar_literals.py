"""Literals beside scalars, elements and signals adapt to the dtype, or are refused where they would change."""

import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.text import parse, print_program
from tilegg.ir.verify import verify

HEAD = "import pypto.language as pl\nimport pypto.language.distributed as pld\n"
SCALARS = {"x": "INT32", "u": "UINT32", "b": "INT8", "h": "FP16", "i": "INDEX"}
PARAMS = ", ".join([
    *(f"{name}: pl.Scalar[pl.{dtype}]" for name, dtype in SCALARS.items()),
    'q: pl.InOut[pl.Ptr[pl.INT32, "gm"]]', 'f: pl.InOut[pl.Ptr[pl.FP16, "gm"]]',
    "s: pl.InOut[pld.DistributedTensor[[8], pl.INT32]]",
])  # fmt: skip


def read(line):
    return parse(f"{HEAD}@pl.function\ndef k({PARAMS}):\n    {line}\n", "k.py")


WRONG = [
    "y = x + 1.5", "y = 1.5 + x", "y = x + 5000000000", "y = 5000000000 * x", "y = pl.max(x, 1.5)", "y = pl.max(u, -1)",
    "y = pl.min(x, 2147483648)", "c = x < 1.5", "c = u == -1", "y = i + 1.5", "y = b + 128", "y = b - 129",
    "y = x & 4294967296", "y = b | 0.5", "y = pl.select(x > 0, x, 1.5)",
    "pl.pto.stg(2.75, q, 0)", "pl.pto.store(2147483648, q, 0)", "pl.scalar.store(0.5, q, 0)",
    "pl.pto.store_scalar(1e10, q, 0)", "y = pl.pto.atomic_add(q, 1.5)", "y = pl.pto.atomic_add(q, 4294967295)",
    "y = pl.pto.atomic_cas(q, 0.5, 1)", "y = pl.pto.atomic_cas(q, 1, 0.5)", "y = pl.pto.atomic_and(q, 4294967296)",
    "y = pl.pto.mulhi(x, 1.5)",
    "pld.system.notify(s, 0, [0], 1.5, op=pld.NotifyOp.AtomicAdd)",
    "pld.system.notify(s, 0, [0], 5000000000, op=pld.NotifyOp.Set)",
    "pld.system.wait(s, [0], 0.5, cmp=pld.WaitCmp.Ge)",
]  # fmt: skip


@pytest.mark.parametrize("line", WRONG)
def test_literals_that_would_change_are_refused(line):
    with pytest.raises(TileggError) as caught:
        read(line)
    found = caught.value.diagnostics[0]
    assert (found.code, found.span.line) == ("TG011", 5)
    assert found.hint and ("is no value of" in found.message or "does not fit" in found.message)


@pytest.mark.parametrize(("given", "ok"), [("1.5", False), ("5000000000", False), ("2.0", True), ("-5", True)])
def test_arguments_of_calls(given, ok):
    head = "@pl.program\nclass P:\n    @pl.function\n    def g(self, n: pl.Scalar[pl.INT32]):\n        return n\n"
    text = f"{HEAD}{head}    @pl.function\n    def h(self):\n        return self.g({given})\n"
    if ok:
        parse(text)
        return
    with pytest.raises(TileggError) as caught:
        parse(text)
    found = caught.value.diagnostics[0]
    assert (found.code, found.span.line) == ("TG011", 10) and "argument n" in found.message


@pytest.mark.parametrize(("given", "found"), [("5000000000", ["TG011"]), ("-5", [])])
def test_arguments_of_launches(given, found):
    text = f"""{HEAD}@pl.program
class P:
    @pl.function(type=pl.FunctionType.SimtEntry)
    def g(self, q: pl.InOut[pl.Ptr[pl.INT32, "gm"]], n: pl.Scalar[pl.INT32]):
        pl.pto.stg(n, q, pl.pto.get_tid_x())
    @pl.function(type=pl.FunctionType.InCore)
    def h(self, q: pl.InOut[pl.Ptr[pl.INT32, "gm"]]):
        pl.pto.simt_launch("g", [32, 1, 1], q, {given})
"""
    assert [d.code for d in verify(parse(text))] == found


RIGHT = [
    "y = x + 2147483647", "y = x + -2147483648", "y = x + 2.0", "y = u + 4294967295", "y = pl.max(u, 0)",
    "y = b + -128", "y = x & 4294967295", "y = u | -1", "y = b ^ 255", "y = h + 70000", "y = h * 1.5", "c = x >= -5",
    "y = i * 5000000000", "pl.pto.store(-1, q, 0)", "pl.pto.store(1.5, f, 0)", "pl.pto.store(1, f, 0)",
    "y = pl.pto.atomic_add(q, -1)", "y = pl.pto.atomic_and(q, 4294967295)", "y = pl.pto.atomic_add(f, 1.5)",
    "pld.system.notify(s, 0, [0], -1, op=pld.NotifyOp.AtomicAdd)", "pld.system.wait(s, [0], 1, cmp=pld.WaitCmp.Ge)",
]  # fmt: skip


@pytest.mark.parametrize("line", RIGHT)
def test_literals_that_fit_stay(line):
    program = read(line)
    assert parse(print_program(program)) == program
