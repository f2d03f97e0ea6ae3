"""Check every claim about cast roads at length, and measure how long finding them takes.

    python benchmarks/bench_casts.py                      # both targets, 200,000 values per wide source
    python benchmarks/bench_casts.py --samples 1000000
    python benchmarks/bench_casts.py --arch a5 --src FP32
    python benchmarks/bench_casts.py --speed              # search times only

Every pair of dtypes that a target's casts mention, in every round mode and saturation: each road is run hop
by hop and compared with one direct conversion. Sources of at most 16 bits are run whole. Exit status 1 when a
road that is claimed exact differs anywhere, or a stated counterexample is none.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from tilegg.ir.dtypes import BF16, FP4, FP16, FP32, INT8, INT16, INT32, INT64, parse_dtype
from tilegg.rules import paths, paths_proof, paths_values
from tilegg.rules.paths_audit import Audit, audit, requests
from tilegg.rules.target import load_target, target_names

SPEED_PAIRS = (
    (INT32, BF16),
    (FP32, INT8),
    (INT32, FP16),
    (FP32, FP4),
    (FP32, INT16),
    (INT64, FP16),
    (INT8, FP32),
)


def check(names: list[str], samples: int, src: str, dst: str) -> bool:
    """Audit the targets; print a summary each; tell whether all claims hold."""
    good = True
    for name in names:
        target = load_target(name)
        wanted = [
            r
            for r in requests(target)
            if (not src or r[0] is parse_dtype(src)) and (not dst or r[1] is parse_dtype(dst))
        ]
        start = time.perf_counter()
        found = audit(target, wanted, samples)
        report(name, found, time.perf_counter() - start)
        good = good and not found.disagreements
    return good


def report(name: str, found: Audit, seconds: float) -> None:
    """Print what an audit did."""
    print(f"{name}: {found.requests:,} requests (pair, mode, saturation), {found.legal:,} legal")
    print(f"  roads: {found.exact:,} exact, {found.inexact:,} inexact")
    print(f"  inexact for want of a proof, no difference found: {found.not_proved:,}")
    print(f"  {found.comparisons:,} conversions compared in {seconds:.0f} s")
    print(f"  disagreements: {len(found.disagreements)}")
    for line in found.disagreements[:20]:
        print(f"  {line}", file=sys.stderr)


def clear() -> None:
    """Forget every road and proof."""
    proof = (paths_proof.prepare, paths_proof._compared, paths_proof._direct_on_listing)
    for cached in (paths._roads, *proof, paths_values.listing):
        cached.cache_clear()


def speed() -> None:
    """Print the median time of a first and of a repeated search on a5."""
    target = load_target("a5")
    print("search on a5, median of 9 first calls (repeated: from the memo)")
    for src, dst in SPEED_PAIRS:
        for mode in ("rint", "round"):
            first, again = [], []
            for _ in range(9):
                clear()
                for times in (first, again):
                    start = time.perf_counter()
                    paths.roads(target, src, dst, mode)
                    times.append(time.perf_counter() - start)
            one, two = statistics.median(first) * 1e3, statistics.median(again) * 1e6
            print(f"  {src.name:>5} to {dst.name:<5} {mode:<5}  {one:6.2f} ms  repeated {two:5.1f} us")


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", choices=target_names(), help="one target only")
    parser.add_argument("--samples", type=int, default=200_000, help="values per source wider than 16 bits")
    parser.add_argument("--src", default="", help="one source dtype only")
    parser.add_argument("--dst", default="", help="one destination dtype only")
    parser.add_argument("--speed", action="store_true", help="measure search times only")
    arguments = parser.parse_args()
    good = True
    if not arguments.speed:
        names = [arguments.arch] if arguments.arch else list(target_names())
        good = check(names, arguments.samples, arguments.src, arguments.dst)
    speed()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
