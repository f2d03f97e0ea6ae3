"""Audit random programs at length, and every injected mistake.

    python benchmarks/bench_audit.py                          # 10,000 programs, every mutant
    python benchmarks/bench_audit.py --programs 500 --no-mutants
    python benchmarks/bench_audit.py --programs 0             # the mutants only
    python benchmarks/bench_audit.py --programs 50000 --pieces audit.jsonl --out benchmarks/results/audit.txt

Programs go round the targets, the contracts and the rules: each contains the left side of its rule in a context of
idioms and of any declared operations. Its e-graphs are evaluated node by node on hostile inputs; every sixteenth one is
also lowered and run beside its source, with casts as the hardware does them. With ``--pieces``, what is done is kept
in that file, and another run goes on from there. Exit status 1 on any disagreement, or when fewer than 95 % of the
mutants are noticed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from tilegg.extract.audit import LoweringAudit, audit_lowering
from tilegg.ir.program import Op, Program, walk
from tilegg.rewrite.audit import audit
from tilegg.rewrite.audit_report import AuditReport, Disagreement
from tilegg.rewrite.mutate import Catch, Mutant, catch, mutants, survivors
from tilegg.rewrite.random_calls import calls, vocabulary
from tilegg.rewrite.random_programs import Kind, random_program
from tilegg.rules.rule import RULES
from tilegg.rules.target import load_target

ARCHES = ("a5", "a2a3")
CONTRACTS = ("exact", "contracted", "faithful")
COMBINATIONS = [(arch, contract) for contract in CONTRACTS for arch in ARCHES]
SHAPES = ((2, 8), (2, 8), (1, 16), (3, 5), (4, 32))
ENOUGH = 0.95
CHUNK = 100


@dataclass
class Tally:
    """What was done under one target and contract."""

    programs: int = 0
    audited: AuditReport = field(default_factory=AuditReport)
    lowered: LoweringAudit = field(default_factory=LoweringAudit)

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.audited.add(other.audited)
        self.lowered.add(other.lowered)

    @property
    def problems(self) -> list[Any]:
        return [*self.audited.problems, *self.lowered.problems]


@dataclass
class Piece:
    """What a range of seeds gave: a tally by combination; by rule, the programs written for it and those it fired in;
    by operation, the programs that contain it."""

    first: int
    count: int
    tallies: list[Tally] = field(default_factory=lambda: [Tally() for _ in COMBINATIONS])
    written: dict[str, int] = field(default_factory=dict)
    fired: dict[str, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, other: Piece) -> None:
        self.count += other.count
        self.seconds += other.seconds
        for mine, theirs in zip(self.tallies, other.tallies):
            mine.add(theirs)
        for name in ("written", "fired", "operations"):
            counts = Counter(getattr(self, name))
            counts.update(getattr(other, name))
            setattr(self, name, dict(counts))

    @property
    def problems(self) -> int:
        return sum(len(t.problems) for t in self.tallies)


def read_piece(text: str) -> Piece:
    """Return the piece that a line of a file of pieces holds."""
    found = json.loads(text)
    for t in found["tallies"]:
        t["audited"]["problems"] = [Disagreement(**d) for d in t["audited"]["problems"]]
        t["audited"], t["lowered"] = AuditReport(**t["audited"]), LoweringAudit(**t["lowered"])
    found["tallies"] = [Tally(**t) for t in found["tallies"]]
    return Piece(**found)


def one(seed: int, piece: Piece) -> None:
    """Audit the program of a seed; half of the programs use every dtype, not only the target's."""
    place = seed % len(COMBINATIONS)
    arch, contract = COMBINATIONS[place]
    tally = piece.tallies[place]
    names = list(RULES)
    turn = seed // len(COMBINATIONS)
    rule = RULES[names[turn % len(names)]]
    target = load_target(arch)
    composites = rule.contract == "bounded" or turn % 10 == 0
    kind = Kind(
        target=target if (turn + seed // len(names)) % 2 else None, size=1 + turn % 4, shape=SHAPES[turn % len(SHAPES)],
        composites=composites, rule=rule.name, calls=turn % 4 != 0,
    )  # fmt: skip
    try:
        program = random_program(seed, kind)
        found = audit(program, target, seed, contract, 1 + (turn % 4 == 1), rules=(rule.name,))
    except Exception as problem:  # what cannot be run is a disagreement too
        program, found = Program("", ()), AuditReport(problems=[Disagreement("run", rule.name, repr(problem))])
    tally.programs += 1
    tally.audited.add(found)
    tally.audited.problems = [_at(seed, p) for p in tally.audited.problems]
    piece.written[rule.name] = piece.written.get(rule.name, 0) + 1
    for name in found.rules:
        piece.fired[name] = piece.fired.get(name, 0) + 1
    operations = operations_of(program)
    for name in operations:
        piece.operations[name] = piece.operations.get(name, 0) + 1
    # A recipe's result is no bit for bit: the audit above holds it to its stated error.
    if turn % 16 == 0 and found.ok and not operations & {r.lhs.op for r in RULES.values() if r.bound is not None}:
        try:
            lowered = audit_lowering(program, arch, seed, contract, runs=2)
        except Exception as problem:
            lowered = LoweringAudit(problems=[repr(problem)])
        lowered.problems = [f"program {seed}: {p}" for p in lowered.problems]
        tally.lowered.add(lowered)


def _at(seed: int, p: Disagreement) -> Disagreement:
    return p if p.text.startswith("program ") else Disagreement(p.kind, p.rule, f"program {seed}: {p.text}")


def operations_of(program: Program) -> set[str]:
    """Return the names of the operations a program contains."""
    return {s.name for f in program.functions for s in walk(f.body) if isinstance(s, Op)}


def part(first: int, count: int) -> Piece:
    """Audit the programs of some seeds."""
    piece, start = Piece(first, count), time.perf_counter()
    for seed in range(first, first + count):
        one(seed, piece)
    piece.seconds = time.perf_counter() - start
    return piece


def programs(count: int, first: int, jobs: int, minutes: float, kept: Path | None) -> Piece:
    """Audit up to ``count`` programs in ``jobs`` processes, but those of seeds that ``kept`` has."""
    done = [read_piece(line) for line in kept.read_text().splitlines()] if kept and kept.exists() else []
    had = {p.first for p in done}
    total = Piece(first, 0)
    for piece in done:
        total.add(piece)
    wanted = [(at, min(CHUNK, first + count - at)) for at in range(first, first + count, CHUNK) if at not in had]
    for name in vocabulary():
        calls(name)  # once, before the processes start
    start = time.perf_counter()
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        running = [pool.submit(part, *task) for task in wanted]
        for future in as_completed(running):
            piece = future.result()
            total.add(piece)
            if kept:
                with kept.open("a") as out:
                    out.write(json.dumps(asdict(piece)) + "\n")
            spent = time.perf_counter() - start
            note(f"{total.count} of {count} programs, {total.problems} disagreements, {spent:.0f} s")
            if spent > 60 * minutes:
                pool.shutdown(cancel_futures=True)
                break
    return total


def describe(total: Piece) -> Iterator[str]:
    """Yield the summary: by target and contract, by rule, by operation."""
    for (arch, contract), tally in zip(COMBINATIONS, total.tallies):
        a, lowered = tally.audited, tally.lowered
        yield (
            f"{arch} {contract}: {tally.programs} programs, {a.regions} regions, {a.classes} classes, {a.nodes} e-nodes"
            f" ({a.approx} inexact), {a.facts} facts and {a.sets} value sets on {a.runs} runs ({a.skipped} skipped),"
            f" {a.contracted} values with fewer roundings; {len(a.problems)} disagreements"
        )
        yield (
            f"  lowered: {lowered.programs} programs ({lowered.refused} without legal form, {lowered.inexact} with"
            f" inexact roads), {lowered.outputs} outputs compared; {len(lowered.problems)} disagreements"
        )
        yield from (f"  DISAGREEMENT {p}" for p in tally.problems[:40])
    yield f"{total.count} programs, {total.problems} disagreements; {total.seconds:.0f} s of one process"
    yield f"= audited random programs: disagreements | {total.problems}, in {total.count:,} programs | 0"
    nodes: Counter[str] = Counter()
    for tally in total.tallies:
        nodes.update(tally.audited.rules)
    never = [name for name in RULES if not nodes[name]]
    yield f"{len(RULES) - len(never)} of {len(RULES)} rules fired; never: {', '.join(never) if never else 'none'}"
    for name in RULES:
        yield (
            f"  rule {name}: {nodes[name]} e-nodes in {total.fired.get(name, 0)} programs,"
            f" {total.written.get(name, 0)} programs written for it"
        )
    missing = [name for name in vocabulary() if name not in total.operations]
    known = len(vocabulary())
    yield f"{known - len(missing)} of {known} operations occur; never: {', '.join(missing) if missing else 'none'}"
    shown = [f"{name} {total.operations.get(name, 0)}" for name in vocabulary()]
    yield from ("  " + ", ".join(shown[i : i + 6]) for i in range(0, len(shown), 6))


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
    lines.append(f"= injected faults that are noticed | {len(found) - len(missed)} of {len(found)} | 95 %")
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
    parser.add_argument("--pieces", type=Path, help="keep what is done in this file, and go on from it")
    parser.add_argument("--no-mutants", action="store_true")
    parser.add_argument("--out", type=Path, help="also write the summary there, if everything agrees")
    options = parser.parse_args()
    lines = [f"audit of {date.today()}, {machine()}, first seed {options.seed}"]
    good = True
    if options.programs:
        total = programs(options.programs, options.seed, options.jobs, options.minutes, options.pieces)
        lines += describe(total)
        good = not total.problems
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
