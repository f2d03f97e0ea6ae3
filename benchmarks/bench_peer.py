"""tilegg beside the field's own compiler (the public repository ``pypto``), on the same program texts.

    python benchmarks/bench_peer.py --peer-python PATH [--peer-version TEXT] [--kernel NAME] [--runs N]

PATH is a Python interpreter that can ``import pypto``. It runs ``peer_passes.py``: the compiler's own reader, its
composite and cast passes, and its whole pipeline to assembly. What the passes leave is read back and priced with
tilegg's cost model, operation by operation as written. Per kernel of ``corpus/`` and target: instructions, cycles and
vector cycles of both, whether the peer's result equals the source in tilegg's interpreter, and the time from text to
assembly, warm and cold. A text that the peer's reader does not take is given again as tilegg's writer prints the same
program; what it does not take either is listed.

Times are processor time, which other work on the machine hardly changes, with wall time in brackets. Both compilers
take turns on each kernel, the best of N turns counts. Warm, tilegg is shown twice: as it works by default, when it
has lowered the program before and remembers the regions (their choice, not their text: reading, rebuilding, checking
and writing are done anew), and with that memo off, so that it saturates and extracts anew. Cold is a fresh process
that takes one text to assembly, with byte code in the cache; tilegg runs as often as fills the peer's time. Exit
status 1 if tilegg is slower than the peer warm by default, or takes more than 0.3 of its time cold, on some program.
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
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from baselines import TRANSFERS, cost
from bench_gains import A5_ONLY, CORPUS, TARGETS
from figures import figure
from tilegg import TileggError, emit, equivalent, lower, parse, print_program
from tilegg.extract.memo import Memo
from tilegg.extract.price import Price, Pricer, pricer_for
from tilegg.ir.program import Op, Program, walk
from tilegg.rules.target import load_target

HERE = Path(__file__).parent
COLD_GOAL = 0.3
#: Turns of fresh processes, of which the best counts: the speed of a machine changes while they run. In each turn
#: tilegg runs several times, which together take about as long as the peer's one: both are watched equally long.
COLD_TURNS, COLD_OWN = 3, 4


@dataclass(frozen=True)
class Row:
    """One kernel on one target: vector cycles, and processor time as shares of the peer's (0: no time)."""

    kernel: str
    arch: str
    vector: float
    contracted: float
    warm: float = 0.0
    anew: float = 0.0
    cold: float = 0.0


class Peer:
    """The peer's passes for a target, in a process that answers questions; see ``peer_passes.py``."""

    def __init__(self, python: str, arch: str) -> None:
        self._command = [python, str(HERE / "peer_passes.py"), arch]
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=_environment(),
        )  # fmt: skip
        self.version = self._answer()["version"]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the peer's interpreter stopped: {' '.join(self._command)}")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, **question: Any) -> dict[str, Any]:
        """Return the answer to a question; raises ``SystemExit`` when the process has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def cold(self, text: str) -> tuple[float, float]:
        """Return the time of a fresh process that takes a text to assembly."""
        work = partial(subprocess.run, [*self._command, "--once"], input=text.encode(), capture_output=True, check=True,
                       env=_environment())  # fmt: skip
        return best(work, 1, resource.RUSAGE_CHILDREN)

    def close(self) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait()


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


def _to_assembly(text: str, arch: str, memo: Memo | None) -> None:
    emit(lower(parse(text), arch, contract="exact", memo=memo))


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


def compare(path: Path, arch: str, peer: Peer, runs: int) -> Row | None:
    """Print one kernel's lines and return its row; ``None`` where the peer did not take it."""
    name, text = path.stem, path.read_text()
    source = parse(text)
    texts = [text, print_program(source)]
    found = peer.ask(texts=texts)
    if "cast_text" not in found:
        print(f"{name} {arch}: not taken: {found['error']}")
        return None
    pricer = pricer_for(load_target(arch), True)
    try:
        theirs = parse(found["cast_text"], f"{name} by the peer")
    except TileggError as problem:
        print(f"{name} {arch}: its text is not read: {problem.diagnostics[0].message}")
        return None
    count, cycles, vector, refused = priced(theirs, pricer)
    ours = cost(lower(source, arch, contract="exact", memo=None))
    loose = cost(lower(source, arch, contract="contracted", memo=None))
    note = same(source, theirs) + (", as our writer prints it" if found["used"] else "")
    print(f"{name} {arch}")
    print(f"  peer        {count:4d} instr {cycles:8.0f} cyc {vector:8.0f} vec  {note}")
    print(f"  exact       {ours.instructions:4d} instr {ours.cycles:8.0f} cyc {ours.vector:8.0f} vec  "
          f"{ours.vector / vector:.3f}")  # fmt: skip
    print(f"  contracted  {loose.instructions:4d} instr {loose.cycles:8.0f} cyc {loose.vector:8.0f} vec  "
          f"{loose.vector / vector:.3f}")  # fmt: skip
    for line in dict.fromkeys(refused):
        print(f"  not legal here: {line}")
    row = Row(name, arch, ours.vector / vector, loose.vector / vector)
    return with_times(row, path, texts[found["used"]], peer, runs)


