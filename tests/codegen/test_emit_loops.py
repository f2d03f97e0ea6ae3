"""Results of loops are made in the storage of what the loop carries only where nothing of the old value is lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tilegg
from tilegg.extract.inplace import ELEMENTWISE
from tilegg.ir.op import OPS, Kind

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check

HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[48, 64], pl.{dtype}], z: pl.Tensor[[48, 64], pl.{dtype}], n: pl.Scalar[pl.INT32],
          y: pl.Out[pl.Tensor[[16, 64], pl.{dtype}]]):
        t = pl.load(x, [0, 0], [16, 64])
        u = pl.load(z, [0, 0], [16, 64])
"""
#: Bodies that go on with ``t`` (and ``u``); each line once in the loop.
ACCUMULATED = {
    "the other operand is added to": ("t = pl.tile.axpy(u, t, 0.5)",),
    "the carried tile is added to": ("t = pl.tile.axpy(t, u, 0.5)",),
    "it is added to itself": ("t = pl.tile.axpy(t, t, 0.5)",),
    "a new tile is added to": ("a = pl.tile.full([16, 64], pl.FP32, 1.0)", "t = pl.tile.axpy(a, t, 0.5)"),
    "a computed tile is added to": ("a = pl.abs(u)", "t = pl.tile.axpy(a, u, 0.5)"),
    "computed after the carried tile was read": ("b = pl.neg(t)", "a = pl.abs(u)", "t = pl.tile.axpy(a, b, 0.5)"),
    "computed from the carried tile": ("a = pl.neg(t)", "t = pl.tile.axpy(a, t, 0.5)"),
    "a loaded tile is added to": ("a = pl.load(z, [i * 16, 0], [16, 64])", "t = pl.tile.axpy(a, t, 0.5)"),
    "a constant": ("t = pl.add(pl.mul(t, 0.5), 1.0)",),
    "a moving average": ("a = pl.load(z, [i * 16, 0], [16, 64])", "t = pl.add(pl.mul(t, 0.75), pl.mul(a, 0.25))"),
    "a polynomial": ("t = pl.add(pl.mul(t, 0.25), u)",),
    "roles change": ("v = pl.tile.axpy(u, t, 0.5)", "w = pl.tile.axpy(t, u, 0.25)", "t = v", "u = w"),
    "a sum and what is made of it change places": ("v = pl.tile.axpy(t, u, 0.5)", "t = pl.mul(v, 0.9)", "u = v"),
    "two numbers of a series": ("v = pl.tile.axpy(t, u, 0.5)", "t = pl.add(v, u)", "u = v"),
    "a sum goes on, and what is made of it": ("v = pl.tile.axpy(u, t, 0.5)", "u = pl.abs(v)", "t = v"),
    "two sums, one of the other": (
        "v = pl.tile.axpy(t, u, 0.5)", "w = pl.tile.axpy(u, v, 0.25)", "t = pl.neg(w)", "u = v",
    ),
    "each becomes the other": ("v = pl.tile.axpy(t, u, 0.5)", "t = u", "u = v"),
    "a part of itself is put into it": ("t = pl.tile.assemble(t, pl.slice(t, [8, 64], [8, 0]), [0, 0])",),
    "a part of it is put into a new tile": ("a = pl.tile.full([16, 64], pl.FP32, 1.0)",
                                            "t = pl.tile.assemble(a, pl.slice(t, [8, 64], [8, 0]), [0, 0])"),
    "a sum of rows is spread over it": ("t = pl.row_expand_sub(t, pl.row_max(t))",),
    "turned in every round": ("a = pl.reshape(t, [32, 32])",
                              "t = pl.reshape(pl.transpose(a, axis1=0, axis2=1), [16, 64])"),
    "made before a loop that goes on in its place": (
        "v = pl.maximum(u, 1.5)", "for j in pl.range(2):", "    t = pl.add(t, u)", "u = t", "t = v",
    ),
    "made before a loop that nobody reads": (
        "v = pl.maximum(u, 1.5)", "for j, (c, d) in pl.range(2, init_values=(t, u)):",
        "    w = pl.add(d, 0.5)", "    e, f = pl.yield_(w, d)", "t = v",
    ),
    "in a branch": ("if n > 0:", "    t = pl.tile.axpy(u, t, 0.5)", "else:", "    t = pl.mul(t, 0.5)"),
    "in a loop inside": ("for j in pl.range(2):", "    t = pl.add(pl.mul(t, 0.5), u)"),
}  # fmt: skip


def checked(lines: tuple[str, ...], target: str, dtype: str = "FP32", n: int = 1) -> None:
    """Run a loop over some lines in the interpreter and as assembly, under both ends of the contracts."""
    body = "".join(f"            {line}\n" for line in lines)
    loop = f"        for i in pl.range(3):\n{body}        return pl.store(pl.add(t, u), [0, 0], y)\n"
    program = tilegg.parse(HEAD.format(dtype=dtype) + loop)
    for contract in ("exact", "contracted"):
        lowered = tilegg.lower(program, target, contract=contract, memo=None)
        if contract == "exact":
            assert tilegg.equivalent(program, lowered.program, samples=6).equal
        check(lowered, target, {"n": n})


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("case", ACCUMULATED)
def test_what_is_added_to_keeps_its_operands(case: str, target: str) -> None:
    checked(ACCUMULATED[case], target)
    if "branch" in case:
        checked(ACCUMULATED[case], target, n=0)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_every_elementwise_operation_may_overwrite_what_it_reads(target: str) -> None:
    machine = tilegg.rules.target.load_target(target)
    done = 0
    for name in sorted(ELEMENTWISE):
        decl = OPS[name]
        kinds = [p.kind for p in decl.operand_params if p.required]
        for dtype in ("FP32", "INT32"):
            if decl.pto is None or not machine.legal(decl.pto, tilegg.ir.dtypes.parse_dtype(dtype)):
                continue
            scalar = "0.5" if dtype == "FP32" else "3"
            for order in (("t", "u"), ("u", "t")):
                tiles = iter(order)
                given = [next(tiles, "u") if kind is Kind.TILE else scalar for kind in kinds]
                try:
                    checked((f"t = pl.{name}({', '.join(given)})",), target, dtype)
                    done += 1
                except tilegg.TileggError as problem:
                    assert problem.diagnostics[0].code in ("TG005", "TG006", "TG007", "TG008", "TG022"), problem
    assert done >= 60


#: What is counted is a region's; tiles that change roles are copied without one.
_UNCOUNTED = ("branch", "loop", "turned", "other", "series", "made of it", "made before")
COUNTED = [c for c in ACCUMULATED if not any(word in c for word in _UNCOUNTED)]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("case", [*COUNTED, "the other operand is added to"])
def test_copies_are_counted(case: str, target: str) -> None:
    """Assembly has no instruction more than was counted, copies included."""
    body = "".join(f"            {line}\n" for line in ACCUMULATED[case])
    for end in ("t", "u"):
        loop = f"        for i in pl.range(3):\n{body}        return pl.store({end}, [0, 0], y)\n"
        program = tilegg.parse(HEAD.format(dtype="FP32") + loop)
        for contract in ("exact", "contracted"):
            lowered = tilegg.lower(program, target, contract=contract, memo=None)
            text = tilegg.emit(lowered, target)
            before, inside = text.split("scf.for", 1)
            lines = [line.lstrip() for line in inside.splitlines()]
            written = sum(line.startswith("pto.t") and not line.startswith("pto.treshape") for line in lines)
            counted = sum(i.count for i in lowered.functions[0].instructions)
            assert written + before.count("pto.tload") <= counted, text
