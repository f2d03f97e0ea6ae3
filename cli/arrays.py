"""``.npz`` files of the command line: ``-`` is stdin or stdout; outputs shown as text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.npz import read_npz, write_npz
from .files import read_bytes, write


def read_arrays(path: str) -> dict[str, Any]:
    """Return the arrays of an ``.npz`` file by parameter name; raises TG012 and TG013."""
    if path != "-":
        return dict(read_npz(path))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "stdin.npz")
        copy.write_bytes(read_bytes("-"))
        return dict(read_npz(copy))


def write_arrays(path: str, outputs: Mapping[str, Any]) -> None:
    """Write outputs by name; raises TG013."""
    if path != "-":
        write_npz(os.path.realpath(path), outputs)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "stdout.npz")
        write_npz(copy, outputs)
        write(None, copy.read_bytes())


def shown(outputs: Mapping[str, Any]) -> str:
    """Return outputs for people: name, element type, shape, elements (long arrays shortened)."""
    lines = []
    for name, value in outputs.items():
        array = np.asarray(value)
        shape = "x".join(map(str, array.shape)) or "scalar"
        with np.printoptions(threshold=64, edgeitems=4, linewidth=110):
            lines += [f"{name}: {array.dtype} {shape}", f"{array}"]
    return "\n".join(lines) + "\n"
