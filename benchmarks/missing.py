"""What a kernel's remaining vector cycles are spent on, and which instructions would have to exist to save more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from baselines import TRANSFERS
from tilegg.extract.lowered import Instruction, Lowered


@dataclass(frozen=True)
class Missing:
    """What a kernel lacks: lines to print, and the pairs of neighbours that would have to be one instruction."""

    lines: list[str]
    pairs: Counter[str]


def missing(lowered: Lowered, ratio: float, goal: float) -> Missing:
    """Return the operations that cost most, what the assembler lacks, and what would reach the goal.

    ``ratio`` is the kernel's vector cycles to the fixed lowering's. An instruction that does the work of two
    neighbours is taken to cost what the dearer of them does, as the fused instructions of the hardware do.
    """
    ops = [i for f in lowered.functions for i in f.instructions if i.count and i.op.name not in TRANSFERS]
    total = sum(i.cycles for i in ops) or 1.0
    spent: Counter[str] = Counter()
    for i in ops:
        spent[_name(i)] += round(i.cycles)
    lines = ["left: " + ", ".join(f"{name} {cycles / total:.0%}" for name, cycles in spent.most_common(3))]
    lacks = _lacking(ops)
    lines += [f"instructions of the hardware that the assembler lacks: {counted(lacks)}"] if lacks else []
    pairs, reached = _wanted(ops, ratio, goal)
    if ratio > goal:
        what = f"{goal} needs" if reached <= goal else f"not even for every pair is there {goal}, but {reached:.3f};"
        lines.append(f"{what} one instruction for two: {counted(pairs) or 'no pair'}")
    return Missing(lines, pairs)


def counted(names: Counter[str], most: int | None = None) -> str:
    """Return ``2 x mul then add, 1 x ...``, the most frequent first."""
    return ", ".join(f"{count} x {name}" for name, count in names.most_common(most))


def _name(i: Instruction) -> str:
    return i.op.name.removeprefix("tile.")


def _makers(ops: list[Instruction]) -> dict[str, Instruction]:
    return {r.name: i for i in ops for r in i.op.results}


def _lacking(ops: list[Instruction]) -> Counter[str]:
    """Return the hardware's fused instructions that would do the work of neighbours, or nearly do it."""
    makers, found = _makers(ops), Counter[str]()
    for i in ops:
        inputs = {_name(makers[n]) for o in i.op.operands if (n := getattr(o, "name", "")) in makers}
        if i.op.name in ("tile.add", "tile.sub") and "mul" in inputs:
            found["tmuladddst"] += 1
        if i.op.name in ("tile.relu", "tile.maximums") and "add" in inputs:
            found["taddrelu"] += 1
    return found


def _wanted(ops: list[Instruction], ratio: float, goal: float) -> tuple[Counter[str], float]:
    """Return the pairs that would have to be one instruction, most gain first, and the ratio they would reach."""
    total = sum(i.cycles for i in ops) or 1.0
    makers = _makers(ops)
    uses = Counter(getattr(o, "name", "") for i in ops for o in i.op.operands)
    pairs = [
        (makers[n], i)
        for i in ops
        for o in i.op.operands
        if (n := getattr(o, "name", "")) in makers and uses[n] == 1
    ]
    pairs.sort(key=lambda p: -min(p[0].cycles, p[1].cycles))
    taken: set[int] = set()
    found: Counter[str] = Counter()
    for first, second in pairs:
        if ratio <= goal:
            break
        if taken.isdisjoint((id(first), id(second))):
            taken |= {id(first), id(second)}
            found[f"{_name(first)} then {_name(second)}"] += 1
            ratio -= ratio * min(first.cycles, second.cycles) / total
            total -= min(first.cycles, second.cycles)
    return found, ratio
