"""End-to-end audit of lowering: a lowered program computes what the source did, and the hardware computes that.

Source and lowered program run on the same hostile inputs: all outputs agree bit for bit, NaN payloads aside,
once the one conversion stands again where the faithful contract took an inexact road. The lowered program is
run once more with every cast as the target's conversion acts (its fixed round mode, its fixed saturation): that
must change nothing, whatever the contract. Where the contracted contract gave another program than the faithful one,
roundings may be left out, so that its outputs are not compared with the source's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..ir.compare import element
from ..ir.convert import same_bits
from ..ir.diagnostics import TileggError
from ..ir.dtypes import DType
from ..ir.inputs import Drawer, assumed_domains, dtypes_of
from ..ir.interp import execute
from ..ir.program import Block, Function, Op, Program, Statement, walk, with_blocks
from ..ir.rounding import effective
from ..rules.target import Target, load_target
from .faithful import exact_form
from .lower import lower
from .lowered import Lowered


@dataclass
class LoweringAudit:
    """What was covered: ``refused`` programs have no legal form; ``inexact`` ones took an inexact road.

    ``contracted`` ones may have fewer roundings than their source.
    """

    programs: int = 0
    refused: int = 0
    inexact: int = 0
    contracted: int = 0
    outputs: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when nothing disagreed."""
        return not self.problems

    def add(self, other: LoweringAudit) -> None:
        """Sum up another report."""
        for name in ("programs", "refused", "inexact", "contracted", "outputs", "skipped"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.problems += other.problems


def audit_lowering(
    program: Program, arch: str, seed: int = 0, contract: str = "exact", runs: int = 3, exact: bool = False
) -> LoweringAudit:
    """Lower a program of one function and compare its runs; ``exact`` asks for the proved optimum."""
    report = LoweringAudit(programs=1)
    try:
        lowered = lower(program, arch, contract=contract, exact=exact)
    except TileggError:
        report.refused = 1
        return report
    target = load_target(arch)
    inexact = any(i.inexact for f in lowered.functions for i in f.instructions)
    report.inexact = int(inexact)
    if inexact and contract == "exact":
        report.problems.append("an inexact instruction under the exact contract")
    if lowered.plain.legal and lowered.totals.cycles > lowered.plain.cycles * (1 + 1e-9):
        report.problems.append(f"{lowered.totals} is costlier than the plain lowering {lowered.plain}")
    if contract == "contracted" and lower(program, arch, exact=exact).program != lowered.program:
        report.contracted = 1
    _compare_runs(program, lowered, target, seed, runs, inexact, report)
    return report


def _compare_runs(
    program: Program, lowered: Lowered, target: Target, seed: int, runs: int, inexact: bool, report: LoweringAudit
) -> None:
    (f,) = program.functions
    (low,) = lowered.program.functions
    acting = as_hardware(low, target, report)
    exact = exact_form(lowered).functions[0] if inexact else None
    drawer = Drawer(f, dtypes_of(f), assumed_domains(f), {})
    rng = np.random.default_rng([seed, 2])
    for turn in range(runs):
        inputs = drawer.draw(rng, turn)
        want, kept = execute(program, f, inputs, {}, watch=True)
        if not kept:
            report.skipped += 1
            continue
        got, _ = execute(lowered.program, low, inputs, {})
        done, _ = execute(acting, acting, inputs, {})
        if report.contracted:
            pass
        elif exact is not None:
            put_back, _ = execute(exact, exact, inputs, {})
            _compare(f, want, put_back, "lowered, inexact roads put back", report)
        else:
            _compare(f, want, got, "lowered", report)
        _compare(f, got, done, "on the target", report)


def _compare(f: Function, want: dict[str, Any], got: dict[str, Any], what: str, report: LoweringAudit) -> None:
    if list(want) != list(got):
        report.problems.append(f"outputs {list(got)} where {list(want)} are due")
        return
    for name, expected in want.items():
        report.outputs += 1
        dtype = _dtype_of(f, name)
        if dtype is None or expected.shape != got[name].shape:
            report.problems.append(f"{what}: {name} has shape {got[name].shape}, not {expected.shape}")
            continue
        differ = ~same_bits(got[name], expected, dtype)
        if differ.any():
            at = tuple(int(i) for i in np.argwhere(differ)[0])
            found, due = (element(array, at, dtype) for array in (got[name], expected))
            report.problems.append(f"{what}: {name}{list(at)} is {found}, not {due}")


def _dtype_of(f: Function, name: str) -> DType | None:
    for p in f.params:
        if p.value.name == name:
            return getattr(p.value.type, "dtype", None)
    return None


# -- what the hardware does --------------------------------------------------------------------------------


def as_hardware(f: Function, target: Target, report: LoweringAudit) -> Function:
    """Return the function with every cast's mode and saturation replaced by those that act on the target."""
    for s in walk(f.body):
        if isinstance(s, Op) and s.name == "tile.cast" and _edge(s, target) is None:
            report.problems.append(f"{target.name} has no native cast for {s.result.name}")
            return f
    return replace(f, body=_acting_block(f.body, target))


def _acting_block(block: Block, target: Target) -> Block:
    return Block(tuple(_acting(s, target) for s in block.statements))


def _acting(s: Statement, target: Target) -> Statement:
    if isinstance(s, Op):
        return _acting_cast(s, target) if s.name == "tile.cast" else s
    return with_blocks(s, lambda block: _acting_block(block, target))


def _edge(op: Op, target: Target) -> Any:
    src, dst = op.operands[0].type.dtype, op.result.type.dtype  # type: ignore[union-attr]
    return target.cast(src.name, dst.name)


def _acting_cast(op: Op, target: Target) -> Op:
    edge = _edge(op, target)
    dst: DType = op.result.type.dtype  # type: ignore[union-attr]
    asked = op.attrs.get("saturation_mode")
    clamps = asked == "on" if asked is not None else not dst.is_float
    if not dst.is_float and not edge.saturation_control:
        clamps = edge.saturation == "on"
    mode = effective(edge.effective_mode(op.attrs.get("mode", "round")), dst)
    return replace(op, attrs={**op.attrs, "mode": mode, "saturation_mode": "on" if clamps else "off"})
