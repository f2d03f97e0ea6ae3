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
    for init in ROOT.rglob("__init__.py"):
        parts = init.parent.relative_to(ROOT).parts
        if parts and parts[0] not in skipped and not parts[0].startswith("."):
            found.add(".".join(("tilegg", *parts)))
    assert declared == found


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "numpy egglog xdsl highspy networkx ml_dtypes"
    code = f"import sys, tilegg; print([m for m in {heavy!r}.split() if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
