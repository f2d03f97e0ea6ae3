"""Lowered collectives against their definitions: the full product of forms, dtypes, reductions, ranks and sizes.

    python benchmarks/bench_collectives.py [--schedules 20] [--ranks 2 3] [--what mesh ring] [--json FILE]

Every case runs under that many schedules: the fair one, adversarial ones, then random ones. Prints one row per
collective: cases, runs, processor time, bytes moved against theory, and stops with status 1 at the first difference.
Movement does not depend on the reduction, so those collectives run once per dtype. Then the cost model's choice
between mesh and ring, by size and ranks.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from figures import figure
from tilegg.ir.dtypes import FP32
from tilegg.rules.collectives.choose import choose, link_model
from tilegg.rules.target import load_target

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rewrite"))
from collective_cases import COLLECTIVES, DTYPES, OPS, RANKS, SIZES, Case, check

REDUCING = ("mesh", "ring", "reduce_scatter")


def cases(what: str, ranks: list[int]) -> Iterator[Case]:
    """Yield the full product of a collective, without cases whose sizes are the same number."""
    for dtype in DTYPES:
        for op in OPS if what in REDUCING else OPS[:1]:
            for n in ranks:
                seen = set()
                for size in SIZES:
                    case = Case(what, dtype, op, n, size)
                    if case.elements not in seen:
                        seen.add(case.elements)
                        yield case


def theory(case: Case) -> int | None:
    """Return the bytes that all ranks together move, ``None`` where they depend on the data."""
    n, row = case.ranks, case.elements * DTYPES[case.dtype]().itemsize
    return {
        "mesh": n * (n - 1) * row, "ring": 2 * (n - 1) * row, "reduce_scatter": n * (n - 1) * row,
        "allgather": n * (n - 1) * row, "all_to_all": n * (n - 1) * row, "broadcast": 2 * (n - 1) * row, "barrier": 0,
    }.get(case.what)  # fmt: skip


def measure(what: str, ranks: list[int], count: int) -> dict[str, Any]:
    """Run all cases of a collective and return the row of the table; raises ``AssertionError`` at a difference."""
    start, total, moved = time.process_time(), 0, 0
    for case in cases(what, ranks):
        result = check(case, range(count))
        got, want = sum(result.moved.values()), theory(case)
        assert want is None or got == want, f"{case} moves {got} bytes, theory says {want}"
        total, moved = total + 1, moved + got
    seconds = time.process_time() - start
    return {"what": what, "cases": total, "runs": total * count, "seconds": round(seconds, 1), "moved": moved}


def choices(arch: str) -> Iterator[dict[str, Any]]:
    """Yield the cost model's choice by size and ranks."""
    model = link_model(load_target(arch))
    for nbytes in (256, 4096, 65536, 2**20, 2**24):
        row: dict[str, Any] = {"arch": arch, "bytes": nbytes}
        for n in (2, 4, 8):
            found = choose(model, nbytes // 4, FP32, n)
            row[f"{n} ranks"] = f"{found.mode} {min(found.mesh, found.ring) / 1000:.1f} us"
        yield row


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--ranks", type=int, nargs="+", default=list(RANKS))
    parser.add_argument("--what", nargs="+", default=["mesh", "ring", *COLLECTIVES])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for what in options.what:
        try:
            rows.append(measure(what, options.ranks, options.schedules))
        except AssertionError as problem:
            print(problem)
            return 1
        r = rows[-1]
        print(f"{r['what']:<15}{r['cases']:>6} cases{r['runs']:>8} runs{r['seconds']:>9} s{r['moved']:>14} bytes",
              flush=True)  # fmt: skip
    total = sum(r["runs"] for r in rows)
    figure("collectives equal to their definitions under many schedules", f"{total:,} of {total:,} runs", "all")
    picked = [row for arch in ("a2a3", "a5") for row in choices(arch)]
    for row in picked:
        print("  ".join(f"{k} {v}" for k, v in row.items()))
    if options.json:
        options.json.write_text(json.dumps({"equal": rows, "choices": picked}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
