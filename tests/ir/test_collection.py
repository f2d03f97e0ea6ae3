"""The collector of cycles is paused while programs are read, lowered and written, and runs again afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import tilegg
from tilegg.ir.collection import no_collection

TEXT = """
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    t = pl.load(x, [0, 0], [16, 64])
    return pl.store(pl.{what}(t), [0, 0], y)
"""


@pytest.fixture(params=[True, False], ids=["collecting", "not collecting"])
def collecting(request: pytest.FixtureRequest) -> Iterator[bool]:
    (gc.enable if request.param else gc.disable)()
    yield request.param
    gc.enable()


def test_it_is_as_before_afterwards(collecting: bool) -> None:
    seen = []
    program = tilegg.parse(TEXT.format(what="sin"))
    lowered = tilegg.lower(program, "a5", after=lambda name, thing: seen.append(gc.isenabled()), memo=None)
    assert tilegg.emit(lowered)
    assert seen and not any(seen) and gc.isenabled() is collecting


def test_it_is_as_before_after_an_error(collecting: bool) -> None:
    def failing(name: str, thing: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(tilegg.TileggError):
        tilegg.parse(TEXT.format(what="load"))
    with pytest.raises(ZeroDivisionError):
        tilegg.lower(tilegg.parse(TEXT.format(what="sin")), "a5", after=failing, memo=None)
    assert gc.isenabled() is collecting


def test_pauses_nest(collecting: bool) -> None:
    with no_collection():
        with no_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled() is collecting
