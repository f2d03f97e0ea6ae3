"""Equivalence testing for users of tilegg: assertions, inputs and programs for property tests, a pytest plugin.

    from tilegg.testing import assert_equivalent, assert_lowering_correct

    assert_equivalent("before.py", "after.py", facts={"x": (-127, 127)})
    assert_lowering_correct("kernel.py", arch="a5")

Everything is loaded on first use: importing the package costs nothing. The strategies need Hypothesis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assembly import AssemblyReport, check_assembly
    from .asserts import NotEquivalent, assert_equivalent, assert_lowering_correct
    from .fanout import compare_programs
    from .given import as_program
    from .lowering import LoweringReport, check_lowering
    from .progress import Bar
    from .reproduce import elements_of
    from .strategies import dtypes, elements, facts, inputs, programs, round_modes, saturations, tiles

# Public name -> module.
_PUBLIC = {
    "AssemblyReport": ".assembly",
    "Bar": ".progress",
    "LoweringReport": ".lowering",
    "NotEquivalent": ".asserts",
    "as_program": ".given",
    "assert_equivalent": ".asserts",
    "assert_lowering_correct": ".asserts",
    "check_assembly": ".assembly",
    "check_lowering": ".lowering",
    "compare_programs": ".fanout",
    "dtypes": ".strategies",
    "elements": ".strategies",
    "elements_of": ".reproduce",
    "facts": ".strategies",
    "inputs": ".strategies",
    "programs": ".strategies",
    "round_modes": ".strategies",
    "saturations": ".strategies",
    "tiles": ".strategies",
}

__all__ = [
    "AssemblyReport",
    "Bar",
    "LoweringReport",
    "NotEquivalent",
    "as_program",
    "assert_equivalent",
    "assert_lowering_correct",
    "check_assembly",
    "check_lowering",
    "compare_programs",
    "dtypes",
    "elements",
    "elements_of",
    "facts",
    "inputs",
    "programs",
    "round_modes",
    "saturations",
    "tiles",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'tilegg.testing' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
