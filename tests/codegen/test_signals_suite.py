"""The signal check on the labelled suite: recall, false alarms, class and line, and the replay of every witness."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from tilegg.codegen.signals import CLASSES, SignalReport, check_signals, replay
from tilegg.codegen.signals.settings import inputs_for
from tilegg.ir.program import Program
from tilegg.ir.ranks import explore
from tilegg.ir.text import parse

sys.path.insert(0, str(Path(__file__).parent))
from signal_cases import all_cases
from signal_suite.text import Case

#: Programs are checked for all their numbers of ranks up to this one here, or their first; the benchmark takes all.
MOST_RANKS = 4


@dataclass(frozen=True)
class Seen:
    case: Case
    program: Program
    report: SignalReport

    @property
    def located(self) -> bool:
        """Whether the first finding has the class and blames the line of the label."""
        first = self.report.findings[0] if self.report.findings else None
        places = first.places() if first is not None else ()
        return first is not None and first.word == self.case.word and bool(places) and places[0].line in self.case.lines


def numbers(c: Case) -> list[int]:
    """Return the numbers of ranks a case is checked for here."""
    return [n for n in c.ranks if n <= MOST_RANKS] or [c.ranks[0]]


@pytest.fixture(scope="module")
def seen() -> list[Seen]:
    out = []
    for c in all_cases():
        program = parse(c.text, "case.py")
        out.append(Seen(c, program, check_signals(program, numbers(c))))
    return out


def test_the_suite_is_large_and_covers_every_class(seen: list[Seen]) -> None:
    words = Counter(s.case.word for s in seen)
    assert len(seen) >= 160 and words[None] >= len(seen) - words[None] >= 80
    assert {w for w in words if w} == set(CLASSES) - {"unchecked"}
    assert min(words.values()) >= 3


def test_every_fault_is_found(seen: list[Seen]) -> None:
    faulty = [s for s in seen if s.case.word]
    missed = [s.case.name for s in faulty if s.report.ok]
    assert len(missed) <= 0.02 * len(faulty), missed


def test_no_false_alarms(seen: list[Seen]) -> None:
    assert [(s.case.name, s.report.findings) for s in seen if s.case.word is None and not s.report.ok] == []


def test_correct_programs_run_alike_under_every_schedule(seen: list[Seen]) -> None:
    """The labels do not rest on the check: the simulator sees no hang, and the same contents whatever the order."""
    for s in seen:
        setting = s.report.checked[0].setting if s.case.word is None else None
        if setting is None:
            continue
        f = s.program.function(setting.function)
        given = inputs_for(f, setting)
        options = {"function": f.name, "dims": dict(setting.dims), "undefined": "allow"}
        found = explore(s.program, setting.ranks, given, count=6, **options)
        assert found.failed is None and found.agree, s.case.name


def test_class_and_line(seen: list[Seen]) -> None:
    faulty = [s for s in seen if s.case.word]
    wrong = [(s.case.name, [(f.word, f.places()[:1]) for f in s.report.findings]) for s in faulty if not s.located]
    assert len(wrong) <= 0.05 * len(faulty), wrong


def test_every_witness_replays(seen: list[Seen]) -> None:
    silent = [(s.case.name, f.word) for s in seen for f in s.report.findings if not replay(s.program, f).shows]
    assert silent == []


def test_correct_programs_have_certificates(seen: list[Seen]) -> None:
    for s in seen:
        certificate = s.report.certificate()
        assert (certificate is None) == (s.case.word is not None)
        if certificate is not None:
            assert certificate["ranks"] == sorted(numbers(s.case))
