"""Inputs and outputs of runs as ``.npz`` files, one array per parameter name.

Stored types: integers, BOOL, FP16 and FP32 as NumPy has them (INT4 as int8, UINT4 as uint8); BF16 as uint16
bit codes; FP8E4M3FN, FP8E5M2, FP8E8M0, HF8, FP4 and FP4E1M2 as uint8 bit codes, one element per byte; scalars
as arrays without axes. Files that hold ml_dtypes arrays (NumPy stores these as raw bytes) read as codes too.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .diagnostics import error
from .tilearray import Arr

_BAD_FILE = (OSError, ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile)
#: Raw elements of these sizes are bit codes.
_CODES = {1: "uint8", 2: "uint16"}


def read_npz(path: str | os.PathLike[str]) -> dict[str, Arr]:
    """Return the arrays of a file by name; raises TG013 when it is no such file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name.removesuffix(".npy"): _readable(_member(archive, name), name)
                for name in sorted(archive.namelist())
            }
    except _BAD_FILE as problem:
        raise error("TG013", f"cannot read {os.fspath(path)} as .npz", reason=str(problem)[:200]) from None


def _member(archive: zipfile.ZipFile, name: str) -> Arr:
    with archive.open(name) as file:
        # Object arrays would have to be unpickled, which can run code: refused.
        return np.lib.format.read_array(file, allow_pickle=False)


def _readable(array: Arr, name: str) -> Arr:
    if array.dtype.kind in "fiub":
        return array
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize in _CODES:
        return array.view(_CODES[array.dtype.itemsize])
    raise ValueError(f"{name} holds elements of type {array.dtype}")


def write_npz(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Write arrays and numbers by name; the file appears whole or not at all. Raises TG013."""
    target = Path(path)
    try:
        arrays = {name: _storable(np.asarray(values[name])) for name in sorted(values)}
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            _write(temporary, arrays)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as problem:
        raise error("TG013", f"cannot write {target}", reason=str(problem)[:200]) from None


def _write(path: Path, arrays: Mapping[str, Arr]) -> None:
    # Not np.savez: it takes the names as keywords, "file" among them, and stamps the time of day.
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _storable(array: Arr) -> Arr:
    """Return the array with types that NumPy cannot name (those of ml_dtypes) as their bit codes."""
    if array.dtype.kind in "fiub" and array.dtype.isbuiltin == 1:
        return array
    # Of ml_dtypes, some types call themselves void and some float.
    if array.dtype.kind in "Vf" and array.dtype.names is None and array.dtype.itemsize in _CODES:
        return np.ascontiguousarray(array).view(_CODES[array.dtype.itemsize])
    raise ValueError(f"elements of type {array.dtype} cannot be stored")
