"""Tables that threads share: no key gets another's number, and nothing fails when entries are dropped meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Any, cast

import pytest
from tilegg.extract.memo import Memo, Solved
from tilegg.extract.price import Pricer
from tilegg.ir.dtypes import FP32
from tilegg.ir.types import tile
from tilegg.rewrite.graph import Graph
from tilegg.rules.target import load_target
from tilegg.rules.terms import rest_code, rest_of


@pytest.fixture(autouse=True)
def hasty() -> Iterator[None]:
    """Switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], object], threads: int = 8) -> list[BaseException]:
    """Run ``work`` in threads that start at once, and return what they raised."""
    start, problems = Barrier(threads), []

    def run(k: int) -> None:
        start.wait()
        try:
            work(k)
        except BaseException as problem:
            problems.append(problem)

    running = [Thread(target=run, args=(k,)) for k in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return problems


def test_memo_drops_entries_that_others_look_up() -> None:
    memo, solved = Memo(2), cast(Solved, object())

    def work(k: int) -> None:
        for i in range(20_000):
            memo.get(i * k % 5)
            memo.put(i % 5, solved, [])

    assert together(work) == [] and len(memo) == 2


class _Slow:
    """A key that lets other threads run while a table looks for it."""

    def __init__(self, name: object) -> None:
        self.name = name

    def __hash__(self) -> int:
        return sum(range(20)) + hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Slow) and self.name == other.name


def test_no_two_types_get_one_number() -> None:
    pricer = Pricer(None)
    kinds: list[Any] = [_Slow(i) for i in range(4000)]
    assert together(lambda k: [pricer._number(t) for t in (kinds if k % 2 else kinds[::-1])]) == []
    assert len(set(pricer._numbers.values())) == len(kinds)


def test_numbers_are_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilegg.extract.price.MEMO_LIMIT", 0)
    pricer = Pricer(load_target("a5"))
    before = pricer._number(tile((1, 8), FP32))
    pricer.nodes(Graph([], [], [], [], []))
    assert pricer._numbers == {} and pricer._number(tile((1, 16), FP32)) > before


def test_attributes_of_terms_stay_their_own() -> None:
    codes: list[dict[int, int]] = [{} for _ in range(8)]

    def work(k: int) -> None:
        for i in range(2000):
            n = i if k % 2 else 1999 - i
            codes[k][n] = rest_code("tile.add", {"of_threads": n}, (), ())

    assert together(work) == []
    assert all(rest_of(code)[0] == {"of_threads": n} for known in codes for n, code in known.items())
    assert all(known == codes[0] for known in codes)
