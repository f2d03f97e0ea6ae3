"""Runs shared by threads, processes and a cluster: the report is always the one a single process gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import pytest
from testing_kernels import cast, kernel
from tilegg import TileggError
from tilegg.testing import Bar, NotEquivalent, as_program, assert_equivalent, assert_lowering_correct, compare_programs

EQUAL = (cast("FP16", "INT8"), cast("FP16", "INT32", "FP16", "INT8"))
#: Differ from turn to turn in what is found first.
WRONG = (cast("FP32", "FP16", "INT8"), cast("FP32", "INT8"))


class Lazy(Executor):
    """Does nothing until a result is asked for; then it does everything that is left, the last first."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.done = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = _Asked(self)
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def work(self) -> None:
        while self.waiting:
            future, call = self.waiting.pop()
            if future.set_running_or_notify_cancel():
                self.done += 1
                try:
                    future.set_result(call())
                except BaseException as problem:
                    future.set_exception(problem)


class _Asked(Future):  # type: ignore[type-arg]
    def __init__(self, executor: Lazy) -> None:
        super().__init__()
        self.executor = executor

    def result(self, timeout: float | None = None) -> Any:
        self.executor.work()
        return super().result(timeout)


class Eager(Executor):
    """Does a part when its result is asked for."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        outer = self

        class Late(Future):  # type: ignore[type-arg]
            def result(self, timeout: float | None = None) -> Any:
                outer.calls += 1
                return fn(*args, **kwargs)

        return Late()


@contextmanager
def dask_cluster() -> Iterator[Executor]:
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "processes": True}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client.get_executor()


EXECUTORS = {
    "threads": lambda: ThreadPoolExecutor(3),
    "processes": lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")),
    "dask": dask_cluster,
    "backwards": Lazy,
}


@pytest.fixture(scope="module", params=list(EXECUTORS))
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    with EXECUTORS[request.param]() as made:
        yield made


def reports(executor: Executor | None) -> list[dict[str, Any]]:
    """Return reports of different tests as JSON."""
    equal, wrong = (tuple(map(as_program, pair)) for pair in (EQUAL, WRONG))
    found = [
        compare_programs(*equal, exhaustive=True, executor=executor),
        compare_programs(*equal, inputs=300, seed=9, executor=executor),
        compare_programs(*wrong, inputs=100, seed=4, facts={"x": (100, 1000)}, executor=executor),
        compare_programs(*wrong, exhaustive=True, facts={"x": (1, 1.5)}, limit=1 << 13, executor=executor),
    ]
    assert [r.equal for r in found] == [True, True, False, False]
    return [{**r.to_json(), "text": r.render()} for r in found]


@pytest.fixture(scope="module")
def expected() -> list[dict[str, Any]]:
    return reports(None)


def test_the_report_does_not_depend_on_the_executor(executor: Executor, expected: list[dict[str, Any]]) -> None:
    assert reports(executor) == expected


def test_lowerings_are_shared_too(executor: Executor) -> None:
    (report,) = assert_lowering_correct(EQUAL[1], "a5", exhaustive=True, executor=executor)
    assert report.functions["k"].cases == 65536


def test_an_error_of_the_first_program_comes_back_with_its_diagnostics(executor: Executor) -> None:
    text = kernel("FP32", "FP32", "v = pl.tensor.read(x, [pl.tensor.dim(x, 0), 0])", "r = pl.tile.adds(t, v)")
    with pytest.raises(TileggError) as caught:
        assert_equivalent(text, text, inputs=5, executor=executor)
    assert caught.value.diagnostics[0].code == "TG032"


def test_nothing_is_done_after_a_difference() -> None:
    late = Eager()
    with pytest.raises(NotEquivalent) as caught:
        assert_equivalent(*WRONG, inputs=200, executor=late)
    assert late.calls == caught.value.report.runs < 20


def test_progress_is_told_in_order() -> None:
    seen: list[tuple[int, int]] = []
    assert_equivalent(*EQUAL, exhaustive=True, executor=Lazy(), progress=lambda *at: seen.append(at))
    assert seen == [(i, 64) for i in range(1, 65)]
    seen.clear()
    wide = cast("FP32", "FP16", shape=(64, 512))
    assert_equivalent(wide, wide, exhaustive=True, facts={"x": (1, 3)}, progress=lambda *at: seen.append(at))
    assert seen[-1] == (385, 385) and len(seen) == 193


class Terminal:
    def __init__(self, tty: bool) -> None:
        self.text, self.tty = "", tty

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return self.tty


def test_the_bar_shows_on_a_terminal_and_goes_away() -> None:
    stream = Terminal(True)
    bar = Bar("runs", stream)  # type: ignore[arg-type]
    for done in range(1, 1001):
        bar(done, 1000)
    assert "runs [############............] 500/1,000, 0 s left" in stream.text
    assert stream.text.count("\r") <= 102 and stream.text.endswith("\r\x1b[K")
    quiet = Terminal(False)
    Bar("runs", quiet)(1, 2)  # type: ignore[arg-type]
    assert quiet.text == ""