def with_times(row: Row, path: Path, given: str, peer: Peer, runs: int) -> Row:
    """Print the times from text to assembly of both, taken in turns, and return the row with their shares."""
    text, memo = path.read_text(), Memo()
    turns: dict[str, list[tuple[float, float]]] = {"peer": [], "warm": [], "anew": []}
    for _ in range(runs):
        said = peer.ask(text=given, runs=1)
        if "warm" not in said:
            print(f"  no assembly: {said['error']}")
            return row
        turns["peer"].append(tuple(said["warm"]))
        for what, kept in (("warm", memo), ("anew", None)):
            turns[what].append(best(partial(_to_assembly, text, row.arch, kept), 1, resource.RUSAGE_SELF))
    least = {what: tuple(map(min, zip(*times))) for what, times in turns.items()}
    cold = [([own_cold(path, row.arch) for _ in range(COLD_OWN)], peer.cold(given)) for _ in range(COLD_TURNS)]
    mine = tuple(map(min, zip(*(times for own, _ in cold for times in own))))
    their = tuple(map(min, zip(*(times for _, times in cold))))
    shares = least["warm"][0] / least["peer"][0], least["anew"][0] / least["peer"][0], mine[0] / their[0]
    print(f"  text to assembly: peer {_ms(least['peer'])}; warm {_ms(least['warm'])}: {shares[0]:.2f}; "
          f"memo off {_ms(least['anew'])}: {shares[1]:.2f}; "
          f"cold {_ms(mine)}, peer {_ms(their)}: {shares[2]:.2f}")  # fmt: skip
    return replace(row, warm=shares[0], anew=shares[1], cold=shares[2])


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
    for what, shares, goal in (
        ("warm", [(r.warm, r) for r in timed], 1.0),
        ("warm, memo off", [(r.anew, r) for r in timed], 1.0),
        ("cold", [(r.cold, r) for r in timed], COLD_GOAL),
    ):
        mean, largest = statistics.geometric_mean([s for s, _ in shares]), max(s for s, _ in shares)
        over = [pair for pair in shares if pair[0] > goal]
        print(f"time to the peer's, {what}: {mean:.2f}, largest {largest:.2f}; over {goal}: {_over(over)}")
        asked_for = f"at most {goal} on each" if what != "warm, memo off" else ""
        figure(f"text to assembly, {what}: time of the field's own compiler", f"{mean:.2f}, largest {largest:.2f}",
               asked_for)  # fmt: skip
    return all(r.warm <= 1 and r.cold <= COLD_GOAL for r in timed)


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
    own_cold(paths[0], TARGETS[-1])
    for arch in TARGETS:
        peer = Peer(args.peer_python, arch)
        label = f"{peer.version} {args.peer_version}".strip()
        print(f"# the field's own compiler, pypto {label}, on {arch}")
        for p in paths:
            if arch == "a5" or not p.stem.startswith(A5_ONLY):
                asked += 1
                row = compare(p, arch, peer, args.runs)
                rows += [row] if row is not None else []
        peer.close()
    return 0 if summary(rows, asked) else 1


if __name__ == "__main__":
    sys.exit(main())
