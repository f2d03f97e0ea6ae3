"""A fault of tilegg itself: a short message, and one file with everything needed to see it again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import tempfile
import traceback

from ..ir.diagnostics import Diagnostic
from .console import Console, print_json


def report_crash(problem: Exception, words: list[str], console: Console) -> int:
    """Write the reproducer, report TG090 and return the exit code 1."""
    if os.environ.get("TILEGG_DEBUG") == "1":
        traceback.print_exception(problem, file=sys.stderr)
    path = _write(_reproducer(problem, words, console))
    what = str(problem).splitlines()[0][:120] if str(problem) else ""
    found = Diagnostic(
        "TG090",
        f"{type(problem).__name__}: {what}" if what else type(problem).__name__,
        reason="this is a fault of tilegg, not of the input",
        hint=f"options, inputs and trace are in {path}; see it again with: tilegg reproduce {path}"
        if path
        else "run again with TILEGG_DEBUG=1 to see the trace",
    )
    console.report([found])
    if console.json_stdout:
        print_json({"schema": 1, "diagnostics": [found.to_json()]})
    return 1


def _reproducer(problem: Exception, words: list[str], console: Console) -> str:
    from .. import __version__

    return json.dumps(
        {
            "schema": 1,
            "tilegg": __version__,
            "python": platform.python_version(),
            "arguments": words,
            "inputs": {name: data.decode("utf-8", "surrogateescape") for name, data in console.read_files.items()},
            "trace": traceback.format_exception(problem),
        },
        indent=1,
    )


def _write(text: str) -> str | None:
    name = f"tilegg-crash-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    path = os.path.join(tempfile.gettempdir(), name)
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return None
    return path
