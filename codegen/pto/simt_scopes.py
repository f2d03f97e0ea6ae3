"""Where SIMT operations may stand: inside functions marked ``pto.simt_entry`` and inside ``pto.section.simt``."""

from __future__ import annotations

from xdsl.ir import Operation

from .conditions import fail

ENTRY = "pto.simt_entry"
SECTION = "pto.section.simt"


def simt_scope(op: Operation) -> Operation | None:
    """Return the SIMT entry or section around an operation, ``None`` outside of both."""
    found: Operation | None = op.parent_op()
    while found is not None:
        if found.name == SECTION or (found.name == "func.func" and ENTRY in found.attributes):
            return found
        found = found.parent_op()
    return None


def in_threads(op: Operation) -> None:
    """Raise unless the operation stands in SIMT code."""
    if simt_scope(op) is None:
        fail("stands outside of SIMT code: it needs a function marked pto.simt_entry, or pto.section.simt")
