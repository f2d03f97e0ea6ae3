"""Operations of the dialect, defined at their first use, which several threads may be at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CORPUS = Path(__file__).parents[2] / "benchmarks" / "corpus"

# In a process of its own, where no class is defined yet.
PROBE = """
import sys, threading
from pathlib import Path
import tilegg

program = tilegg.parse(Path(sys.argv[1]).read_text())
lowered = tilegg.lower(program, "a5")
from tilegg.codegen import emit as _loaded
from tilegg.codegen.pto import build

sys.setswitchinterval(1e-6)
start, made = threading.Barrier(8), []

def work():
    start.wait()
    made.append(tilegg.emit(lowered))

running = [threading.Thread(target=work) for _ in range(8)]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
print(len(made), len(set(made)))
"""


def test_threads_may_use_an_operation_for_the_first_time_together() -> None:
    for kernel in ("quant_int8", "rope_halves", "softmax_rows"):
        words = [sys.executable, "-c", PROBE, str(CORPUS / f"{kernel}.py")]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.stderr == "" and done.stdout.split() == ["8", "1"]
