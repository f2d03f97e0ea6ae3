"""A fault of tilegg itself: a short message, and one file with everything needed to see it again."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import sys
import tempfile
import traceback
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..ir.diagnostics import Diagnostic, TileggError, error
from .console import Console
from .files import read_bytes
from .streams import say

#: Options whose value is a file to write: a reproduction leaves these files alone.
_WRITING = ("-o", "--output", "--report")


def report_crash(problem: Exception, words: list[str], console: Console) -> int:
    """Write the reproducer, report TG090 and return the exit code 1."""
    if os.environ.get("TILEGG_DEBUG") == "1":
        say("".join(traceback.format_exception(problem)).rstrip())
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
    return console.fail(TileggError(found))


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


def reproduce(args: Namespace, console: Console) -> int:
    """Run the command of a crash file again, on the inputs stored in it and without writing its outputs."""
    from . import main

    words, inputs = _stored(args.file)
    os.environ["TILEGG_DEBUG"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        places = {}
        for i, (name, text) in enumerate(sorted(inputs.items())):
            place = Path(folder, f"{i}-{Path(name).name[-100:]}")
            data = text.encode("utf-8", "surrogateescape")
            if name == "<stdin>":
                sys.stdin = io.TextIOWrapper(io.BytesIO(data), "utf-8")
            else:
                place.write_bytes(data)
                places[name] = str(place)
        return main([places.get(word, word) for word in _without_outputs(words)])


def _stored(path: str) -> tuple[list[str], dict[str, str]]:
    try:
        found: Any = json.loads(read_bytes(path))
        words, inputs = found["arguments"], found["inputs"]
        good = all(isinstance(w, str) for w in [*words, *inputs, *inputs.values()])
        if not good or not isinstance(words, list) or "reproduce" in words[:1]:
            raise ValueError("arguments and inputs must be text")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise error("TG013", f"{path} is no crash file", reason=str(problem)[:200]) from None
    return words, inputs


def _without_outputs(words: list[str]) -> list[str]:
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _WRITING:
            next(rest, None)
        elif not word.startswith(("--output=", "--report=")) and not (word.startswith("-o") and len(word) > 2):
            kept.append(word)
    return kept
