"""What lowering gains on real-shaped kernels, against the fixed lowering, greedy rewriting and random search.

    python benchmarks/bench_gains.py [--kernel NAME] [--quick]

Per kernel of ``corpus/`` and target: instructions, cycles (all, and those of the vector unit: transfers cannot
change), scratch and peak live bytes, compile time (processor time, warm, memo off), whether the optimum of the
rules is proved. Ratios are to the fixed lowering, in vector cycles. Then how much each rule file makes the e-graphs
grow. Where a kernel does not reach the goal of ``contracted``, what would have to exist stands below it. Exit status 1
if any kernel got worse, needs more than local memory or grows more than threefold by a file.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from baselines import cost, fixed, searched
from figures import figure
from growth import growth, rule_files
from missing import counted, missing
from tilegg import lower, parse
from tilegg.extract.footprint import live_bytes, scratch_bytes
from tilegg.extract.lower import lower_for
from tilegg.extract.price import pricer_for
from tilegg.ir.op import OPS
from tilegg.ir.program import Program
from tilegg.rules.facts import SELDOM
from tilegg.rules.target import load_target

TARGETS = ("a2a3", "a5")
CORPUS = Path(__file__).parent / "corpus"
#: FP8 exists on the A5 only.
A5_ONLY = "fp8"
#: Instructions of the hardware that the assembler lacks: what they would bring stands beside the rest as ``wished``.
WISHED = tuple(OPS[name].pto or "" for name in SELDOM)
GOALS = {"exact": 0.85, "contracted": 0.75}
#: How many times larger the rules of one file may make the e-graph of a kernel.
GROWTH = 3.0


@dataclass(frozen=True)
class Row:
    """One kernel on one target."""

    kernel: str
    arch: str
    ratios: dict[str, float]
    whole: dict[str, float]
    worse: bool
    proved: int = 0
    crowded: bool = False
    pairs: Counter[str] = field(default_factory=Counter)


def kernels(only: str = "") -> list[tuple[str, Program]]:
    """Return the corpus by name."""
    return [(p.stem, parse(p.read_text())) for p in sorted(CORPUS.glob("*.py")) if only in p.stem]


def measure(name: str, program: Program, arch: str, quick: bool) -> Row:
    """Lower one kernel in every way, print its lines and return its ratios."""
    target = load_target(arch)
    base = fixed(program, arch)
    live = live_bytes(base.program)
    print(f"{name} {arch}")
    _line("fixed", base.instructions, base.cycles, base.vector, scratch_bytes(base.program, target), live, "")
    ratios, whole, worse, proved, crowded = {}, {}, False, 0, False
    for contract in GOALS:
        found = lower(program, arch, contract=contract, memo=None)
        start = time.process_time()
        found = lower(program, arch, contract=contract, memo=None)
        ms = (time.process_time() - start) * 1e3
        made = cost(found)
        ratios[contract], whole[contract] = made.vector / base.vector, made.cycles / base.cycles
        worse |= made.vector > base.vector + 1e-3
        crowded |= live_bytes(found.program) > target.ub_usable_bytes >= live
        proved += found.optimum == "proved"
        optimum = found.optimum if isinstance(found.optimum, str) else f"gap {found.optimum:.1%}"
        scratch = scratch_bytes(found.program, target)
        note = f"{ratios[contract]:.3f}  {ms:6.1f} ms  {optimum}"
        _line(contract, made.instructions, made.cycles, made.vector, scratch, live_bytes(found.program), note)
        if contract == "exact" and not quick:
            greedy, drawn = searched(found, pricer_for(target, True))
            ratios["greedy"], ratios["random"] = greedy / base.vector, drawn / base.vector
            print(f"  {'greedy':11s} {'':24s} {greedy:8.0f} {'':16s} {ratios['greedy']:.3f}")
            print(f"  {'random':11s} {'':24s} {drawn:8.0f} {'':16s} {ratios['random']:.3f}")
    wished = cost(lower_for(program, target.with_assembler(WISHED), "contracted"))
    ratios["wished"] = wished.vector / base.vector
    _line("wished", wished.instructions, wished.cycles, wished.vector, 0, 0, f"{ratios['wished']:.3f}")
    lacks = missing(found, ratios["contracted"], GOALS["contracted"])
    for line in lacks.lines if ratios["contracted"] > GOALS["contracted"] else ():
        print(f"  {line}")
    return Row(name, arch, ratios, whole, worse, proved, crowded, lacks.pairs)


def _line(how: str, count: int, cycles: float, vector: float, scratch: int, live: int, note: str) -> None:
    print(f"  {how:11s} {count:4d} instr {cycles:8.0f} cyc {vector:8.0f} vec {scratch:6d} {live:8d} B  {note}")


def report(rows: list[Row]) -> bool:
    """Print geometric means by target and return whether no kernel got worse."""
    for arch in (*TARGETS, "both"):
        some = [r for r in rows if arch in (r.arch, "both")]
        if not some:
            continue
        for how in some[0].ratios:
            mean = statistics.geometric_mean([r.ratios[how] for r in some])
            goal = whole = ""
            if how in GOALS:
                goal = f" (goal {GOALS[how]})"
                whole = f", with transfers {statistics.geometric_mean([r.whole[how] for r in some]):.3f}"
            best = min(some, key=lambda r: r.ratios[how])
            others = statistics.geometric_mean([r.ratios[how] for r in some if r.kernel != best.kernel] or [1.0])
            text = f"geometric mean {mean:.3f}{goal}{whole}"
            print(f"{arch:5s} {how:11s} {text}; best {best.kernel} {best.ratios[how]:.3f}, {others:.3f} without it")
    _figures(rows)
    pairs = sum((r.pairs for r in rows), Counter[str]())
    print(f"one instruction for two would be needed for {GOALS['contracted']} on each kernel: {counted(pairs, 12)}")
    worse = [f"{r.kernel} on {r.arch}" for r in rows if r.worse]
    print(f"{len(rows)} kernels and targets, {len(worse)} worse: {', '.join(worse) or 'none'}")
    return not worse and not any(r.crowded for r in rows)


def grown(only: str) -> bool:
    """Print how much each rule file makes the e-graphs of the corpus grow; return whether none is above the bound."""
    found: list[tuple[float, str, str]] = []
    for arch in TARGETS:
        programs = {n: p for n, p in kernels(only) if arch == "a5" or not n.startswith(A5_ONLY)}
        whole: dict[str, int] = {}
        for file in rule_files():
            ratio, name = growth(programs, arch, file, whole)
            found.append((ratio, file, f"{name} on {arch}"))
            print(f"{arch:5s} {file:12s} makes no e-graph more than {ratio:.2f} times as large: {name}")
    ratio, file, where = max(found)
    figure("nodes of a kernel with the rules of a file to those without, at most", f"{ratio:.2f} ({file}, {where})",
           f"at most {GROWTH:g}")  # fmt: skip
    return ratio <= GROWTH


def _figures(rows: list[Row]) -> None:
    """Print the figures of the README."""
    names = len({r.kernel for r in rows})
    what = f"{names} kernels, {len(rows)} with their targets: costlier than the fixed lowering"
    figure(what, str(sum(r.worse for r in rows)), "0")
    crowded = sum(r.crowded for r in rows)
    figure("tiles that need more than local memory where the fixed lowering does not", str(crowded), "0")
    figure("optimum of the rules proved", f"{sum(r.proved for r in rows)} of {2 * len(rows)} lowerings")
    for how, goal in GOALS.items():
        each = {a: statistics.geometric_mean([r.ratios[how] for r in rows if r.arch == a]) for a in TARGETS}
        both = statistics.geometric_mean([r.ratios[how] for r in rows])
        shown = ", ".join(f"{arch} {mean:.3f}" for arch, mean in each.items())
        figure(f"vector cycles of the fixed lowering, contract {how}", f"{both:.3f} ({shown})", f"at most {goal}")
        whole = statistics.geometric_mean([r.whole[how] for r in rows])
        figure(f"the same with loads and stores, which no choice changes, contract {how}", f"{whole:.3f}")
    wished = statistics.geometric_mean([r.ratios["wished"] for r in rows])
    figure("the same, if the assembler took the fused instructions that only the hardware has", f"{wished:.3f}")
    if any("greedy" in r.ratios for r in rows):
        means = [statistics.geometric_mean([r.ratios[how] for r in rows]) for how in ("greedy", "random")]
        figure("greedy rewriting and random search with the same rules, exact", "{:.3f}, {:.3f}".format(*means))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="", help="only kernels whose name contains this")
    parser.add_argument("--quick", action="store_true", help="without the searches to compare with")
    args = parser.parse_args()
    rows = [
        measure(name, program, arch, args.quick)
        for name, program in kernels(args.kernel)
        for arch in TARGETS
        if arch == "a5" or not name.startswith(A5_ONLY)
    ]
    good = report(rows)
    return 0 if grown(args.kernel) and good else 1


if __name__ == "__main__":
    sys.exit(main())
