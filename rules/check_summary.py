"""How rules were checked, summed up by kind: on every value, on samples, proved with Z3; and what is not proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .check import RuleCheck
from .check_proofs import Proof, available, prove, to_prove
from .rule import Rule


@dataclass(frozen=True)
class Verified:
    """One rule with its check on values and its proof (``None``: Z3 is missing, or there is nothing to prove)."""

    rule: Rule
    check: RuleCheck
    proof: Proof | None

    @property
    def kind(self) -> str:
        """The first word of the rule's name."""
        return self.rule.name.split(".")[0]

    @property
    def needs_proof(self) -> bool:
        """True for rules about integers and masks, unless their conditions admit no integers."""
        return to_prove(self.rule) and not self.floats

    @property
    def floats(self) -> bool:
        """True where the proof found that the rule is about floats only."""
        return self.proof is not None and self.proof.floats

    @property
    def proved(self) -> bool:
        """True when the rule is proved for the integer dtypes it takes."""
        return self.proof is not None and self.proof.ok

    @property
    def how(self) -> str:
        """In words: on every value of its sources, in all instances or some; on samples; proved."""
        c = self.check
        if c.exhaustive == c.instances and c.instances:
            words = "exhaustive"
        else:
            words = f"sampled, {c.exhaustive} of {c.instances} instances exhaustive" if c.exhaustive else "sampled"
        if not self.proved:
            return words
        assert self.proof is not None
        return f"{words}; proved for {', '.join(self.proof.dtypes)}"


def verified(rule: Rule, check: Callable[[Rule], RuleCheck]) -> Verified:
    """Check a rule and prove it, where Z3 is there and the rule can hold for integers."""
    proof = prove(rule) if available() and rule.bound is None else None
    if proof is not None and not proof.ok and not to_prove(rule):
        proof = None
    return Verified(rule, check(rule), proof)


def by_kind(found: Sequence[Verified]) -> list[dict[str, int | str]]:
    """Return one row a kind of rules, in order of appearance: how many, and how they were checked."""
    rows: dict[str, dict[str, int | str]] = {}
    for v in found:
        row = rows.setdefault(v.kind, {"kind": v.kind, **dict.fromkeys(_COUNTS, 0)})
        c = v.check
        whole = c.exhaustive == c.instances and c.instances > 0
        for name, count in zip(_COUNTS, (1, c.ok, c.instances, c.exhaustive, c.values, whole, v.proved)):
            row[name] = int(row[name]) + int(count)
    return list(rows.values())


_COUNTS = ("rules", "hold", "instances", "exhaustive", "values", "exhaustive_rules", "proved")


def exceptions(found: Sequence[Verified]) -> list[tuple[str, str]]:
    """Return the integer and mask rules that are not proved, each with the reason."""
    missing = "Z3 is not installed (pip install z3-solver)"
    return [
        (v.rule.name, v.proof.reason if v.proof is not None else missing)
        for v in found if v.needs_proof and not v.proved
    ]  # fmt: skip


def kinds_table(found: Sequence[Verified]) -> str:
    """Return the rows by kind as text, then which integer and mask rules are proved and which are not."""
    head = ("kind", "rules", "hold", "instances", "exhaustive", "values", "rules run whole", "proved with Z3")
    rows = [tuple(map(str, row.values())) for row in by_kind(found)]
    total = tuple(str(sum(int(row[i]) for row in rows)) for i in range(1, len(head)))
    rows.append(("total", *total))
    widths = [max(len(r[i]) for r in (head, *rows)) for i in range(len(head))]
    lines = [f"{r[0]:<{widths[0]}}  " + "  ".join(map(str.rjust, r[1:], widths[1:])) for r in (head, *rows)]
    needed = [v for v in found if v.needs_proof]
    others = sum(v.proved for v in found) - sum(v.proved for v in needed)
    lost = exceptions(found)
    lines.append(
        f"integer and mask rules: {len(needed)}, proved for every integer dtype they take: {len(needed) - len(lost)};"
        f" {others} other rules are proved where their tiles are integers"
    )
    lines += [f"  not proved: {name}: {reason}" for name, reason in lost]
    floats = [v.rule.name for v in found if v.floats]
    lines += [f"  about floats only, checked on values: {name}" for name in floats]
    return "\n".join(lines)
