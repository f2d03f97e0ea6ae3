"""Assertions for tests: that two programs are equal, that a lowering computes what the program says."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from ..ir.compare import output_dtypes
from ..ir.equivalence import Report
from ..ir.interp import entry
from ..ir.program import Program
from ..ir.types import PtrType, ScalarType, TensorType, TileType
from .assembly import check_assembly
from .exhaustive import LIMIT
from .fanout import Progress, compare_programs
from .given import Given, as_program
from .lowering import LoweringReport, check_lowering
from .reproduce import as_python


class NotEquivalent(AssertionError):
    """Two programs differ; ``report`` has the counterexample's inputs and both values."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


def assert_equivalent(
    a: Given,
    b: Given,
    *,
    contract: str = "exact",
    inputs: int = 64,
    seed: int = 0,
    facts: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
    function: str | None = None,
    exhaustive: bool = False,
    limit: int = LIMIT,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Report:
    """Fail with a small counterexample when two programs differ; return the report when they do not.

    ``a`` is the reference; both may be anything :func:`~tilegg.testing.given.as_program` takes. ``contract``: ``exact``
    (bit for bit; the sign of zero counts, the payload of NaN does not) or ``ulp:N``. ``inputs``: how many are drawn;
    ``exhaustive``: every input instead. ``facts``: what parameters may hold, ``(lo, hi)`` or ``"finite"`` by name;
    promises of ``a`` (``assume``) count too. ``dims``: dynamic dimensions. ``executor``: who does the runs (threads,
    processes, a cluster); the result does not depend on it. ``progress``: called with the runs done and their number.

    Raises :class:`NotEquivalent`; :class:`~tilegg.TileggError` for programs that do not verify, with the diagnostics.
    """
    __tracebackhide__ = True
    first, second = as_program(a, "the first program"), as_program(b, "the second program")
    report = compare_programs(
        first, second, contract=contract, inputs=inputs, seed=seed, facts=facts, dims=dims, function=function,
        exhaustive=exhaustive, limit=limit, executor=executor, progress=progress,
    )  # fmt: skip
    if not report.equal:
        raise NotEquivalent(f"{report.render()}\n{_again(report, first, function, ('a', 'b'))}", report)
    return report


def assert_lowering_correct(
    program: Given,
    arch: str | tuple[str, ...] | list[str] = "",
    *,
    objective: str = "cycles",
    contract: str = "faithful",
    within: str | None = None,
    assembly: bool = True,
    **options: Any,
) -> list[LoweringReport]:
    """Fail with a small counterexample when a lowered program computes something else than the program.

    ``program``: anything :func:`~tilegg.testing.given.as_program` takes. ``arch``: a target or several (default: all
    there are). ``objective`` and ``contract``: those of the lowering. Casts that are not exact and composites computed
    by recipes are put back first, since they differ on purpose; the report lists them. Recipes must keep the error they
    state on the same inputs. ``within``: how near results must be, ``exact`` (the default) or ``ulp:N``. The lowered
    program is also run with what the target's conversions do, and, unless ``assembly`` is false, written as assembly
    that must read back, verify and, executed on bytes, compute the same. Other options: see :func:`assert_equivalent`.

    Raises :class:`NotEquivalent`; ``AssertionError`` for a recipe beyond its bound; :class:`~tilegg.TileggError` for a
    program that does not verify, or that cannot be lowered or written for the target.
    """
    __tracebackhide__ = True
    from ..rules.target import target_names

    given = as_program(program)
    reports = []
    for name in [arch] if isinstance(arch, str) and arch else (arch or target_names()):
        report = check_lowering(given, name, objective=objective, contract=contract, within=within, **options)
        for what, found in report.failed():
            again = _again(found, given, options.get("function"), ("program", "lowered"))
            lines = f"{name}, {what}: {found.render()}", again, report.advice("within='{}'")
            raise NotEquivalent("\n".join(filter(None, lines)), found)
        if report.unknown:
            raise AssertionError("; ".join(report.unknown))
        if report.broken:
            where = (f"{m.use.span or m.use.function}: {m.render()}" for m in report.broken)
            raise AssertionError(f"{name}, a recipe does not keep its bound: " + "\n".join(where))
        if assembly:
            written = check_assembly(report.lowered, options.get("function"), facts=options.get("facts"),
                                     dims=options.get("dims"), seed=options.get("seed", 0))  # fmt: skip
            for kernel, found in written.executed.items():
                if not found.equal:
                    what = f"{name}, the lowered {kernel} and its assembly"
                    text = _again(found, report.lowered.program, kernel, ("lowered",))
                    raise NotEquivalent(f"{what}: {found.render()}\n{text}", found)
            report = replace(report, assembly=written)
        reports.append(report)
    return reports


def _again(report: Report, program: Program, function: str | None, names: tuple[str, ...]) -> str:
    """Return how to see the difference again."""
    found = report.counterexample
    assert found is not None
    f = entry(program, function)
    dtypes = {
        p.value.name: p.value.type.dtype for p in f.params
        if isinstance(p.value.type, TensorType | TileType | ScalarType | PtrType)
    }  # fmt: skip
    inputs = as_python(found, dtypes)
    lines = ["  to reproduce:"]
    if inputs is None:
        lines.append("    inputs = error.report.counterexample.inputs  # of the NotEquivalent raised")
    else:
        lines += ["    from tilegg.testing import elements_of", f"    inputs = {inputs}"]
    where = f", function={function!r}" if function else ""
    output = found.difference.output if found.difference else next(iter(output_dtypes(f)), "out")
    lines += [f"    tilegg.run({name}, inputs{where})[{output!r}]" for name in names]
    return "\n".join(lines)
