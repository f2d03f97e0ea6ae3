"""The signal check: time against the number of events, and the labelled suite with all its numbers of ranks.

    python benchmarks/bench_signals.py [--chunks 1 2 4 8 16] [--no-suite]

First a ring allreduce on 8 ranks, lowered, with more and more chunks per segment: processor time of one check and the
exponent of its growth, ``log(t2 / t1) / log(e2 / e1)`` between neighbouring rows, and the slope of the line through
all of them. Then a barrier called ever more often on 2 to 8 ranks. Last the suite of the tests: recall, false alarms,
class and line, and witnesses that replay. Fails when a check of 16 chunks in each segment takes longer than a second,
when time grows faster than events ** 1.5, or when the suite misses its marks.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from figures import figure
from tilegg.codegen.signals import SignalReport, check_signals, replay
from tilegg.ir.program import Program
from tilegg.ir.text import parse
from tilegg.rewrite.expand import expand

HEAD = """
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")

@pl.function(type=pl.FunctionType.InCore)
def kernel({params}):
{body}
"""
#: FP32 elements of one chunk: 16 KiB.
CHUNK = 4096
GROWTH, SECONDS, LEAST = 1.5, 1.0, 3000
#: Chunks per segment that are checked within ``SECONDS``.
CHUNKS = 16


def ring(chunks: int, ranks: int = 8) -> Program:
    """Return a lowered ring allreduce whose segments have ``chunks`` chunks."""
    size = CHUNK * ranks * chunks
    params = f"data: pld.DistributedTensor[[1, {size}], pl.FP32], "
    params += f"sig: pld.DistributedTensor[[{2 * (ranks - 1)}, {ranks}], pl.INT32]"
    body = '    d = pld.tensor.allreduce(data, sig, op=pld.ReduceOp.Sum, mode="ring")'
    return expand(parse(HEAD.format(params=params, body=body)))


def barriers(calls: int) -> Program:
    """Return a kernel that calls a barrier in a loop, lowered."""
    body = f"    for i in pl.range({calls}):\n        s = pld.tensor.barrier(sig)"
    return expand(parse(HEAD.format(params="sig: pld.DistributedTensor[[NR, 1], pl.INT32]", body=body)))


def timed(program: Program, ranks: tuple[int, ...]) -> tuple[float, SignalReport]:
    """Return the least processor time of three checks, in seconds, and the report."""
    times = []
    for _ in range(3):
        start = time.process_time()
        report = check_signals(program, ranks)
        times.append(time.process_time() - start)
    return min(times), report


def table(title: str, rows: Iterator[tuple[str, Program, tuple[int, ...]]]) -> list[tuple[int, float]]:
    """Print one row per program and return events and seconds."""
    print(f"{title}\n{'':>10} {'events':>8} {'seconds':>8} {'us/event':>9} {'growth':>7}")
    out: list[tuple[int, float]] = []
    for name, program, ranks in rows:
        seconds, report = timed(program, ranks)
        if not report.proved:
            raise SystemExit(f"{title} {name}: {report.findings[:1] or report.limits}")
        events = sum(c.events for c in report.checked)
        growth = ""
        if out:
            growth = f"{math.log(seconds / out[-1][1]) / math.log(events / out[-1][0]):.2f}"
        out.append((events, seconds))
        print(f"{name:>10} {events:>8} {seconds:>8.3f} {seconds / events * 1e6:>9.1f} {growth:>7}")
    return out


def fastest_growth(rows: list[tuple[int, float]]) -> float:
    """Return the largest exponent between neighbouring rows of enough events to be measured."""
    large = [r for r in rows if r[0] >= LEAST]
    found = [math.log(b[1] / a[1]) / math.log(b[0] / a[0]) for a, b in pairwise(large)]
    return max(found, default=0.0)


def slope(rows: list[tuple[int, float]]) -> float:
    """Return the exponent that fits all rows best: the slope of seconds over events, both as logarithms."""
    points = [(math.log(events), math.log(seconds)) for events, seconds in rows]
    x, y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    spread = sum((a - x) ** 2 for a, _ in points)
    return sum((a - x) * (b - y) for a, b in points) / spread if spread else 0.0


def suite() -> bool:
    """Print how the check does on the labelled suite with all its numbers of ranks; return whether that is enough."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "codegen"))
    from signal_cases import all_cases

    cases = all_cases()
    faulty = [c for c in cases if c.word is not None]
    found = located = alarms = witnesses = replayed = 0
    start = time.process_time()
    for c in cases:
        program = parse(c.text, "case.py")
        report = check_signals(program, c.ranks)
        witnesses += len(report.findings)
        replayed += sum(replay(program, f).shows for f in report.findings)
        if c.word is None:
            alarms += not report.ok
            continue
        first = report.findings[0] if report.findings else None
        found += first is not None
        places = first.places() if first is not None else ()
        located += first is not None and first.word == c.word and bool(places) and places[0].line in c.lines
    print(f"suite: {len(cases)} programs, {len(faulty)} with a fault, {time.process_time() - start:.1f} s")
    print(f"  found {found} of {len(faulty)} ({found / len(faulty):.1%}), false alarms {alarms}")
    print(f"  class and line of the first finding {located} of {len(faulty)} ({located / len(faulty):.1%})")
    print(f"  witnesses that replay {replayed} of {witnesses}")
    figure(f"signal check, {len(cases)} rank programs: faults found", f"{found} of {len(faulty)}", "98 %")
    figure("signal check: false alarms", f"{alarms} of {len(cases) - len(faulty)} correct programs", "0")
    figure("signal check: right class and line", f"{located} of {len(faulty)}", "95 %")
    figure("signal check: witnesses that replay in the simulator", f"{replayed} of {witnesses}", "all")
    return found >= 0.98 * len(faulty) and not alarms and located >= 0.95 * len(faulty) and replayed == witnesses


def main() -> int:
    """Print the tables; return 1 when a mark is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--no-suite", action="store_true")
    options = parser.parse_args()
    rings = table("ring allreduce, 8 ranks, chunks per segment", ((str(k), ring(k), (8,)) for k in options.chunks))
    counts = (2, 3, 4, 8)
    calls = table("barriers in a loop, 2, 3, 4 and 8 ranks", ((str(k), barriers(k), counts) for k in (10, 40, 160)))
    growth = max(fastest_growth(rings), fastest_growth(calls))
    fits = f"{slope(rings):.2f} and {slope(calls):.2f}"
    if 16 in options.chunks:
        what = "signal check of an 8-rank ring allreduce of 16 chunks a segment"
        figure(what, f"{rings[-1][1]:.2f} s", "at most 1 s")
    figure("signal check: seconds grow as events to the power of", fits, "at most 1.5")
    print(f"seconds grow as events ** {fits} over all rows; fastest between two of them: {growth:.2f}")
    seconds = dict(zip(options.chunks, (t for _, t in rings)))
    late = [k for k, t in seconds.items() if k <= CHUNKS and t > SECONDS]
    good = options.no_suite or suite()
    return 0 if good and not late and growth <= GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
