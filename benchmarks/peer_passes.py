"""Run by the interpreter of the field's own compiler (the public package ``pypto``): its passes on program texts.

Standard input is JSON ``{"arch": "a5"|"a2a3", "runs": N, "programs": {name: [text, ...]}}``; of several texts of one
program, the first that its reader takes is used. Standard output is JSON ``{"version", "import", "programs": {name:
{"used": which text, "cast_text": the program after composites and casts are lowered, "first": text to assembly for the
first time in a fresh process after the import, "warm": the best of N more, "error"}}}``. Times are pairs of processor
and wall milliseconds.

Nothing of tilegg is imported here.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def clocks() -> tuple[float, float]:
    """Return processor and wall milliseconds."""
    return time.process_time() * 1e3, time.perf_counter() * 1e3


_START = time.perf_counter() * 1e3
import pypto.language as pl  # noqa: E402
from pypto import backend, codegen, ir, passes  # noqa: E402
from pypto.backend import BackendType  # noqa: E402
from pypto.ir import OptimizationStrategy, PassManager  # noqa: E402
from pypto.ir.printer import python_print  # noqa: E402

IMPORT = (clocks()[0], clocks()[1] - _START)
BACKENDS = {"a5": BackendType.Ascend950, "a2a3": BackendType.Ascend910B}


def first_line(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {str(problem).strip().splitlines()[0][:160] if str(problem).strip() else ''}"


def lowered_text(text: str) -> str:
    """Return the program after the composite and cast passes, as text."""
    return str(python_print(passes.legalize_tile_cast()(passes.lower_composite_ops()(pl.parse(text)))))


def to_assembly(text: str) -> int:
    """Take a text through the whole pipeline and the code generator; return how long the assembly is."""
    final = PassManager.get_strategy(OptimizationStrategy.Default).run_passes(pl.parse(text))
    size = 0
    for f in final.functions.values():
        if ir.is_incore_type(f.func_type):
            made = codegen.PTOCodegen().generate(ir.Program([f], f.name, final.span))
            size += len(made if isinstance(made, str) else "".join(made.values()))
    return size


def timed(text: str) -> tuple[float, float]:
    start = clocks()
    to_assembly(text)
    end = clocks()
    return end[0] - start[0], end[1] - start[1]


def first(text: str) -> tuple[float, ...]:
    """Return the time of the first run, in a process that has imported the package and done nothing else."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, " ".join(map(repr, timed(text))).encode())
        finally:
            os._exit(0)
    os.close(write)
    said = os.read(read, 256).decode()
    os.close(read)
    os.waitpid(child, 0)
    return tuple(map(float, said.split()))


def measured(texts: list[str], runs: int) -> dict[str, Any]:
    problem = ""
    for used, text in enumerate(texts):
        try:
            cast_text = lowered_text(text)
        except Exception as e:  # its reader raises many kinds
            problem = problem or first_line(e)
            continue
        found: dict[str, Any] = {"used": used, "cast_text": cast_text, "error": problem}
        try:
            found["first"] = first(text)
            found["warm"] = [min(t) for t in zip(*(timed(text) for _ in range(runs)))]
        except Exception as e:
            found["error"] = first_line(e)
        return found
    return {"error": problem}


def main() -> None:
    asked = json.load(sys.stdin)
    backend.set_backend_type(BACKENDS[asked["arch"]])
    out, sys.stdout = sys.stdout, sys.stderr
    programs = {name: measured(texts, asked["runs"]) for name, texts in asked["programs"].items()}
    import pypto

    version = getattr(pypto, "__version__", "unknown")
    json.dump({"version": version, "import": IMPORT, "programs": programs}, out)


if __name__ == "__main__":
    main()
