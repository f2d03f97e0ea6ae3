"""Audit random programs at length, and every injected mistake.

    python benchmarks/bench_audit.py                          # 10,000 programs, every mutant
    python benchmarks/bench_audit.py --programs 500 --no-mutants
    python benchmarks/bench_audit.py --programs 0             # the mutants only
    python benchmarks/bench_audit.py --out benchmarks/results/audit.txt

Programs are split over both targets and both contracts. Each one's e-graphs are evaluated node by node on
hostile inputs; every fourth one is also lowered and run beside its source, with casts as the hardware does
them. Exit status 1 on any disagreement, or when fewer than 95 % of the mutants are noticed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from pathlib import Path

from tilegg.extract.audit import LoweringAudit, audit_lowering
from tilegg.rewrite.audit import AuditReport, audit
from tilegg.rewrite.mutate import Catch, Mutant, catch, mutants, survivors
from tilegg.rewrite.random_programs import Kind, random_program
from tilegg.rules.target import load_target

COMBINATIONS = [(arch, contract) for arch in ("a5", "a2a3") for contract in ("exact", "faithful")]
SHAPES = ((2, 8), (2, 8), (1, 16), (3, 5), (4, 32))
ENOUGH = 0.95
CHUNK = 100


def one(seed: int, arch: str, contract: str, total: AuditReport, lowered: LoweringAudit) -> None:
    """Audit the program of a seed; a third of the programs use every dtype, not only the target's."""
    target = load_target(arch)
    turn = seed // len(COMBINATIONS)
    restricted = target if turn % 3 else None
    shape = SHAPES[turn % len(SHAPES)]
    kind = Kind(target=restricted, size=4 + turn % 13, shape=shape, composites=turn % 4 == 1)
    program = random_program(seed, kind)
    total.add(audit(program, target, seed, contract, runs=2))
    if turn % 4 == 0:
        lowered.add(audit_lowering(program, arch, seed, contract, runs=2))


Part = tuple[AuditReport, LoweringAudit]


def part(arch: str, contract: str, seeds: range) -> Part:
    """Audit the programs of some seeds."""
    total, lowered = AuditReport(), LoweringAudit()
    for seed in seeds:
        one(seed, arch, contract, total, lowered)
    return total, lowered


def programs(count: int, first: int, jobs: int, minutes: float, lines: list[str]) -> bool:
    """Audit up to ``count`` programs in ``jobs`` processes; returns whether nothing disagreed."""
    step = len(COMBINATIONS)
    tasks = []
    for i, (arch, contract) in enumerate(COMBINATIONS):
        seeds = range(first + i, first + count, step)
        tasks += [(arch, contract, seeds[k : k + CHUNK]) for k in range(0, len(seeds), CHUNK)]
    tasks.sort(key=lambda t: t[2].start)
    totals = {c: (AuditReport(), LoweringAudit()) for c in COMBINATIONS}
    numbers = dict.fromkeys(COMBINATIONS, 0)
    start, done, good = time.perf_counter(), 0, True
    with ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(part, *task): task for task in tasks}
        for future in as_completed(running):
            arch, contract, seeds = running[future]
            for total, found in zip(totals[arch, contract], future.result()):
                total.add(found)
            done += len(seeds)
            numbers[arch, contract] += len(seeds)
            problems = sum(len(t.problems) + len(p.problems) for t, p in totals.values())
            note(f"{done} of {count} programs, {problems} disagreements, {time.perf_counter() - start:.0f} s")
            if time.perf_counter() - start > 60 * minutes:
                pool.shutdown(cancel_futures=True)
                break
    for (arch, contract), (total, lowered) in totals.items():
        lines += describe(arch, contract, numbers[arch, contract], total, lowered)
        good &= total.ok and lowered.ok
    lines.append(f"{done} programs in {time.perf_counter() - start:.0f} s, {jobs} processes")
    return good


def describe(arch: str, contract: str, count: int, total: AuditReport, lowered: LoweringAudit) -> list[str]:
    """Return the summary lines of one target and contract."""
    lines = [
        f"{arch} {contract}: {count} programs, {total.regions} regions, {total.classes} classes, {total.nodes} e-nodes"
        f" ({total.approx} inexact), {total.facts} facts and {total.sets} value sets on {total.runs} runs"
        f" ({total.skipped} skipped); {len(total.problems)} disagreements",
        f"  lowered: {lowered.programs} programs ({lowered.refused} without legal form, {lowered.inexact} with inexact"
        f" roads), {lowered.outputs} outputs compared; {len(lowered.problems)} disagreements",
    ]
    lines += [f"  rule {name}: {n} e-nodes" for name, n in sorted(total.rules.items())]
    lines += [f"  DISAGREEMENT {p}" for p in total.problems[:20]]
    lines += [f"  DISAGREEMENT {p}" for p in lowered.problems[:20]]
    return lines


def noticed(names: list[str]) -> list[Catch | None]:
    """Return what notices the named mutants."""
    by_name = {m.name: m for m in mutants()}
    return [catch(by_name[name]) for name in names]


def mutation(jobs: int, lines: list[str]) -> bool:
    """Inject every mutant, in ``jobs`` processes; returns whether enough were noticed."""
    start = time.perf_counter()
    every = mutants()
    caught: dict[str, Catch | None] = {}
    with ProcessPoolExecutor(jobs) as pool:
        chunks = [[m.name for m in every[k::32]] for k in range(32)]
        running = {pool.submit(noticed, names): names for names in chunks}
        for future in as_completed(running):
            caught.update(zip(running[future], future.result()))
            missed = [name for name, c in caught.items() if c is None]
            note(f"{len(caught)} of {len(every)} mutants, not noticed: {missed}")
    found: list[tuple[Mutant, Catch | None]] = [(m, caught[m.name]) for m in every]
    seconds = time.perf_counter() - start
    missed = survivors(found)
    rate = 1 - len(missed) / len(found)
    by = Counter(c.by for _, c in found if c is not None)
    shown = ", ".join(f"{n} by {word}" for word, n in sorted(by.items()))
    lines.append(f"mutants: {len(found)} injected, {rate:.1%} noticed ({shown}); {seconds:.0f} s, {jobs} processes")
    for kind, n in sorted(Counter(m.kind for m, _ in found).items()):
        lost = [m.name for m, c in found if m.kind == kind and c is None]
        lines.append(f"  {kind}: {n}, not noticed: {'; '.join(lost) if lost else 'none'}")
    return rate >= ENOUGH


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def machine() -> str:
    """Return what the figures depend on."""
    load = os.getloadavg()[0]
    return f"Python {platform.python_version()}, {os.cpu_count()} cores (load {load:.1f}), {platform.machine()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop auditing programs after that time")
    parser.add_argument("--no-mutants", action="store_true")
    parser.add_argument("--out", type=Path, help="also write the summary there, if everything agrees")
    options = parser.parse_args()
    lines = [f"audit of {date.today()}, {machine()}, first seed {options.seed}"]
    good = not options.programs or programs(options.programs, options.seed, options.jobs, options.minutes, lines)
    if not options.no_mutants:
        good &= mutation(options.jobs, lines)
    lines.append("everything agrees" if good else "DISAGREEMENTS")
    text = "\n".join(lines)
    print(text)
    if good and options.out:
        options.out.write_text(text + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
