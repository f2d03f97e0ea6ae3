"""tilegg beside the field's own compiler (the public repository ``pypto``), on the same program texts.

    python benchmarks/bench_peer.py --peer-python PATH [--peer-version TEXT] [--kernel NAME] [--runs N]

PATH is a Python interpreter that can ``import pypto``. It runs ``peer_passes.py``: the compiler's own reader, its
composite and cast passes, and its whole pipeline to assembly. What the passes leave is read back and priced with
tilegg's cost model, operation by operation as written. Per kernel of ``corpus/`` and target: instructions, cycles and
vector cycles of both, whether the peer's result equals the source in tilegg's interpreter, and the time from text to
assembly, warm (best of N) and cold. A text that the peer's reader does not take is given again as tilegg's writer
prints the same program; what it does not take either is listed.

Times are processor time, which other work on the machine hardly changes, with wall time in brackets. Cold time of the
peer is its start, import and first run in a fresh process; of tilegg, the whole command; byte code of both is cached.
Exit status 1 if tilegg is slower than the peer warm, or takes more than 0.3 of its time cold, on some program.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from baselines import TRANSFERS, cost
from bench_gains import A5_ONLY, CORPUS, TARGETS
from tilegg import TileggError, emit, equivalent, lower, parse, print_program
from tilegg.extract.price import Price, Pricer, pricer_for
from tilegg.ir.program import Op, Program, walk
from tilegg.rules.target import load_target

HERE = Path(__file__).parent
COLD_GOAL = 0.3


@dataclass(frozen=True)
class Row:
    """One kernel on one target: cycles and processor time as shares of the peer's (0: no time)."""

    kernel: str
    arch: str
    vector: float
    contracted: float
    warm: float
    cold: float


