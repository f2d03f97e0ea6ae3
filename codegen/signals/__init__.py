"""The signal check: rank programs unrolled into events, and what is wrong with their order.

:func:`check_signals` answers for concrete numbers of ranks, before any assembly is written.
"""

from __future__ import annotations

from .check import check_signals
from .classes import CLASSES
from .report import Checked, Expect, Setting, SignalFinding, SignalReport, Witness
from .witness import replay

__all__ = [
    "CLASSES", "Checked", "Expect", "Setting", "SignalFinding", "SignalReport", "Witness", "check_signals", "replay",
]  # fmt: skip
