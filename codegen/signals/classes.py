"""The kinds of faults the signal check can find, each with its word, code and what it means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FaultClass:
    """One kind: ``word`` names it in JSON and tests, ``code`` is that of its diagnostics."""

    word: str
    code: str
    meaning: str


_ROWS = (
    FaultClass("wide-counter", "TG072", "a counter or a threshold does not fit INT32"),
    FaultClass("defer-misuse", "TG071", "a deferred wait outside of what the runtime can keep"),
    FaultClass("mixed-set-add", "TG063", "a Set may overwrite credits that were added"),
    FaultClass("eq-on-counter", "TG064", "a fast peer may push the counter past the value"),
    FaultClass("deadlock", "TG051", "ranks wait for each other in a circle"),
    FaultClass("unsatisfiable-wait", "TG060", "fewer credits are ever given than the wait asks for"),
    FaultClass("wrong-cell", "TG065", "the cell notified is not the cell waited for, or the signal has a wrong form"),
    FaultClass("divergent-barrier", "TG066", "some ranks pass a barrier that others do not reach"),
    FaultClass("stale-signal", "TG062", "a wait passes on a credit that an earlier wait has taken, or on none"),
    FaultClass("credit-leak", "TG061", "a cell that is waited for is not zero at the end"),
    FaultClass("notify-before-data", "TG068", "the notify is ahead of the write that it should release"),
    FaultClass("use-before-wait", "TG069", "the access is ahead of the wait that should guard it"),
    FaultClass("unordered", "TG067", "two ranks touch the same bytes, one writes, and no path orders them"),
    FaultClass("shared-line", "TG070", "scalar stores or Set notifies of several ranks fall on one 64-byte line"),
    FaultClass("missing-marker", "TG073", "a cacheinvalid or fence is missing where the program places them itself"),
    FaultClass("doubled-marker", "TG075", "a cacheinvalid or fence repeats another, with nothing to do in between"),
    FaultClass("unchecked", "TG074", "the program cannot be unrolled, or not within the budget"),
)  # fmt: skip
#: By word, causes before their consequences: findings are reported in this order.
CLASSES = {row.word: row for row in _ROWS}
ORDER = {word: i for i, word in enumerate(CLASSES)}
