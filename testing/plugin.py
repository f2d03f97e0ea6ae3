"""The pytest plugin: fixtures that compare programs, and options that say how hard.

It is found by pytest through its entry point. Until a fixture of it is used, it imports nothing of tilegg: test runs
without tilegg programs neither get slower nor can it break them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..ir.equivalence import Report
    from .given import Given
    from .lowering import LoweringReport


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("tilegg", "equivalence of tile programs")
    group.addoption("--tilegg-inputs", metavar="N", type=_positive, default=64,
                    help="inputs drawn for each comparison of tile programs (default: 64)")  # fmt: skip
    group.addoption("--tilegg-seed", metavar="S", type=int, default=0, help="seed of these inputs (default: 0)")
    group.addoption("--tilegg-arch", metavar="TARGET", action="append", default=[],
                    help="a target to test lowerings for; may be repeated (default: all)")  # fmt: skip


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that take ``tilegg_arch`` once per target."""
    if "tilegg_arch" in metafunc.fixturenames:
        metafunc.parametrize("tilegg_arch", _targets(metafunc.config))


def _targets(config: pytest.Config) -> list[str]:
    chosen: list[str] = config.getoption("--tilegg-arch")
    if chosen:
        return list(dict.fromkeys(chosen))
    from ..rules.target import target_names

    return list(target_names())


def _defaults(config: pytest.Config) -> dict[str, Any]:
    return {"inputs": config.getoption("--tilegg-inputs"), "seed": config.getoption("--tilegg-seed")}


@pytest.fixture(scope="session")
def tilegg_equiv(pytestconfig: pytest.Config) -> Callable[..., Report]:
    """``tilegg_equiv(a, b, **options)``: ``tilegg.testing.assert_equivalent`` with the options of the command line."""

    def check(a: Given, b: Given, **options: Any) -> Report:
        __tracebackhide__ = True
        from .asserts import assert_equivalent

        return assert_equivalent(a, b, **{**_defaults(pytestconfig), **options})

    return check


@pytest.fixture(scope="session")
def tilegg_lowering(pytestconfig: pytest.Config) -> Callable[..., list[LoweringReport]]:
    """``tilegg_lowering(program, arch, **options)``: as ``tilegg.testing.assert_lowering_correct``.

    Without a target, for every one of ``--tilegg-arch``.
    """

    def check(program: Given, arch: str | list[str] | None = None, **options: Any) -> list[LoweringReport]:
        __tracebackhide__ = True
        from .asserts import assert_lowering_correct

        return assert_lowering_correct(
            program, arch or _targets(pytestconfig), **{**_defaults(pytestconfig), **options}
        )

    return check
