"""What an operation that was not chosen would need: a fact, a literal of another kind, a looser contract.

Rules that would make the operation are looked up by their right sides; where a left side fits a value of the e-graph,
the conditions that fail say what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..rules.computed import COMPUTED
from ..rules.facts import FACTS, FROM_ANALYSIS, OF_LITERALS
from ..rules.rule import RULES, Condition, Pattern, Rule, Term, Var
from .derive import Bindings, Deriver, Tired
from .kbest import class_name
from .lower import lower
from .lowered import FunctionReport, Lowered, RegionResult

#: Answers of one kind that are given.
_MOST = 6
_LACKING = "the rules lack it: none makes it of other operations, so that it stands only where it is written"
_LOOSE = "under the contract contracted"


def needs(lowered: Lowered, wanted: set[str], used: bool) -> list[str]:
    """Return what is missing for the wanted operations, a line for each value of the program and rule.

    ``used``: the program has them elsewhere, so that it need not be said that nothing makes them.
    """
    rules = [r for r in RULES.values() if r.phase == "normalise" and wanted & set(_made(r.rhs))]
    if not rules:
        return [] if used else [f"  {_LACKING}"]
    found: dict[str, None] = {}
    for f in lowered.functions:
        for result in f.regions:
            found.update(dict.fromkeys(_in_region(lowered, f, result, rules)))
    lines = list(found)
    if not lines and used:
        return []
    if not lines:
        names = ", ".join(r.name for r in rules[:_MOST]) + (", ..." if len(rules) > _MOST else "")
        return [f"  the rules that make it fit nothing that the program computes: {names}"]
    more = [f"  and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return [*lines[:_MOST], *more, *_looser(lowered, lines)]


def _looser(lowered: Lowered, lines: list[str]) -> Iterator[str]:
    """Yield what the program would cost under the looser contract, where that is what is missing."""
    if lowered.target is not None and any(_LOOSE in line for line in lines):
        path, objective = str(lowered.target.path), lowered.objective
        other = lower(lowered.source, path, objective=objective, contract="contracted").totals
        yield (
            f"  under that contract the program takes {other.cycles:.0f} cycles and {other.instructions} instructions, "
            f"now {lowered.totals.cycles:.0f} and {lowered.totals.instructions}"
        )


def _in_region(lowered: Lowered, f: FunctionReport, result: RegionResult, rules: Iterable[Rule]) -> Iterator[str]:
    deriver = Deriver(result, lowered.target)
    try:
        for rule in rules:
            for c in dict.fromkeys(result.graph.op_class):
                for node in result.graph.classes[c]:
                    for bound in deriver.fitting(rule, node):
                        yield from _said(lowered, f, result, rule, c, bound, deriver.failing(rule, bound))
    except Tired:
        yield "  and perhaps more: the search was given up"


def _said(
    lowered: Lowered, f: FunctionReport, result: RegionResult, rule: Rule, c: int, bound: Bindings,
    failing: list[Condition],
) -> Iterator[str]:  # fmt: skip
    where = f"  {f.name}, {_place(result, c)}: {rule.name} would give it"
    if rule.contract == "contracted" and lowered.contract != "contracted":
        also = f" and {_condition(result, failing[0], bound)}" if failing else ""
        yield f"{where} {_LOOSE} ({rule.reason}){also}"
    elif failing:
        yield f"{where}, but needs {' and '.join(_condition(result, x, bound) for x in failing)}"


def _place(result: RegionResult, c: int) -> str:
    name = class_name(result, c)
    span = next((op.span for op in result.region.ops if op.result.name == name), None)
    return f"{name}{f' line {span.line}' if span else ''}"


def _condition(result: RegionResult, condition: Condition, bound: Bindings) -> str:
    """Return a condition in words: what must be so of which value, and what is known of it."""
    if condition.relation == "!=":
        return "two of its parts to differ"
    table = COMPUTED.get(condition.relation)
    subject = condition.args[0] if condition.args else None
    c = _class_of(result, subject, bound)
    name = class_name(result, c) if c is not None else ""
    if table is not None:
        return f"another literal than {name}: {table.meaning}"
    meaning = FACTS[condition.relation][1]
    if condition.relation in OF_LITERALS and condition.relation not in FROM_ANALYSIS:
        return f"{name or 'an operand'} to be {meaning}"
    if condition.relation not in FROM_ANALYSIS:
        return f"the target or its operands to have another form: {meaning}"
    values = result.graph.values.get(c) if c is not None else None
    known = f"; known is {values}" if values is not None else ""
    promise = "a range without 0" if condition.relation == "one_zero" else "it"
    of = f" of {name}" if name else ""
    return f"the fact {condition.relation}{of}: {meaning}{known}; tile.assume can promise {promise}"


def _class_of(result: RegionResult, subject: object, bound: Bindings) -> int | None:
    """Return the class that a condition is about: of a value variable, or of an operation that the left side met."""
    if isinstance(subject, Term):
        node = bound.get(subject)
        return next((c for c, nodes in enumerate(result.graph.classes) if any(n is node for n in nodes)), None)
    return bound.get(subject.name) if isinstance(subject, Var) and subject.kind == "value" else None


def _made(p: Pattern) -> Iterator[str]:
    if isinstance(p, Term):
        yield p.op
        for child in p.children:
            yield from _made(child)
