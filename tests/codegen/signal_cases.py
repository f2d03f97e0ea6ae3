"""The labelled suite of rank programs for the signal check."""

from __future__ import annotations

from signal_suite import barriers, caches, protocols, right, transfers
from signal_suite.text import Case


def all_cases() -> list[Case]:
    """Return every labelled program of the suite; names are unique."""
    found = [*barriers.cases(), *transfers.cases(), *caches.cases(), *right.cases(), *protocols.cases()]
    if len({c.name for c in found}) != len(found):
        raise ValueError("two cases have one name")
    return found
