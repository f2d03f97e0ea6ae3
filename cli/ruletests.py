"""``rules --verify``: the soundness checks of the chosen rules."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from ..rules.check import RuleCheck, check_rule, summary
from ..rules.rule import Rule
from .console import Console, print_json
from .files import write


def verify_rules(chosen: Sequence[Rule], args: Namespace, console: Console) -> int:
    """Check rules and print the counts; exit code 1 when one is wrong or never applied."""
    progress = console.progress("rules")
    checks: list[RuleCheck] = []
    for i, rule in enumerate(chosen):
        checks.append(check_rule(rule, args.samples, args.seed))
        if progress is not None:
            progress(i + 1, len(chosen))
    ok = all(c.ok for c in checks)
    if args.json:
        rows = [_row(c) for c in checks]
        print_json({"schema": 1, "ok": ok, "samples": args.samples, "seed": args.seed, "rules": rows})
    else:
        write(None, summary(checks) + "\n" + "".join(f"{text}\n" for c in checks for text in c.failures))
    return 0 if ok else 1


def _row(c: RuleCheck) -> dict[str, Any]:
    return {
        "name": c.rule,
        "ok": c.ok,
        "instances": c.instances,
        "exhaustive": c.exhaustive,
        "values": c.values,
        "inexact": c.inexact,
        "failures": list(c.failures),
    }
