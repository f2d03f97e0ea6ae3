"""Rank programs with collectives, their inputs, and the comparison of the lowered form with the definition."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from tilegg.ir.program import Program
from tilegg.ir.ranks import RankResult, run_ranks, schedules
from tilegg.ir.text import parse
from tilegg.rewrite.expand import expand

OPS = ("Sum", "Max", "Min", "Prod")
DTYPES = {"FP16": np.float16, "FP32": np.float32}
RANKS = tuple(range(2, 9))
#: Elements; negative ones stand for NR - 1, NR and NR + 1.
SIZES = (1, 7, 8, 15, 16, 17, -1, -2, -3, 4095, 4096, 4097, 10000)
COLLECTIVES = ("broadcast", "reduce_scatter", "allgather", "all_to_all", "all_to_all_v", "barrier")
MAX_RECV = 3

_HEAD = """
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
M = pl.dynamic("M")

@pl.function(type=pl.FunctionType.InCore)
def kernel({params}):
"""


@dataclass(frozen=True)
class Case:
    """One collective: ``what`` is mesh or ring (of allreduce), or another collective's name."""

    what: str
    dtype: str
    op: str
    ranks: int
    size: int

    @property
    def elements(self) -> int:
        """The size with NR - 1, NR and NR + 1 resolved."""
        return self.size if self.size > 0 else self.ranks + (-1, 0, 1)[-self.size - 1]

    def __str__(self) -> str:
        return f"{self.what}-{self.dtype}-{self.op}-{self.ranks}-{self.elements}"


def kernel(params: Sequence[str], body: str) -> Program:
    """Return a program of one kernel; the body is indented by four spaces."""
    return parse(_HEAD.format(params=", ".join(params)) + body)


def _window(case: Case) -> str:
    rows = {"mesh": "1", "ring": "1", "broadcast": "2", "all_to_all_v": str(MAX_RECV * case.ranks)}
    return f"w: pld.DistributedTensor[[{rows.get(case.what, 'NR')}, {case.elements}], pl.{case.dtype}]"


def _call(case: Case, k: int) -> str:
    op = f", op=pld.ReduceOp.{case.op}"
    return {
        "mesh": f"pld.tensor.allreduce(w, sig{op})",
        "ring": f"pld.tensor.allreduce(w, sig{op}, mode='ring')",
        "reduce_scatter": f"pld.tensor.reduce_scatter(w, sig{op})",
        "broadcast": f"pld.tensor.broadcast(w, sig, root={k % case.ranks})",
        "allgather": f"pld.tensor.allgather(x{k}, w, sig)",
        "all_to_all": f"pld.tensor.all_to_all(x{k}, w, sig)",
        "all_to_all_v": f"pld.tensor.all_to_all_v(x{k}, w, sig, c{k}, got)",
        "barrier": "pld.tensor.barrier(sig)",
    }[case.what]


@cache
def program(case: Case, calls: int = 1) -> Program:
    """Return a program of ``calls`` calls on one window and one signal, each result copied to an output ``y0``..."""
    what, e, t = case.what, case.elements, case.dtype
    params = [] if what == "barrier" else [_window(case)]
    params.append("sig: pld.DistributedTensor[[" + ("M, NR" if what == "ring" else "NR, 1") + "], pl.INT32]")
    body = ""
    rows = {"mesh": 1, "ring": 1, "broadcast": 2, "barrier": 0}.get(what, case.ranks)
    for k in range(calls):
        if what == "allgather":
            params.append(f"x{k}: pl.Tensor[[1, {e}], pl.{t}]")
        if what in ("all_to_all", "all_to_all_v"):
            n = "NR" if what == "all_to_all" else str(MAX_RECV * case.ranks)
            params.append(f"x{k}: pl.Tensor[[{n}, {e}], pl.{t}]")
        if what == "all_to_all_v":
            params.append(f"c{k}: pl.Tensor[[NR], pl.INT32]")
        body += f"    r{k} = {_call(case, k)}\n"
        if calls > 1 and what not in ("barrier", "all_to_all_v"):
            params.append(f"y{k}: pl.Out[pl.Tensor[[{rows}, {e}], pl.{t}]]")
            body += f"    y{k} = pl.store(pl.load(r{k}, [0, 0], [{rows}, {e}]), [0, 0], y{k})\n"
    if what == "all_to_all_v":
        params.append("got: pld.DistributedTensor[[NR, 1], pl.INT32]")
    return kernel(params, body)


