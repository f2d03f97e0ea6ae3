"""Time and memory of lowering: warm, cold and remembered; growth with size; how often the optimum is proved.

    python benchmarks/bench_lower.py [--quick]

Kernels are random in the op mix of real programs (``kernels.py``), on [16, 64] tiles. Times are
processor time of this process, medians over several runs; the bounds are the project's own goals.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from figures import figure
from kernels import kernel, kernel_text
from tilegg import emit, lower, parse
from tilegg.extract.memo import Memo
from tilegg.ir.program import Program
from tilegg.rules.cost import Instr, cycles
from tilegg.rules.target import load_target

TARGETS = ("a2a3", "a5")
HERE = Path(__file__).parent


def cpu(action: Callable[[], object], repeat: int) -> float:
    """Return the median processor time of ``repeat`` runs after one warm-up, in milliseconds."""
    action()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        action()
        times.append((time.process_time() - start) * 1e3)
    return statistics.median(times)


def line(name: str, value: float, unit: str, bound: float | None) -> bool:
    """Print one figure with its bound and return whether it holds."""
    fine = bound is None or value <= bound
    mark = "" if bound is None else f"  (at most {bound:g} {unit}{'' if fine else '  MISSED'})"
    print(f"{name:58s} {value:9.2f} {unit}{mark}")
    if bound is not None:
        shown = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
        figure(name, f"{shown} {unit}", f"at most {bound:,g} {unit}")
    return fine


def warm(quick: bool) -> bool:
    """Warm lowering without memo at 40, 400 and 4,000 operations."""
    fine = True
    for ops, bound, repeat, seeds in ((40, 15.0, 7, 10), (400, None, 3, 2), (4000, 3000.0, 1, 1)):
        if quick and ops > 400:
            continue
        found = []
        for arch in TARGETS:
            for seed in range(seeds):
                program = kernel(ops, seed)
                found.append(cpu(lambda p=program, a=arch: lower(p, a, memo=None), repeat))  # type: ignore[misc]
        name = f"lower, memo off, {ops} operations, median of {len(found)}"
        fine &= line(name, statistics.median(found), "ms", bound)
    return fine


def remembered() -> bool:
    """A repeated region: key, look-up and rebuilding, per region."""
    fine = True
    for ops, bound in ((12, 50.0), (40, None)):
        memo = Memo()
        program = kernel(ops, 1)
        lower(program, "a5", memo=memo)
        regions = sum(len(f.regions) for f in lower(program, "a5", memo=memo).functions)
        start = time.process_time()
        for _ in range(200):
            lower(program, "a5", memo=memo)
        each = (time.process_time() - start) / 200 / max(regions, 1) * 1e6
        fine &= line(f"lower again, {ops} operations, whole call per region", each, "us", None)
        looked = _lookup(program, memo)
        fine &= line(f"key and look-up of a remembered region, {ops} operations", looked, "us", bound)
    return fine


def _lookup(program: Program, memo: Memo) -> float:
    from tilegg.extract.memo import region_key
    from tilegg.rewrite.knowledge import Knowledge
    from tilegg.rewrite.region import names_in_types, regions

    function = program.functions[0]
    found = regions(function.body, names_in_types(function))
    knowledge = Knowledge(function)
    asked = ("x",)
    start = time.process_time()
    for _ in range(500):
        for region in found:
            key, _ = region_key(region, knowledge, asked)
            memo.get(key)
    return (time.process_time() - start) / 500 / len(found) * 1e6


def whole_way() -> bool:
    """Text to assembly, warm, 100 operations."""
    text = kernel_text(100, 3)
    each = cpu(lambda: emit(lower(parse(text), "a5", memo=None), "a5"), 5)
    return line("text to .pto, warm, memo off, 100 operations", each, "ms", None)


SINES = """
import pypto.language as pl
@pl.program
class S:
    @pl.function(type=pl.FunctionType.InCore)
    def s(self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t0 = pl.load(x, [0, 0], [16, 64])
{}
        return pl.store(t100, [0, 0], y)
"""


def shapes() -> bool:
    """A hundred sines in one function, and Sinkhorn normalisation of some hundred small operations."""
    text = SINES.format("\n".join(f"        t{i + 1} = pl.sin(t{i})" for i in range(100)))
    program = parse(text)
    each = cpu(lambda: lower(program, "a5", memo=Memo()), 3)
    fine = line("100 sines one after another, with memo", each, "ms", 1000.0)
    sinkhorn = parse((HERE / "corpus" / "sinkhorn.py").read_text())
    each = max(cpu(lambda a=a: lower(sinkhorn, a, memo=None), 7) for a in TARGETS)  # type: ignore[misc]
    return fine & line("Sinkhorn normalisation of 107 instructions, memo off", each, "ms", 150.0)


_MEMORY = """
import resource
from kernels import kernel
from tilegg import lower
lower(kernel(4000, 0), "a5", memo=None)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def memory() -> bool:
    """Peak memory of a fresh process that lowers 4,000 operations."""
    run = subprocess.run([sys.executable, "-c", _MEMORY], capture_output=True, text=True, check=True, cwd=HERE)
    return line("peak memory, 4,000 operations", float(run.stdout), "MB", 300.0)


def prices() -> bool:
    """Price instructions of new shapes, and again."""
    target = load_target("a2a3")
    fresh = [Instr("tmul", ("FP32",) * 3, rows, 96, 128) for rows in range(1, 1001)]
    start = time.process_time()
    for instr in fresh:
        cycles(target, instr)
    first = (time.process_time() - start) / len(fresh) * 1e6
    again = cpu(lambda: [cycles(target, instr) for instr in fresh], 3) / len(fresh) * 1e3
    new = line("price of an instruction of a new shape", first, "us", 30.0)
    return line("price of a known one", again, "us", 1.0) and new


def proved(count: int) -> bool:
    """Share of kernels whose optimum is proved within a second."""
    fine = True
    for exact in (False, True):
        done = 0
        for seed in range(count):
            arch = TARGETS[seed % 2]
            result = lower(kernel(40, 1000 + seed), arch, memo=None, exact=exact, time_limit=1.0)
            done += result.optimum == "proved"
        how = "with the integer solver" if exact else "by reductions and branch and bound alone"
        figure(f"optimum proved on random 40-operation kernels, {how}", f"{done} of {count}", "95 %" * exact)
        fine &= not exact or done >= 0.95 * count
    return fine


def never_worse(count: int) -> bool:
    """Lowered programs never cost more than the plain lowering, for every objective."""
    worse = 0
    for seed in range(count):
        arch = TARGETS[seed % 2]
        for objective in ("cycles", "instructions", "accuracy"):
            result = lower(kernel(20, 5000 + seed), arch, memo=None, objective=objective)
            worse += result.totals.rank(objective) > result.plain.rank(objective)
    figure("random kernels, three objectives: costlier than the plain lowering", f"{worse} of {3 * count}", "0")
    return worse == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller counts")
    quick = parser.parse_args().quick
    count = 20 if quick else 200
    checks = [warm(quick), shapes(), remembered(), whole_way(), prices(), proved(count), never_worse(count)]
    if not quick:
        checks.append(memory())
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
