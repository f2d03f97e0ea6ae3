"""``rules --verify``: the soundness checks of the chosen rules, and the proofs of those about integers and masks."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from ..rules.check import check_rule, summary
from ..rules.check_proofs import available
from ..rules.check_summary import Verified, by_kind, exceptions, kinds_table, verified
from ..rules.rule import Rule
from .console import Console, print_json
from .files import write


def verify_rules(chosen: Sequence[Rule], args: Namespace, console: Console) -> int:
    """Check rules and print the counts; exit code 1 when one is wrong, never applied, or refuted by Z3."""
    progress = console.progress("rules")
    found: list[Verified] = []
    for i, rule in enumerate(chosen):
        found.append(verified(rule, lambda r: check_rule(r, args.samples, args.seed)))
        if progress is not None:
            progress(i + 1, len(chosen))
    lost = exceptions(found)
    ok = all(v.check.ok for v in found) and not (available() and lost)
    if args.json:
        words = {"schema": 1, "ok": ok, "samples": args.samples, "seed": args.seed, "z3": available()}
        unproved = [{"name": name, "reason": reason} for name, reason in lost]
        print_json({**words, "kinds": by_kind(found), "not_proved": unproved, "rules": list(map(_row, found))})
    else:
        checks = [v.check for v in found]
        failures = "".join(f"{text}\n" for c in checks for text in c.failures)
        write(None, f"{summary(checks)}\n\n{kinds_table(found)}\n{failures}")
    return 0 if ok else 1


def _row(v: Verified) -> dict[str, Any]:
    c = v.check
    return {
        "name": c.rule,
        "ok": c.ok,
        "how": v.how,
        "instances": c.instances,
        "exhaustive": c.exhaustive,
        "values": c.values,
        "inexact": c.inexact,
        "proved": list(v.proof.dtypes) if v.proof is not None and v.proof.ok else [],
        "failures": list(c.failures),
    }
