"""The package's own declarations: what is installed, and what may import what."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from inspect import isfunction, signature
from pathlib import Path

import pytest
import tilegg

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


#: How the public functions name a program, and the result of a lowering.
PROGRAMS = {"program", "a", "lowered"}


def functions_of_programs() -> list[str]:
    public = {name: getattr(tilegg, name) for name in tilegg.__all__}
    return [n for n, f in public.items() if isfunction(f) and next(iter(signature(f).parameters), "") in PROGRAMS]


@pytest.mark.parametrize("name", functions_of_programs())
def test_text_in_the_place_of_a_program_is_sent_to_the_reader(name: str) -> None:
    function = getattr(tilegg, name)
    required = [p for p in signature(function).parameters.values() if p.default is p.empty]
    with pytest.raises(TypeError, match=rf"^{name} takes a .*, not str: .*tilegg\.parse\(text, name\)"):
        function(*["@pl.function\ndef k(): pass\n"] * len(required))


def test_the_functions_of_programs_are_known() -> None:
    wanted = {"check_signals", "emit", "equivalent", "explain", "lower", "print_program", "run", "trajectory", "verify"}
    assert set(functions_of_programs()) == wanted
