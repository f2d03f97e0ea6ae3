"""Scalar and SIMT operations against LLVM, brute force and themselves.

    python benchmarks/bench_scalars.py [--scale N]

* every family of plain operations compiled by LLVM, at least a million value tuples each, bit for bit (LLVM leaves the
  last bit of exp, log and pow open);
* every scalar cast: all values of sources of 16 bits and less, over a million drawn ones of the others;
* random cast programs written and read in four designs; random scalar programs through MLIR and back;
* shuffles, votes, reductions and all-reduces of 32 lanes against loops over lanes.

Exits 1 on any disagreement. Needs llvmlite.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent.parent / "tests" / "codegen"
sys.path[:0] = [str(TESTS), str(Path(__file__).parent)]
from bench_audit import machine  # noqa: E402
from test_casts_designs import DESIGNS, parse_design, print_design, random_program  # noqa: E402
from test_llvm import FAMILIES, FLOATS, INTEGERS, LIBRARY, alone, compared, draw, family, interpret  # noqa: E402
from tilegg.codegen.llvm import emit_llvm  # noqa: E402
from tilegg.codegen.mlir_scalars import emit_mlir  # noqa: E402
from tilegg.codegen.pto.api import parse_pto  # noqa: E402
from tilegg.codegen.reading import read_module  # noqa: E402
from tilegg.ir.builder import Builder  # noqa: E402
from tilegg.ir.codes import all_values, same_bits, ulp_distance  # noqa: E402
from tilegg.ir.diagnostics import TileggError  # noqa: E402
from tilegg.ir.dtypes import DTYPES, INT32  # noqa: E402
from tilegg.ir.op import OPS  # noqa: E402
from tilegg.ir.samples import hostile, random_bits  # noqa: E402
from tilegg.ir.simt import launch  # noqa: E402
from tilegg.ir.types import scalar  # noqa: E402

LEAST = 1_000_000


def llvm_families(scale: int) -> bool:
    good = True
    for name, (ops, dtypes, count) in FAMILIES.items():
        start = time.perf_counter()
        try:
            total = family(ops, dtypes, scale * count, np.random.default_rng(17))
        except AssertionError as problem:
            print(f"  {name}: {problem}")
            good = False
            continue
        good &= total >= LEAST
        print(f"  {name:24s} {total:>10,} tuples, all alike, {time.perf_counter() - start:.1f} s")
    return good


def library(scale: int) -> bool:
    rng, good = np.random.default_rng(19), True
    for name in LIBRARY:
        total = differ = most = 0
        for d in FLOATS:
            f = alone(f"scalar.{name}", [DTYPES[d]] * len(OPS[f"scalar.{name}"].operand_params))
            from llvm_run import run_llvm

            columns = [draw(DTYPES[d], scale * 350_000, rng) for _ in f.params]
            want, got = interpret(f, columns)[0], run_llvm(f, columns)
            steps = ulp_distance(got, want, DTYPES[d])
            total, differ, most = total + want.size, differ + int((steps > 0).sum()), max(most, int(steps.max()))
        good &= most <= 1 and total >= LEAST
        print(f"  {name:24s} {total:>10,} tuples, {differ} differ, by {most} unit in the last place at most")
    return good


def casts(scale: int) -> bool:
    rng = np.random.default_rng(23)
    exhaustive = sampled = pairs = refused = 0
    for a in ("BOOL", *INTEGERS, *FLOATS):
        for b in ("BOOL", *INTEGERS, *FLOATS):
            src, dst = DTYPES[a], DTYPES[b]
            f = alone("scalar.cast", [src], dtype=dst)
            try:
                emit_llvm(f)
            except TileggError:
                refused += 1
                continue
            pairs += 1
            if src.bits <= 16:
                exhaustive += compared(f, [all_values(src)])
            else:
                count = scale << 15
                sampled += compared(f, [np.concatenate([hostile(src, dst, rng, count), random_bits(src, rng, count)])])
    print(f"  {pairs} pairs: {exhaustive:,} values of narrow sources (all), {sampled:,} of wide ones; {refused} pairs"
          " have no single rounding in LLVM")  # fmt: skip
    return sampled >= LEAST


def designs(count: int) -> bool:
    good, total = True, 0
    for design in DESIGNS:
        rng = random.Random(100 + design)
        for _ in range(count):
            p = random_program(rng)
            good &= parse_design(print_design(p, design), design) == p
            total += len(p.casts)
    found = "identical" if good else "DIFFER"
    print(f"  {count:,} programs in each of {len(DESIGNS)} designs, {total:,} casts: {found}")
    return good


_WORDS = ("add", "sub", "mul", "max", "min", "div", "rem", "bit_and", "bit_xor", "shl", "shr", "abs", "neg")


def reading(count: int) -> bool:
    """Random straight-line programs written as MLIR, read back and run."""
    good, total = True, 0
    for seed in range(count):
        rng = np.random.default_rng([29, seed])
        dtype = DTYPES[str(rng.choice([*INTEGERS, *FLOATS]))]
        b = Builder("f")
        values = [b.param(n, scalar(dtype)) for n in "xy"]
        for _ in range(8):
            decl = OPS[f"scalar.{rng.choice(_WORDS)}"]
            if decl.scalar is not None and dtype.name in decl.scalar.types and (dtype.is_int or "rem" not in decl.name):
                picked = rng.integers(0, len(values), len(decl.params))
                values.append(b.op(decl.name, *(values[int(i)] for i in picked)))
        b.ret(values[-1])
        f = b.function()
        (back,) = read_module(parse_pto(emit_mlir(f))).functions
        columns = [hostile(dtype, dtype, rng, 64) for _ in range(2)]
        want = interpret(f, columns)[0]
        got = interpret(back, [c.view(p.value.type.dtype.storage) for c, p in zip(columns, back.params)])[0]
        same = same_bits(got.view(dtype.storage), want, dtype)
        good &= bool(same.all())
        total += want.size
    print(f"  {count:,} programs through MLIR and back, {total:,} results: {'identical' if good else 'DIFFER'}")
    return good


def lanes(rounds: int) -> bool:
    """Operations across 32 lanes against loops over lanes."""
    rng, wrong, total = np.random.default_rng(31), 0, 0
    for _ in range(rounds):
        x = rng.integers(-1000, 1000, 32)
        by, width = int(rng.integers(0, 32)), int(rng.choice([16, 32]))
        for name, at in (
            ("idx", lambda i, w, k: i - i % w + k % w), ("up", lambda i, w, k: i - k if i % w >= k else i),
            ("down", lambda i, w, k: i + k if i % w + k < w else i), ("bfly", lambda i, w, k: i ^ k),
        ):  # fmt: skip
            k = by % width
            want = [x[j] if (j := at(i, width, k)) // width == i // width else x[i] for i in range(32)]
            wrong += _run(f"pto.shuffle_{name}", x, k, width=width).tolist() != want
        p = rng.random(32) < rng.random()
        wrong += _run("pto.vote_all", p).tolist() != [all(p)] * 32
        wrong += _run("pto.vote_any", p).tolist() != [any(p)] * 32
        wrong += _run("pto.vote_ballot", p).tolist() != [sum(1 << i for i in range(32) if p[i])] * 32
        for word, fold in (("add", sum), ("max", max), ("min", min)):
            wrong += _run(f"pto.redux_{word}", x).tolist() != [fold(x.tolist())] * 32
        for threads in (2, 4, 8, 16, 32):
            for word, fold in (("sum", sum), ("max", max), ("min", min)):
                groups = [fold(x[i - i % threads : i - i % threads + threads].tolist()) for i in range(32)]
                wrong += _run(f"pto.simt_allreduce_{word}", x, threads=threads).tolist() != groups
        total += 4 + 3 + 3 + 15
    print(f"  {total:,} operations across 32 lanes in {rounds:,} rounds: {wrong} differ")
    return wrong == 0


def _run(name: str, x: np.ndarray, by: int | None = None, **attrs: int) -> np.ndarray:
    dtype = DTYPES["BOOL"] if x.dtype == np.bool_ else INT32
    b = Builder("f", type="pl.FunctionType.SimtEntry")
    operands = [b.param("x", scalar(dtype)), *([] if by is None else [b.param("by", scalar(INT32))])]
    b.ret(b.op(name, *operands, **attrs))
    f = b.function()
    return np.asarray(launch({"f": f}, "f", [32, 1, 1], [x, *([] if by is None else [by])])[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=1, help="multiplies the counts")
    scale = parser.parse_args().scale
    print(machine())
    good = True
    for title, work in (
        ("LLVM against the interpreter", lambda: llvm_families(scale)), ("LLVM's library", lambda: library(scale)),
        ("casts", lambda: casts(scale)), ("four designs of casts", lambda: designs(10_000 * scale)),
        ("assembly read back", lambda: reading(400 * scale)), ("lanes", lambda: lanes(40 * scale)),
    ):  # fmt: skip
        print(title, flush=True)
        good &= work()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