def ask(python: str, arch: str, runs: int, programs: dict[str, list[str]]) -> dict[str, Any]:
    """Run the peer's passes on the texts; raises ``SystemExit`` with its words where it does not start."""
    asked = json.dumps({"arch": arch, "runs": runs, "programs": programs})
    command = [python, str(HERE / "peer_passes.py")]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, env=_environment())
    if done.returncode:
        raise SystemExit(f"the peer's interpreter failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@cache
def _environment() -> dict[str, str]:
    """Return the environment of fresh processes: byte code is kept, in a folder of this run."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": tempfile.mkdtemp(prefix="bench-peer-")}


def priced(program: Program, pricer: Pricer) -> tuple[int, float, float, list[str]]:
    """Return (instructions, cycles, vector cycles, what is not legal) of a program as it stands."""
    count, cycles, vector, refused = 0, 0.0, 0.0, []
    for f in program.functions:
        for s in walk(f.body):
            if not isinstance(s, Op):
                continue
            price = pricer.written(s)
            if not isinstance(price, Price):
                refused.append(f"{s.name}: {price.reason}")
                continue
            count, cycles = count + price.instructions, cycles + price.cycles
            vector += 0.0 if s.name in TRANSFERS else price.cycles
    return count, cycles, vector, refused


def best(work: Callable[[], object], runs: int, who: int) -> tuple[float, float]:
    """Return the least processor and wall milliseconds of some runs."""
    times = []
    for _ in range(runs):
        used, start = _used(who), time.perf_counter()
        work()
        times.append(((_used(who) - used) * 1e3, (time.perf_counter() - start) * 1e3))
    processor, wall = zip(*times)
    return min(processor), min(wall)


def _used(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def own_warm(text: str, arch: str, runs: int) -> tuple[float, float]:
    """Return the time from text to assembly with the memo off."""
    work = partial(_to_assembly, text, arch)
    return best(work, runs, resource.RUSAGE_SELF)


def _to_assembly(text: str, arch: str) -> None:
    emit(lower(parse(text), arch, contract="exact", memo=None))


def own_cold(path: Path, arch: str) -> tuple[float, float]:
    """Return the time of the whole command in a fresh process."""
    command = [sys.executable, "-m", "tilegg", "lower", str(path), "--arch", arch, "--contract", "exact", "-q"]
    work = partial(subprocess.run, command, capture_output=True, check=True, env=_environment())
    return best(work, 1, resource.RUSAGE_CHILDREN)


def same(a: Program, b: Program) -> str:
    """Say whether two programs agree in the interpreter."""
    try:
        report = equivalent(a, b, samples=16)
    except TileggError as problem:
        return f"not compared ({problem.diagnostics[0].message:.60})"
    return "same" if report.equal else "differs"


def compare(path: Path, text: str, arch: str, peer: dict[str, Any], start: list[float], runs: int) -> Row | None:
    """Print one kernel's lines and return its row; ``None`` where the peer did not take it."""
    name, source = path.stem, parse(text)
    if "cast_text" not in peer:
        print(f"{name} {arch}: not taken: {peer['error']}")
        return None
    pricer = pricer_for(load_target(arch), True)
    try:
        theirs = parse(peer["cast_text"], f"{name} by the peer")
    except TileggError as problem:
        print(f"{name} {arch}: its text is not read: {problem.diagnostics[0].message}")
        return None
    count, cycles, vector, refused = priced(theirs, pricer)
    ours = cost(lower(source, arch, contract="exact", memo=None))
    loose = cost(lower(source, arch, contract="contracted", memo=None))
    note = same(source, theirs) + (", as our writer prints it" if peer["used"] else "")
    print(f"{name} {arch}")
    print(f"  peer        {count:4d} instr {cycles:8.0f} cyc {vector:8.0f} vec  {note}")
    print(f"  exact       {ours.instructions:4d} instr {ours.cycles:8.0f} cyc {ours.vector:8.0f} vec  "
          f"{ours.vector / vector:.3f}")  # fmt: skip
    print(f"  contracted  {loose.instructions:4d} instr {loose.cycles:8.0f} cyc {loose.vector:8.0f} vec  "
          f"{loose.vector / vector:.3f}")  # fmt: skip
    for line in dict.fromkeys(refused):
        print(f"  not legal here: {line}")
    if "warm" not in peer:
        print(f"  no assembly: {peer['error']}")
        return Row(name, arch, ours.vector / vector, loose.vector / vector, 0.0, 0.0)
    warm, cold = own_warm(text, arch, runs), own_cold(path, arch)
    their_cold = [a + b for a, b in zip(start, peer["first"])]
    shares = warm[0] / peer["warm"][0], cold[0] / their_cold[0]
    print(f"  text to assembly: warm {_ms(warm)}, peer {_ms(peer['warm'])}: {shares[0]:.2f}; "
          f"cold {_ms(cold)}, peer {_ms(their_cold)}: {shares[1]:.2f}")  # fmt: skip
    return Row(name, arch, ours.vector / vector, loose.vector / vector, *shares)


def _ms(times: Sequence[float]) -> str:
    return f"{times[0]:.0f} ({times[1]:.0f}) ms" if times[1] >= 100 else f"{times[0]:.1f} ({times[1]:.1f}) ms"


def summary(rows: list[Row], asked: int) -> bool:
    """Print the means and what missed its goal; return whether nothing did."""
    print(f"\n{len(rows)} of {asked} kernels and targets were compared")
    for arch in (*TARGETS, "both"):
        some = [r for r in rows if arch in (r.arch, "both")]
        if not some:
            continue
        exact = statistics.geometric_mean([r.vector for r in some])
        loose = statistics.geometric_mean([r.contracted for r in some])
        worse = sum(r.vector > 1 + 1e-6 for r in some)
        print(f"{arch:5s} vector cycles to the peer's: exact {exact:.3f} ({worse} worse), contracted {loose:.3f}")
    timed = [r for r in rows if r.warm]
    if not timed:
        return True
    warm, cold = [r.warm for r in timed], [r.cold for r in timed]
    print(f"time to the peer's: warm {statistics.geometric_mean(warm):.2f}, largest {max(warm):.2f} (goal 1.0); "
          f"cold {statistics.geometric_mean(cold):.2f}, largest {max(cold):.2f} (goal {COLD_GOAL})")  # fmt: skip
    slow = _over([(r.warm, r) for r in timed if r.warm > 1])
    late = _over([(r.cold, r) for r in timed if r.cold > COLD_GOAL])
    print(f"slower warm: {slow}\nover the goal cold: {late}")
    return slow == late == "none"


def _over(rows: list[tuple[float, Row]]) -> str:
    """Return how many kernels are over a goal, and the worst of them."""
    worst = sorted(rows, key=lambda pair: -pair[0])[:6]
    named = ", ".join(f"{r.kernel} {r.arch} ({share:.2f})" for share, r in worst)
    return f"{len(rows)}, worst {named}" if rows else "none"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", metavar="PATH", required=True, help="an interpreter that can import pypto")
    parser.add_argument("--peer-version", default="", help="what to call the peer's version beside its own word")
    parser.add_argument("--kernel", default="", help="only kernels whose name contains this")
    parser.add_argument("--runs", type=int, default=5, help="warm runs, of which the best counts")
    args = parser.parse_args()
    paths = [p for p in sorted(CORPUS.glob("*.py")) if args.kernel in p.stem]
    rows: list[Row] = []
    asked = 0
    # First runs fill the caches of byte code.
    ask(args.peer_python, TARGETS[0], 0, {})
    own_cold(paths[0], TARGETS[-1])
    for arch in TARGETS:
        chosen = [p for p in paths if arch == "a5" or not p.stem.startswith(A5_ONLY)]
        texts = {p.stem: [t := p.read_text(), print_program(parse(t))] for p in chosen}
        peer = ask(args.peer_python, arch, args.runs, texts)
        label = f"{peer['version']} {args.peer_version}".strip()
        print(f"# the field's own compiler, pypto {label}, on {arch}: start and import {_ms(peer['import'])}")
        for p in chosen:
            asked += 1
            row = compare(p, texts[p.stem][0], arch, peer["programs"][p.stem], peer["import"], args.runs)
            rows += [row] if row is not None else []
    return 0 if summary(rows, asked) else 1


if __name__ == "__main__":
    sys.exit(main())
