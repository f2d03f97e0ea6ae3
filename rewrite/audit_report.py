"""What an audit reports: how much it covered, by rule as well, and what disagreed."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Problems kept per audit; more say nothing new.
KEPT = 20


@dataclass(frozen=True)
class Disagreement:
    """One thing the audit found wrong: ``kind`` is node, type, fact, set or contract; ``rule`` by name."""

    kind: str
    rule: str
    text: str


@dataclass
class AuditReport:
    """What one audit covered.

    ``skipped``: runs in which a promise of the program did not hold. ``contracted``: nodes and values that differ from
    their class within what a contracted rule promises.
    """

    regions: int = 0
    classes: int = 0
    nodes: int = 0
    approx: int = 0
    contracted: int = 0
    facts: int = 0
    sets: int = 0
    runs: int = 0
    skipped: int = 0
    rules: dict[str, int] = field(default_factory=dict)
    problems: list[Disagreement] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when nothing disagreed."""
        return not self.problems

    def add(self, other: AuditReport) -> None:
        """Sum up another report."""
        for name in ("regions", "classes", "nodes", "approx", "contracted", "facts", "sets", "runs", "skipped"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for rule, count in other.rules.items():
            self.rules[rule] = self.rules.get(rule, 0) + count
        self.problems += other.problems
