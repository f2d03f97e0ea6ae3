"""Where SIMT operations may stand: inside functions marked ``pto.simt_entry`` and inside ``pto.section.simt``."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

ENTRY = "pto.simt_entry"
SECTION = "pto.section.simt"


class MisplacedError(VerifyException):
    """An operation in the wrong domain; ``code`` is that of the language's own check, TG055 or TG056."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def simt_scope(op: Operation) -> Operation | None:
    """Return the SIMT entry or section around an operation, ``None`` outside of both."""
    found: Operation | None = op.parent_op()
    while found is not None:
        if found.name == SECTION or (found.name == "func.func" and ENTRY in found.attributes):
            return found
        found = found.parent_op()
    return None


def in_threads(op: Operation) -> None:
    """Raise unless the operation stands in SIMT code (TG055)."""
    if simt_scope(op) is None:
        message = "stands outside of SIMT code: it needs a function marked pto.simt_entry, or pto.section.simt"
        raise MisplacedError(message, "TG055")


def before_threads(op: Operation, why: str = "") -> None:
    """Raise when the operation stands in SIMT code (TG056)."""
    if simt_scope(op) is not None:
        raise MisplacedError(f"stands in SIMT code{why}", "TG056")
