"""Check conversion against gfloat, en_dtypes and Python integers at length, and measure its speed.

    python benchmarks/bench_convert.py --samples 1000000     # per pair of dtypes, round mode and saturation
    python benchmarks/bench_convert.py --total 100000000     # all together
    python benchmarks/bench_convert.py --src FP32 --dst BF16,FP16 --samples 10000000
    python benchmarks/bench_convert.py --speed               # throughput and small-array latency only

Sources of at most 16 bits are taken exhaustively; wider ones by hostile samples (ties, grid boundaries and
their neighbours, specials, random bits) and every special value.  Exit status 1 on any disagreement.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from figures import figure
from tilegg.ir.convert import all_values, convert, decode
from tilegg.ir.dtypes import BF16, DTYPES, FP4, FP8E4M3FN, FP16, FP32, INT8, INT32, INT64, DType, parse_dtype
from tilegg.ir.samples import hostile, special_values

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "ir"))
from convert_oracle import MODES, disagreements, expected

CHUNK = 1 << 17
SPEED_PAIRS = (
    (FP32, BF16), (FP32, FP16), (FP32, INT8), (FP32, INT32), (FP32, FP8E4M3FN), (FP32, FP4), (FP16, INT8),
    (BF16, FP32), (INT32, FP32), (INT32, BF16), (INT64, FP32), (INT32, INT8), (INT8, FP16), (FP8E4M3FN, FP32),
)  # fmt: skip


def inputs(src: DType, dst: DType, samples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield arrays of ``src``: every value once, or the specials and then samples up to the wanted number."""
    if src.bits <= 16:
        yield all_values(src)
        return
    specials = special_values(src)
    yield specials
    left = samples - specials.size
    while left > 0:
        yield hostile(src, dst, rng, min(left, CHUNK))
        left -= CHUNK


def check_pair(src: DType, dst: DType, samples: int, seed: int) -> tuple[int, list[str]]:
    """Return how many conversions of a pair were compared, and the disagreements as text."""
    rng = np.random.default_rng([seed, *map(ord, src.name + dst.name)])
    count, found = 0, []
    for array in inputs(src, dst, samples, rng):
        for mode in MODES:
            for saturate in (False, True):
                result = convert(array, src, dst, mode, saturate)
                wanted = expected(array, src, dst, mode, saturate)
                bad = disagreements(result, wanted, dst, decode)
                count += array.size
                if bad.size:
                    value, got = decode(array[bad[:1]], src)[0], decode(result[bad[:1]], dst)[0]
                    what = f"{src}->{dst} {mode} {'saturating' if saturate else 'wrapping'}"
                    first = f"{value!r} gave {got!r}, not {wanted[bad[0]]!r}"
                    found.append(f"{what}: {bad.size} differ, the first {first}")
    return count, found


def check(sources: list[DType], destinations: list[DType], samples: int, seed: int) -> int:
    print(f"{'source':10} {'pairs':>5} {'each':>9} {'compared':>13} {'differ':>6} {'seconds':>8}")
    total, all_found = 0, []
    for src in sources:
        start, compared, found = time.perf_counter(), 0, []
        for dst in destinations:
            count, bad = check_pair(src, dst, samples, seed)
            compared += count
            found += bad
        each = 1 << src.bits if src.bits <= 16 else samples
        seconds = time.perf_counter() - start
        row = f"{src.name:10} {len(destinations):5} {each:9} {compared:13} {len(found):6} {seconds:8.1f}"
        print(row, flush=True)
        total += compared
        all_found += found
    for line in all_found:
        print(line)
    what = "conversions compared with independent libraries: combinations that disagree"
    figure(what, f"{len(all_found)}, of {total:,} values", "0")
    print(f"{total} conversions compared, {len(all_found)} combinations disagree, seed {seed}")
    return 1 if all_found else 0


def measure(size: int = 1 << 20) -> None:
    print(f"{'source':10} {'dest':10} {'mode':6} {'M el/s':>8} {'16 el, us':>9}")
    rng = np.random.default_rng(0)
    for src, dst in SPEED_PAIRS:
        array = hostile(src, dst, rng, size)
        for mode in ("rint", "round", "odd"):
            convert(array, src, dst, mode)
            best = min(_seconds(array, src, dst, mode) for _ in range(5))
            few = array[:16].copy()
            start = time.perf_counter()
            for _ in range(1000):
                convert(few, src, dst, mode)
            small = (time.perf_counter() - start) * 1e3
            print(f"{src.name:10} {dst.name:10} {mode:6} {size / best / 1e6:8.0f} {small:9.1f}")


def _seconds(array: np.ndarray, src: DType, dst: DType, mode: str) -> float:
    start = time.perf_counter()
    convert(array, src, dst, mode)
    return time.perf_counter() - start


def main() -> int:
    numeric = [d for d in DTYPES.values() if d.is_numeric]
    parser = argparse.ArgumentParser(description="check and time conversions")
    parser.add_argument("--samples", type=int, default=100_000, help="per pair, mode and saturation")
    parser.add_argument("--total", type=int, help="conversions of wide sources altogether (not --samples)")
    parser.add_argument("--src", help="comma-separated source dtypes (default: all)")
    parser.add_argument("--dst", help="comma-separated destination dtypes (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--speed", action="store_true", help="only measure speed")
    options = parser.parse_args()
    if options.speed:
        measure()
        return 0
    sources = [parse_dtype(t) for t in options.src.split(",")] if options.src else numeric
    destinations = [parse_dtype(t) for t in options.dst.split(",")] if options.dst else numeric
    wide = sum(d.bits > 16 for d in sources) * len(destinations) * len(MODES) * 2
    samples = -(-options.total // wide) if options.total and wide else options.samples
    return check(sources, destinations, samples, options.seed)


if __name__ == "__main__":
    sys.exit(main())
