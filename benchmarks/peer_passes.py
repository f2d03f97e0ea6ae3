"""Run by the interpreter of the field's own compiler (the public package ``pypto``): its passes on program texts.

    python peer_passes.py ARCH [--once]

Standard input is a question per line, standard output an answer per line, both JSON. The first answer is
``{"version"}``. A question ``{"texts": [...]}`` holds several texts of one program: of those, the first that the
reader takes is used; the answer is ``{"used": which text, "cast_text": the program after composites and casts are
lowered, "error"}``. A question ``{"text", "runs"}`` asks for the time from text to assembly; the answer is ``{"warm":
the best of the runs as processor and wall milliseconds}`` or ``{"error"}``. With ``--once``, standard input is a
text, which is taken to assembly, and nothing is answered.

Nothing of tilegg is imported here.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import pypto
import pypto.language as pl
from pypto import backend, codegen, ir, passes
from pypto.backend import BackendType
from pypto.ir import OptimizationStrategy, PassManager
from pypto.ir.printer import python_print

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
    used, start = time.process_time(), time.perf_counter()
    to_assembly(text)
    return (time.process_time() - used) * 1e3, (time.perf_counter() - start) * 1e3


def answer(question: dict[str, Any]) -> dict[str, Any]:
    problem = ""
    if "text" in question:
        try:
            return {"warm": [min(t) for t in zip(*(timed(question["text"]) for _ in range(question["runs"])))]}
        except Exception as e:  # its passes raise many kinds
            return {"error": first_line(e)}
    for used, text in enumerate(question["texts"]):
        try:
            return {"used": used, "cast_text": lowered_text(text), "error": problem}
        except Exception as e:
            problem = problem or first_line(e)
    return {"error": problem}


def main() -> None:
    backend.set_backend_type(BACKENDS[sys.argv[1]])
    if "--once" in sys.argv:
        to_assembly(sys.stdin.read())
        return
    # What the package prints must not stand among the answers.
    out, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps({"version": getattr(pypto, "__version__", "unknown")}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
