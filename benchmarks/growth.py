"""How much larger each rule file makes the e-graphs of programs: their nodes with all rules, and without the file's."""

from __future__ import annotations

from functools import cache

from tilegg.ir.program import Program, inner_blocks, walk
from tilegg.rewrite.engine import Engine
from tilegg.rewrite.knowledge import Knowledge
from tilegg.rewrite.region import names_in_types, regions
from tilegg.rewrite.saturate import Plan, saturate
from tilegg.rules.rule import RULES
from tilegg.rules.target import load_target


def rule_files() -> tuple[str, ...]:
    """Return the names of the rule files."""
    return tuple(dict.fromkeys(r.file for r in RULES.values()))


@cache
def _engine(without: str) -> Engine:
    return Engine(r for r in RULES.values() if r.file != without)


def nodes(program: Program, arch: str, without: str = "") -> int:
    """Return the nodes of a program's saturated e-graphs, all rules of every contract in use but those of one file."""
    plan = Plan(load_target(arch), True, contracted=True)
    total = 0
    for f in program.functions:
        knowledge, fixed = Knowledge(f), names_in_types(f)
        blocks = [f.body, *(block for s in walk(f.body) for block in inner_blocks(s))]
        for region in [region for block in blocks for region in regions(block, fixed)]:
            total += saturate(region, knowledge, plan, _engine(without)).size
    return total


def growth(programs: dict[str, Program], arch: str, file: str, whole: dict[str, int]) -> tuple[float, str]:
    """Return how many times larger a file's rules make the program that they enlarge most, and its name.

    ``whole``: nodes with all rules, by program; kept for the next file.
    """
    for name, program in programs.items():
        if name not in whole:
            whole[name] = nodes(program, arch)
    return max((whole[name] / nodes(program, arch, file), name) for name, program in programs.items())