@cache
def lowered(case: Case, calls: int = 1) -> Program:
    """Return the same program with its collectives lowered."""
    return expand(program(case, calls))


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return numbers whose sums depend on their order, with a few zeros of both signs, infinities and NaNs."""
    out = (rng.uniform(-2, 2, shape) * 2.0 ** rng.integers(-5, 4, shape)).astype(DTYPES[dtype])
    special = rng.integers(0, 200, shape)
    for code, value in enumerate((0.0, -0.0, np.inf, -np.inf, np.nan)):
        out[special == code] = value
    return out


def inputs(case: Case, calls: int = 1) -> list[dict[str, Any]]:
    """Return each rank's inputs; windows that need no contents stay undefined."""
    found = []
    e, n = case.elements, case.ranks
    for r in range(n):
        rng = np.random.default_rng([r, e, n])
        given: dict[str, Any] = {}
        if case.what in ("mesh", "ring", "reduce_scatter"):
            given["w"] = numbers(rng, (n if case.what == "reduce_scatter" else 1, e), case.dtype)
        if case.what == "broadcast" and r == 0:
            given["w"] = numbers(rng, (2, e), case.dtype)
        for k in range(calls):
            rows = {"allgather": 1, "all_to_all": n, "all_to_all_v": n * MAX_RECV}.get(case.what)
            if rows is not None:
                given[f"x{k}"] = numbers(rng, (rows, e), case.dtype)
            if case.what == "all_to_all_v":
                given[f"c{k}"] = rng.integers(-1, MAX_RECV + 2, n).astype(np.int32)
        found.append(given)
    return found


def run(p: Program, case: Case, given: list[dict[str, Any]], schedule: Any = None) -> RankResult:
    """Run a program of :func:`program` on all ranks."""
    return run_ranks(p, case.ranks, given, schedule=schedule, dims={"NR": case.ranks, "M": 2 * (case.ranks - 1)})


def difference(want: RankResult, got: RankResult) -> str:
    """Return what differs between the definition's result and the lowered one, or an empty string.

    All windows are compared where they are defined, signals among them: the definition leaves those as they were.
    """
    if got.findings:
        return str(got.findings[0])
    for name in want.windows:
        for r in range(want.ranks):
            known = want.known[name][r]
            if not np.array_equal(known, got.known[name][r]):
                return f"{name} of rank {r} is defined elsewhere"
            if want.windows[name][r][known].tobytes() != got.windows[name][r][known].tobytes():
                return f"{name} of rank {r} differs"
    for r, (a, b) in enumerate(zip(want.outputs, got.outputs, strict=True)):
        for name in a:
            if a[name].tobytes() != b[name].tobytes():
                return f"{name} of rank {r} differs"
    return ""


def check(case: Case, which: Sequence[int], calls: int = 1) -> RankResult:
    """Compare the lowered program with the definition under schedules by number; return the last result."""
    given = inputs(case, calls)
    want = run(program(case, calls), case, given).check()
    kept = list(itertools.islice(schedules(case.ranks, max(which) + 1), max(which) + 1))
    for i in which:
        got = run(lowered(case, calls), case, given, kept[i])
        problem = difference(want, got)
        assert not problem, f"{case}, schedule {i}: {problem}"
        assert not any(cells.any() for cells in got.windows["sig"]), f"{case}, schedule {i}: the signal is not zero"
    return got


def pairwise(*axes: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield rows such that every two values of two different axes stand together in one of them."""
    rng = random.Random(1)
    pairs = list(itertools.combinations(range(len(axes)), 2))
    open_pairs = {(i, j, a, b) for i, j in pairs for a in axes[i] for b in axes[j]}

    def new(row: Sequence[Any]) -> list[tuple[int, int, Any, Any]]:
        return [key for i, j in pairs if (key := (i, j, row[i], row[j])) in open_pairs]

    while open_pairs:
        i, j, a, b = min(open_pairs, key=repr)
        best: tuple[Any, ...] = ()
        for _ in range(30):
            row = [rng.choice(axis) for axis in axes]
            row[i], row[j] = a, b
            if not best or len(new(row)) > len(new(best)):
                best = tuple(row)
        open_pairs -= set(new(best))
        yield best
