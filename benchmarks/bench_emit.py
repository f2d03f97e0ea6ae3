"""Speed of writing assembly: milliseconds per instruction, and whether they stay the same for long kernels.

    python benchmarks/bench_emit.py [--instructions 100 1000 10000] [--target a5]

Prints one row per size: building, verifying and printing apart, then the whole and what it is per tile
instruction. Times are processor time, the least of three runs in one warm process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from tilegg.codegen.emit import build_module, emit
from tilegg.codegen.pto import api as pto
from tilegg.ir.dtypes import BF16, FP16, FP32, INT32, DType
from tilegg.ir.program import Block, Function, Op, Param, Program, Return, Value, index
from tilegg.ir.types import tensor, tile

#: A round of conversions that every target has.
ROUND: tuple[DType, ...] = (FP32, BF16, FP32, FP16, FP32, INT32)
SHAPE = (16, 64)


def cast_chain(count: int) -> Program:
    """Return a kernel of a load, ``count`` native casts and a store."""
    source = Value("x", tensor(SHAPE, ROUND[0]))
    zeros, sizes = (index(0), index(0)), tuple(map(index, SHAPE))
    value = Value("t0", tile(SHAPE, ROUND[0]))
    statements: list[Op | Return] = [Op("tile.load", (source, zeros, sizes, None), {}, (value,))]
    for i in range(1, count + 1):
        dtype = ROUND[i % len(ROUND)]
        result = Value(f"t{i}", tile(SHAPE, dtype))
        attrs = {"target_type": dtype, "mode": "rint"}
        statements.append(Op("tile.cast", (value, None), attrs, (result,)))
        value = result
    out = Value("out", tensor(SHAPE, value.type.dtype))
    stored = Value("r", out.type)
    statements += [Op("tile.store", (value, zeros, out, None), {}, (stored,)), Return((stored,))]
    kernel = Function("kernel", (Param(source), Param(out, "Out")), (out.type,), Block(tuple(statements)))
    return Program("P", (kernel,))


def least(work: Callable[[], object], runs: int = 3) -> float:
    """Return the shortest time of a few runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instructions", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--target", default="a5")
    options = parser.parse_args()
    pto.print_pto(build_module(cast_chain(2), options.target))
    print(f"{'instructions':>12} {'build ms':>9} {'verify ms':>9} {'print ms':>9} {'emit ms':>9} {'ms each':>8}")
    for count in options.instructions:
        program = cast_chain(count)
        module = build_module(program, options.target)
        build = least(lambda p=program: build_module(p, options.target))
        verify = least(lambda m=module: pto.verify_pto(m))
        show = least(lambda m=module: pto.print_pto(m))
        whole = 1e3 * least(lambda p=program: emit(p, options.target))
        parts = "".join(f" {1e3 * seconds:>9.1f}" for seconds in (build, verify, show))
        print(f"{count:>12}{parts} {whole:>9.1f} {whole / (count + 2):>8.3f}")


if __name__ == "__main__":
    main()
