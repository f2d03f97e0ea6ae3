"""Equivalence testing for users of tilegg: assertions, a pytest plugin.

    from tilegg.testing import assert_equivalent, assert_lowering_correct

    assert_equivalent("before.py", "after.py", facts={"x": (-127, 127)})
    assert_lowering_correct("kernel.py", arch="a5")

Everything is loaded on first use: importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .asserts import NotEquivalent, assert_equivalent, assert_lowering_correct
    from .fanout import compare_programs
    from .given import as_program
    from .lowering import LoweringReport, check_lowering
    from .progress import Bar
    from .reproduce import elements_of

# Public name -> module.
_PUBLIC = {
    "Bar": ".progress",
    "LoweringReport": ".lowering",
    "NotEquivalent": ".asserts",
    "as_program": ".given",
    "assert_equivalent": ".asserts",
    "assert_lowering_correct": ".asserts",
    "check_lowering": ".lowering",
    "compare_programs": ".fanout",
    "elements_of": ".reproduce",
}

__all__ = [
    "Bar",
    "LoweringReport",
    "NotEquivalent",
    "as_program",
    "assert_equivalent",
    "assert_lowering_correct",
    "check_lowering",
    "compare_programs",
    "elements_of",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'tilegg.testing' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
