"""Kernels and helpers for the command line's tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tilegg.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"

KERNEL = """\
import pypto.language as pl


@pl.program
class K:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self, x: pl.Tensor[[16, 64], pl.{src}], out: pl.Out[pl.Tensor[[16, 64], pl.{dst}]]
    ) -> pl.Tensor[[16, 64], pl.{dst}]:
        a = pl.load(x, [0, 0], [16, 64])
        b = {body}
        return pl.store(b, [0, 0], out)
"""


def kernel(src: str, dst: str, body: str) -> str:
    """Return a kernel that computes ``b`` from ``a`` and stores it."""
    return KERNEL.format(src=src, dst=dst, body=body)


def cast_kernel(src: str, dst: str, mode: str = "rint") -> str:
    """Return a kernel of one cast."""
    return kernel(src, dst, f'pl.cast(a, target_type=pl.{dst}, mode="{mode}")')


@dataclass
class Result:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def tilegg(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Return a function that runs a command in this process."""

    def run(*words: object) -> Result:
        capsys.readouterr()
        code = main([str(w) for w in words])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err and "TG090" not in err
        return Result(code, out, err)

    return run


@pytest.fixture
def source(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a kernel's text to a file."""

    def write(text: str, name: str = "kernel.py") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
