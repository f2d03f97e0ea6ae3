"""Check every rule and transfer function at length, and how often extraction proves its optimum.

    python benchmarks/bench_rules.py --jobs 2           # 1,000 instances per rule, 2,500 per transfer function
    python benchmarks/bench_rules.py --extraction       # only: 200 random kernels of 40 operations, exact extraction
    python benchmarks/bench_rules.py --samples 200

Exit status 1 on any failure.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from bench_audit import machine
from figures import figure
from tilegg.extract.lower import lower
from tilegg.ir.diagnostics import TileggError
from tilegg.rewrite.random_programs import Kind, random_program
from tilegg.rules.check import RuleCheck, check_rule, summary
from tilegg.rules.check_values import check_values, operations
from tilegg.rules.rule import RULES
from tilegg.rules.target import load_target

KERNELS, SIZE, SHAPE, LIMIT = 200, 40, (16, 64), 1.0


def _check(name: str, samples: int) -> RuleCheck:
    return check_rule(RULES[name], samples, seed=7)


def rules(samples: int, jobs: int) -> bool:
    """Check the rules in ``jobs`` processes and print the table."""
    with ProcessPoolExecutor(jobs) as pool:
        checks = list(pool.map(partial(_check, samples=samples), RULES))
    print(summary(checks))
    good, total = sum(c.ok for c in checks), sum(c.values for c in checks)
    figure("rules that hold on every value tried", f"{good} of {len(checks)}, {total:,} values", "all")
    return all(c.ok for c in checks)


def transfers(samples: int) -> bool:
    """Check the transfer functions and print their counts."""
    good = True
    total = 0
    for decl in operations():
        found = check_values(decl, samples, seed=7)
        total += found.values
        good &= not found.failures
        for text in found.failures[:3]:
            print(f"  {text}")
    print(f"{len(operations())} transfer functions, {total} values: {'all inside' if good else 'FAILURES'}")
    return good


def extraction() -> None:
    """Print the share of random kernels whose optimum is proved, by the fast way and by the integer solver."""
    for arch in ("a5", "a2a3"):
        target = load_target(arch)
        for exact in (False, True):
            proved, gaps, times = 0, [], []
            for seed in range(KERNELS):
                program = random_program(seed, Kind(target=target, size=SIZE, shape=SHAPE, flow=False))
                start = time.perf_counter()
                try:
                    lowered = lower(program, arch, exact=exact, time_limit=LIMIT)
                except TileggError:
                    continue
                times.append(time.perf_counter() - start)
                proved += lowered.optimum == "proved"
                gaps.append(max(lowered.gap, 0.0))
            way = f"integer solver, {LIMIT:g} s a region" if exact else "greedy, local search, branch and bound"
            print(
                f"{arch}, {way}: {proved} of {len(times)} kernels of {SIZE} operations proved optimal, largest gap"
                f" {max(gaps):.2%}, whole lowering {1e3 * statistics.median(times):.1f} ms median,"
                f" {1e3 * max(times):.0f} ms at most"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--extraction", action="store_true", help="only the share of proved optima")
    options = parser.parse_args()
    print(machine())
    good = True
    if not options.extraction:
        good = rules(options.samples, options.jobs) and transfers(5 * options.samples // 2)
    extraction()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
