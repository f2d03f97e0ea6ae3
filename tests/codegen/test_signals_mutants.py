"""Correct programs with one signal taken away or weakened: what a simulator can see going wrong is found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tilegg.codegen.signals import check_signals, replay
from tilegg.codegen.signals.settings import inputs_for
from tilegg.ir.program import Block, Const, For, If, Op, Program, Scope, Statement, While, walk
from tilegg.ir.ranks import explore
from tilegg.ir.text import parse

sys.path.insert(0, str(Path(__file__).parent))
from signal_cases import all_cases
from signal_suite.text import Case

SIGNALS = ("pld.system.notify", "pld.system.wait")
CORRECT = [c for c in all_cases() if c.word is None]
#: Every so many programs one is taken here.
STEP = 6


def mutants(program: Program) -> Iterator[tuple[Op, Program]]:
    """Yield the program without each notify and wait, and with each wait asking for one credit less."""
    for f in program.functions:
        for s in walk(f.body):
            if not isinstance(s, Op) or s.name not in SIGNALS:
                continue
            weaker = []
            if s.name == "pld.system.wait" and isinstance(s.operands[2], Const):
                less = replace(s.operands[2], value=int(s.operands[2].value) - 1)
                weaker.append(replace(s, operands=(*s.operands[:2], less)))
            for new in (None, *weaker):
                changed = [replace(g, body=_with(g.body, s, new)) if g is f else g for g in program.functions]
                yield s, replace(program, functions=tuple(changed))


def _with(block: Block, victim: Op, new: Op | None) -> Block:
    out: list[Statement] = []
    for s in block.statements:
        match s:
            case Op() if s is victim:
                out += [] if new is None else [new]
            case For() | Scope():
                out.append(replace(s, body=_with(s.body, victim, new)))
            case While():
                out.append(replace(s, head=_with(s.head, victim, new), body=_with(s.body, victim, new)))
            case If():
                out.append(replace(s, then=_with(s.then, victim, new), orelse=_with(s.orelse, victim, new)))
            case _:
                out.append(s)
    return Block(tuple(out))


def goes_wrong(program: Program, setting: object) -> bool:
    """Return whether some schedule hangs, or two leave different contents behind."""
    f = program.function(setting.function)
    found = explore(
        program, setting.ranks, inputs_for(f, setting), count=15, function=f.name, dims=dict(setting.dims),
        undefined="allow",
    )  # fmt: skip
    return found.failed is not None or not found.agree


@pytest.mark.parametrize("case", CORRECT[::STEP], ids=lambda c: c.name.replace(" ", "-"))
def test_a_signal_less(case: Case) -> None:
    program = parse(case.text, "case.py")
    for victim, mutant in mutants(program):
        report = check_signals(mutant, [min(case.ranks)])
        assert all(replay(mutant, f).shows for f in report.findings), victim
        if report.ok and report.checked:
            assert not goes_wrong(mutant, report.checked[0].setting), victim


def test_flags_that_two_ranks_set_and_none_awaits() -> None:
    """Which of the two comes last decides what the cell holds at the end."""
    (case,) = (c for c in CORRECT if c.name == "flags set and reset in turns")
    words = [{f.word for f in check_signals(m, [2]).findings} for _, m in mutants(parse(case.text, "case.py"))]
    assert all(words) and {"credit-leak"} in words
