"""Run the measurements and keep what they print: ``make bench``.

    python benchmarks/run_all.py [--quick] [--only NAME ...] [--peer-python PATH]

Each benchmark's printed summary is written to ``benchmarks/results/<name>.txt`` with the date and the machine.
Exits 1 if a benchmark missed one of its bounds or failed.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
#: Benchmark -> (arguments of the full run, arguments of the quick one), in the order in which they run.
RUNS: dict[str, tuple[list[str], list[str]]] = {
    "bench_audit": (["--programs", "50000", "--jobs", "2"], ["--programs", "400", "--no-mutants"]),
    "bench_rules": (["--jobs", "2"], ["--jobs", "2", "--samples", "100"]),
    "bench_recipes": ([], ["--cost"]),
    "bench_composed": ([], ["--share", "512"]),
    "bench_scalars": ([], []),
    "bench_signals": ([], ["--chunks", "1", "2"]),
    "bench_gains": ([], ["--quick"]),
    "bench_text": ([], []),
    "bench_emit": ([], ["--instructions", "100", "1000"]),
    "bench_lower": ([], ["--quick"]),
    "bench_cli": ([], ["--runs", "3"]),
    "bench_peer": ([], ["--runs", "2", "--kernel", "quant"]),
    "bench_casts": ([], ["--samples", "2000"]),
    "bench_convert": (["--samples", "1000000"], ["--samples", "20000"]),
    "bench_collectives": ([], ["--schedules", "2", "--ranks", "2", "3"]),
}


def machine() -> str:
    """Describe the machine: date, processor count, load, Python."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    load = os.getloadavg()[0]
    return f"{now}, {platform.machine()}, {os.cpu_count()} cores (load {load:.1f}), Python {platform.python_version()}"


def run(name: str, arguments: list[str]) -> bool:
    """Run one benchmark, show and keep its output; return whether it kept its bounds."""
    start = time.monotonic()
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
    text = done.stdout + (done.stderr if done.returncode else "")
    # Where the peer's interpreter is stands in no result.
    shown = ["PATH" if before == "--peer-python" else word for before, word in zip(["", *arguments], arguments)]
    head = f"{name} {' '.join(shown)}".rstrip()
    fine = "ok" if done.returncode == 0 else f"exit {done.returncode}"
    report = f"# {head}: {fine}, {time.monotonic() - start:.0f} s\n# {machine()}\n\n{text}"
    print(report, flush=True)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / f"{name}.txt").write_text(report)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller counts")
    parser.add_argument("--only", nargs="+", choices=sorted(RUNS), help="these benchmarks alone")
    parser.add_argument("--peer-python", metavar="PATH", help="compare with the compiler pypto, which PATH can import")
    parser.add_argument("--peer-version", default="", help="what to call its version")
    options = parser.parse_args()
    if options.peer_python:
        asked = ["--peer-python", options.peer_python, "--peer-version", options.peer_version]
        RUNS["bench_peer"] = (asked, [*asked, *RUNS["bench_peer"][1]])
    elif "bench_peer" in (options.only or ()):
        parser.error("bench_peer needs --peer-python PATH, an interpreter that can import pypto")
    else:
        del RUNS["bench_peer"]
    names = [n for n in RUNS if n in (options.only or RUNS)]
    results = {name: run(name, RUNS[name][options.quick]) for name in names if (HERE / f"{name}.py").exists()}
    print("\n".join(f"{name:20s} {'ok' if fine else 'MISSED'}" for name, fine in results.items()))
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
