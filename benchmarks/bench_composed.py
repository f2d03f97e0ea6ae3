"""Conversions made of several instructions against one conversion, on every value of their source.

    python benchmarks/bench_composed.py [--jobs 2] [--name NAME] [--share 1]

All codes of the source are taken, 2^32 of a source of 32 bits, in pieces; each operation of the pattern is what the
interpreter says it is. ``--share N`` takes every N-th piece only. Exit status 1 on any difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from figures import figure
from tilegg.ir.convert import convert, decode
from tilegg.ir.dtypes import DType
from tilegg.ir.types import tile
from tilegg.rules.check_eval import Valued, evaluate
from tilegg.rules.composed import COMPOSED, Composed
from tilegg.rules.recipes.terms import X

PIECE = 1 << 20


def codes(src: DType, number: int) -> np.ndarray:
    """Return one piece of a source's codes as a storage array."""
    count = min(PIECE, 1 << src.bits)
    first = number * count
    return np.arange(first, first + count, dtype=np.uint64).astype(f"u{src.storage.itemsize}").view(src.storage)


def differences(made: Composed, number: int) -> tuple[int, int, str]:
    """Return (values, differences, the first of them) of one piece."""
    array = codes(made.src, number)
    want = convert(array, made.src, made.dst, made.mode or "rint")
    value = Valued(array.reshape(1, -1), tile((1, array.size), made.src))
    got = evaluate(made.pattern, defaultdict(int), {X: value}).data.reshape(-1)
    unequal = (got != want) & ~(np.isnan(_number(got, made.dst)) & np.isnan(_number(want, made.dst)))
    unequal |= np.signbit(_number(got, made.dst)) != np.signbit(_number(want, made.dst))
    unequal &= ~np.isnan(_number(want, made.dst))
    at = np.flatnonzero(unequal)
    first = f"code {array[at[0]:at[0] + 1].tobytes().hex()}: {got[at[0]]} for {want[at[0]]}" if at.size else ""
    return array.size, int(at.size), first


def _number(array: np.ndarray, dtype: DType) -> np.ndarray:
    return np.asarray(decode(array, dtype), dtype=np.float64)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--name", default="", help="only conversions whose name contains this")
    parser.add_argument("--share", type=int, default=1, help="take every N-th piece")
    args = parser.parse_args()
    wrong = total = 0
    with ProcessPoolExecutor(args.jobs) as pool:
        for made in (m for m in COMPOSED if args.name in m.name):
            start = time.monotonic()
            pieces = range(0, max((1 << made.src.bits) // PIECE, 1), args.share)
            found = list(pool.map(partial(differences, made), pieces, chunksize=16))
            count, bad = sum(f[0] for f in found), sum(f[1] for f in found)
            first = next((f[2] for f in found if f[2]), "")
            print(f"{made.name:16s} {made.src.name} to {made.dst.name}: {count:,} values, {bad} differ "
                  f"({time.monotonic() - start:.0f} s) {first}", flush=True)  # fmt: skip
            wrong, total = wrong + bad, total + count
    figure("conversions composed of several instructions, on all inputs: differences", f"{wrong} of {total:,}", "0")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
