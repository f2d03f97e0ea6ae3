"""tilegg: an e-graph optimizer for tile programs on Ascend NPUs.

    import tilegg

    program = tilegg.parse(text, "kernel.py")
    lowered = tilegg.lower(program, "a5")
    print(tilegg.emit(lowered))

Everything is loaded on first use: importing the package costs a few milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .codegen.emit import emit
    from .codegen.signals.check import check_signals
    from .extract.between import trajectory
    from .extract.explain import explain
    from .extract.lower import lower
    from .ir.builder import Builder
    from .ir.diagnostics import Diagnostic, Span, TileggError
    from .ir.equivalence import equivalent
    from .ir.interp import run
    from .ir.text import parse, parse_with_remarks, print_program
    from .ir.verify import verify
    from .rules.paths import roads
    from .rules.paths_show import explore as explore_casts
    from .rules.target import load_target, target_names

# Public name -> (module, name there).
_PUBLIC = {
    "Builder": (".ir.builder", "Builder"),
    "Diagnostic": (".ir.diagnostics", "Diagnostic"),
    "Span": (".ir.diagnostics", "Span"),
    "TileggError": (".ir.diagnostics", "TileggError"),
    "check_signals": (".codegen.signals.check", "check_signals"),
    "emit": (".codegen.emit", "emit"),
    "equivalent": (".ir.equivalence", "equivalent"),
    "explain": (".extract.explain", "explain"),
    "explore_casts": (".rules.paths_show", "explore"),
    "load_target": (".rules.target", "load_target"),
    "lower": (".extract.lower", "lower"),
    "parse": (".ir.text", "parse"),
    "parse_with_remarks": (".ir.text", "parse_with_remarks"),
    "print_program": (".ir.text", "print_program"),
    "roads": (".rules.paths", "roads"),
    "run": (".ir.interp", "run"),
    "target_names": (".rules.target", "target_names"),
    "trajectory": (".extract.between", "trajectory"),
    "verify": (".ir.verify", "verify"),
}

__all__ = [
    "Builder",
    "Diagnostic",
    "Span",
    "TileggError",
    "check_signals",
    "emit",
    "equivalent",
    "explain",
    "explore_casts",
    "load_target",
    "lower",
    "parse",
    "parse_with_remarks",
    "print_program",
    "roads",
    "run",
    "target_names",
    "trajectory",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'tilegg' has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    value = getattr(import_module(module, __name__), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
