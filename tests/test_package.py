"""The package's own declarations: what is installed, and what may import what."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_folder_of_the_package_is_installed() -> None:
    declared = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    skipped = {"tests", "build", "benchmarks", "docs", "examples"}
    found = {"tilegg"}
    tops = [d for d in ROOT.iterdir() if d.is_dir() and d.name not in skipped and not d.name.startswith(".")]
    for init in (init for top in tops for init in top.rglob("__init__.py")):
        found.add(".".join(("tilegg", *init.parent.relative_to(ROOT).parts)))
    assert declared == found


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "numpy egglog xdsl highspy networkx ml_dtypes"
    code = f"import sys, tilegg; print([m for m in {heavy!r}.split() if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
