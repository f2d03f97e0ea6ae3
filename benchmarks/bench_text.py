"""Microseconds per statement of reading and writing IR text, at 100, 1,000 and 10,000 statements.

Run: ``python benchmarks/bench_text.py``. The kernel is annotated SSA text as compilers dump it, with a scalar
operation, a load, a cast, arithmetic and a reduction in turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from tilegg.ir.text import parse, print_program

_HEADER = """\
import pypto.language as pl

@pl.program
class Bench:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[4096, 64], pl.BF16], n: pl.Scalar[pl.INDEX]):
        f0: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.full([16, 64], dtype=pl.FP32, value=0.0)
        s0: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.create([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
"""
_ROUND = """\
        i{k}: pl.Scalar[pl.INDEX] = n * {k}
        t{k}: pl.Tile[[16, 64], pl.BF16, pl.Mem.Vec] = pl.tile.load(x, [i{k}, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)
        c{k}: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.cast(t{k}, target_type=pl.FP32, mode="round")
        m{k}: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.muls(c{k}, 0.31830987334251404)
        f{k}: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.add(f{j}, m{k})
        r{k}: pl.Tile[[16, 1], pl.FP32, pl.Mem.Vec] = pl.tile.row_max(f{k}, s0)
"""  # noqa: E501
_PER_ROUND = 6


def kernel(statements: int) -> str:
    """Return the text of a kernel of about that many statements."""
    rounds = max(1, statements // _PER_ROUND)
    body = "".join(_ROUND.format(k=k, j=k - 1) for k in range(1, rounds + 1))
    return f"{_HEADER}{body}        return f{rounds}\n"


def best(action: Callable[[], object], repeat: int) -> float:
    """Return the least processor time of ``repeat`` runs, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def measure(statements: int, repeat: int) -> tuple[float, float]:
    """Return microseconds per statement for reading and for writing."""
    text = kernel(statements)
    program = parse(text)
    count = len(program.functions[0].body.statements)
    reading = best(lambda: parse(text), repeat)
    writing = best(lambda: print_program(program), repeat)
    return reading / count * 1e6, writing / count * 1e6


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    options.add_argument("--repeat", type=int, default=5)
    args = options.parse_args()
    print(f"{'statements':>10}  {'read us/stmt':>12}  {'write us/stmt':>13}")
    for size in args.sizes:
        reading, writing = measure(size, args.repeat)
        print(f"{size:>10}  {reading:>12.1f}  {writing:>13.1f}")


if __name__ == "__main__":
    main()
