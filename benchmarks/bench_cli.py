"""Start-up and cold times of the command line, as medians of fresh processes.

    python benchmarks/bench_cli.py [--runs N] [--imports]

Bounds: ``--help`` 150 ms; text to ``.pto`` of a 100-operation kernel 1.2 s, everything included.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BOUNDS = {"--help": 0.150, "lower 100 ops": 1.2}


def kernel(operations: int) -> str:
    """Return a kernel with that many operations: casts, scalings and clamps of 16x256 tiles, as epilogues have."""
    lines = [
        "import pypto.language as pl",
        "",
        "@pl.program",
        "class Cold:",
        "    @pl.function(type=pl.FunctionType.InCore)",
        "    def cold(self, x: pl.Tensor[[16, 256], pl.BF16], out: pl.Out[pl.Tensor[[16, 256], pl.BF16]]) -> "
        "pl.Tensor[[16, 256], pl.BF16]:",
        "        v0 = pl.load(x, [0, 0], [16, 256])",
    ]
    steps = (
        "pl.cast({0}, target_type=pl.FP32)",
        "pl.mul({0}, 1.25)",
        "pl.cast({0}, target_type=pl.INT32, mode='rint')",
        "pl.cast({0}, target_type=pl.FP32)",
        "pl.tile.minimums({0}, 127.0)",
        "pl.tile.maximums({0}, -127.0)",
        "pl.exp({0})",
        "pl.cast({0}, target_type=pl.BF16, mode='rint')",
    )
    count = 1
    while count < operations - 1 or (count - 1) % len(steps):
        lines.append(f"        v{count} = " + steps[(count - 1) % len(steps)].format(f"v{count - 1}"))
        count += 1
    return "\n".join([*lines, f"        return pl.store(v{count - 1}, [0, 0], out)", ""])


def environment(folder: str) -> dict[str, str]:
    """Return an environment in which compiled modules are kept, as in every installation, in a folder of their own."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder}


def timed(words: list[str], runs: int, env: dict[str, str]) -> tuple[float, float]:
    """Return the medians of a command's wall time and processor time in seconds."""
    wall, processor = [], []
    for _ in range(runs):
        start, before = time.perf_counter(), children()
        subprocess.run([sys.executable, "-m", "tilegg", *words], check=True, capture_output=True, env=env)
        wall.append(time.perf_counter() - start)
        processor.append(children() - before)
    return statistics.median(wall), statistics.median(processor)


def children() -> float:
    """Return the processor time of all finished child processes in seconds."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def imports(words: list[str], env: dict[str, str]) -> list[tuple[float, str]]:
    """Return the packages a command imports with their own time in milliseconds, slowest first."""
    command = [sys.executable, "-X", "importtime", "-m", "tilegg", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    totals: dict[str, float] = {}
    for own, name in re.findall(r"import time: +(\d+) \| +\d+ \| +([\w.]+)", done.stderr):
        package = name if name.startswith("tilegg") else name.split(".")[0]
        totals[".".join(package.split(".")[:2])] = totals.get(".".join(package.split(".")[:2]), 0.0) + int(own) / 1000
    return sorted(((ms, name) for name, ms in totals.items()), reverse=True)


def main() -> int:
    """Print the table; exit code 1 when a bound is missed."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=9)
    options.add_argument("--imports", action="store_true", help="also list where cold time goes")
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = environment(str(Path(folder, "compiled")))
        path = Path(folder, "kernel.py")
        path.write_text(kernel(100), encoding="utf-8")
        lower = ["lower", str(path), "--arch", "a5", "-q", "-o", str(Path(folder, "out.pto"))]
        commands = {
            "--help": ["--help"],
            "check 100 ops": ["check", str(path)],
            "casts": ["casts", "fp32", "int8", "--arch", "a5"],
            "lower 100 ops": lower,
        }
        machine = platform.processor() or platform.machine()
        print(f"{machine}, {os.cpu_count()} cores, Python {platform.python_version()}")
        missed = False
        for name, words in commands.items():
            timed(words, 1, env)
            median, processor = timed(words, args.runs, env)
            bound = BOUNDS.get(name)
            late = bound is not None and median > bound
            missed = missed or late
            goal = f"  (at most {bound * 1000:.0f} ms{', MISSED' if late else ''})" if bound else ""
            print(f"{name:<16} {median * 1000:8.0f} ms, {processor * 1000:.0f} ms of processor time{goal}")
        if args.imports:
            for ms, name in imports(lower, env)[:20]:
                print(f"  {ms:8.1f} ms  {name}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
