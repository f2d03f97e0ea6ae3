"""The pytest plugin, run by pytest in a folder of its own."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import pytest
from testing_kernels import cast

SAME = (cast("FP32", "BF16", "FP32"), cast("FP32", "BF16", "FP32", "BF16", "FP32"))
OTHER = cast("FP32", "BF16 round", "FP32")


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with three programs as files."""
    for name, text in zip(("a", "b", "c"), (*SAME, OTHER)):
        (pytester.path / f"{name}.py").write_text(text)
    return pytester


def test_pytest_finds_it() -> None:
    assert [e.value for e in entry_points(group="pytest11") if e.name == "tilegg"] == ["tilegg.testing.plugin"]


def test_equal_and_different_programs(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        """
        def test_equal(tilegg_equiv):
            assert tilegg_equiv("a.py", "b.py").runs == 7

        def test_different(tilegg_equiv):
            tilegg_equiv("a.py", "c.py")

        def test_own_options(tilegg_equiv):
            report = tilegg_equiv("a.py", "b.py", inputs=3, seed=1)
            assert (report.runs, report.seed) == (3, 1)
        """
    )
    result = folder.runpytest_subprocess("--tilegg-inputs=7", "--tilegg-seed=5")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*NotEquivalent: the programs differ under exact*",
            "*x[[]*[]] = *",
            "*expected *, got * ulp apart)",
            "*inputs = {'x': elements_of('FP32', (16, 64), 0x0, at=*",
        ]
    )
    result.stdout.no_fnmatch_line("*compare_programs(*")


def test_lowerings_for_the_chosen_targets(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        """
        def test_all(tilegg_lowering):
            print("all:", [r.lowered.arch for r in tilegg_lowering("a.py")])

        def test_each(tilegg_lowering, tilegg_arch):
            (report,) = tilegg_lowering("a.py", tilegg_arch, contract="exact")
            print("each:", report.lowered.arch, report.functions["k"].runs)
        """
    )
    result = folder.runpytest_subprocess("-s", "-v", "--tilegg-inputs=2")
    result.assert_outcomes(passed=3)
    each = [f"*test_each[[]{arch}[]]*{arch} 2*" for arch in ("a2a3", "a5")]
    result.stdout.fnmatch_lines(["*all: [[]'a2a3', 'a5'[]]*", *each])
    result = folder.runpytest_subprocess("-s", "-v", "--tilegg-inputs=2", "--tilegg-arch=a5", "--tilegg-arch=a5")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*all: [[]'a5'[]]*", "*test_each[[]a5[]]*"])


def test_programs_that_do_not_verify_are_diagnosed(folder: pytest.Pytester) -> None:
    (folder.path / "a.py").write_text(SAME[0].replace("pl.BF16", "pl.BF17"))
    folder.makepyfile("def test_it(tilegg_lowering):\n    tilegg_lowering('a.py', 'a5')\n")
    result = folder.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*a.py:7:*error[[]TG004[]]*BF17*"])


def test_wrong_options(folder: pytest.Pytester) -> None:
    folder.makepyfile("def test_it(tilegg_lowering):\n    tilegg_lowering('a.py')\n")
    assert folder.runpytest("--tilegg-inputs=0").ret == pytest.ExitCode.USAGE_ERROR
    result = folder.runpytest_subprocess("--tilegg-arch=a7")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*TG040*a7*"])


def test_other_test_runs_load_nothing_of_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing_heavy():
            heavy = {"numpy", "egglog", "xdsl", "highspy", "networkx", "ml_dtypes", "hypothesis.strategies"}
            assert not heavy & set(sys.modules)
            loaded = sorted(m for m in sys.modules if m.split(".")[0] == "tilegg")
            assert loaded == ["tilegg", "tilegg.testing", "tilegg.testing.plugin"]
        """
    )
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    pytester.run(*command).assert_outcomes(passed=1)


def test_the_options_are_in_the_help(pytester: pytest.Pytester) -> None:
    options = ("--tilegg-inputs=N", "--tilegg-seed=S", "--tilegg-arch=TARGET")
    pytester.runpytest("--help").stdout.fnmatch_lines([f"*{o}*" for o in options])
