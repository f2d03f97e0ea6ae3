"""The signal check: rank programs unrolled into events, and what is wrong with their order.

:func:`check_signals` answers for concrete numbers of ranks, before any assembly is written.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .check import check_signals
    from .classes import CLASSES
    from .draw import draw_html, draw_svg
    from .report import Checked, Expect, Setting, SignalFinding, SignalReport, Witness
    from .witness import replay

_HOMES = {
    "CLASSES": "classes", "Checked": "report", "Expect": "report", "Setting": "report", "SignalFinding": "report",
    "SignalReport": "report", "Witness": "report", "check_signals": "check", "draw_html": "draw", "draw_svg": "draw",
    "replay": "witness",
}  # fmt: skip

__all__ = [
    "CLASSES", "Checked", "Expect", "Setting", "SignalFinding", "SignalReport", "Witness", "check_signals",
    "draw_html", "draw_svg", "replay",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # networkx and the simulator are loaded for programs that communicate only.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
