"""How well the prices reproduce published model cycles and profiled cycles.

Usage: python benchmarks/bench_cost.py REFERENCE.json [--list]

The reference holds ``reference`` (records of published cost models) and ``measured`` (profiled cycles).
Every model record is priced twice: by its own model as the target carries it, and by the price in use.
Records off by more than 5 % are grouped with the reason that the target file states.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tilegg.ir.diagnostics import TileggError
from tilegg.rules.cost import Instr, cycles, price
from tilegg.rules.target import Target, load_target

TOLERANCE = 0.05
DTYPE = {
    "f32": "FP32", "f16": "FP16", "bf16": "BF16", "i8": "INT8", "u8": "UINT8", "i16": "INT16",
    "u16": "UINT16", "i32": "INT32", "u32": "UINT32", "i64": "INT64", "f8e4m3": "FP8E4M3FN",
    "e4m3": "FP8E4M3FN", "f8e5m2": "FP8E5M2", "e5m2": "FP8E5M2", "hf8": "HF8", "HFloat8": "HF8",
    "f4e2m1x2": "FP4", "fp4_e2m1": "FP4", "f4e1m2x2": "FP4E1M2", "fp4_e1m2": "FP4E1M2",
}  # fmt: skip
MODELS = {"a2a3_cce_stub": "stub", "a2a3_fit": "fit", "a5_fit": "fit", "a5_vfsim_handbuilt": "vfsim"}
#: Register loops that are no tile operation, and the names under which the simulator records some that are.
BODIES = re.compile(r"fused_|_hoisted|_nomaskload")
ALIASES = {"tmov_copy": "tmov", "tdivs_tilescalar": "tdivs", "tdivs_scalartile": "tdivs", "tloadnd": "tload"}
MATRIX = re.compile(r"tmatmul|tsort|tloadconv|tloaddn")


def instruction(record: dict[str, Any], target: Target) -> Instr:
    """The instruction a record of either list describes."""
    op = record["op"].lower()
    op = ALIASES.get(op, op)
    types = tuple(DTYPE[name] for name in record["dtypes"])
    if "template_ints" in record and op == "tcvt":
        types = types[::-1]
    rows, cols, phys = _extent(record, types, target)
    return Instr(op, types, rows, cols, phys, _attributes(record, op))


def _extent(record: dict[str, Any], types: tuple[str, ...], target: Target) -> tuple[int, int, int]:
    if "loop_iters" in record:
        lanes = int(target.figure("repeat_bytes")) * 8 // (32 if types[-1] == "FP32" else 16)
        return 1, record["loop_iters"] * lanes, record["loop_iters"] * lanes
    if "case" in record:
        rows, cols = (int(number) for number in re.findall(r"(\d+)x(\d+)", record["case"])[0])
        return rows, cols, cols
    shape = record["valid"] if "valid" in record else record["shape"]
    return shape[0], shape[1], record.get("tile", shape)[1]


def _attributes(record: dict[str, Any], op: str) -> tuple[tuple[str, object], ...]:
    found: list[tuple[str, object]] = []
    if op in ("tcmp", "tcmps") and record.get("mode"):
        found.append(("cmp", record["mode"].lower()))
    if record.get("tmp"):
        found.append(("saturation", "off"))
    if record.get("params") == "high_precision":
        found.append(("precision", "high"))
    return tuple(found)


def near(value: float, wanted: float) -> bool:
    """Within the tolerance of the wanted figure."""
    return abs(value - wanted) <= TOLERANCE * wanted


def off(instr: Instr, record: dict[str, Any], value: float) -> str:
    """One record that is off: dtypes, valid shape / physical columns, recorded cycles and the price."""
    strided = f"/{instr.phys_cols}" if instr.phys_cols != instr.cols else ""
    shape = f"{instr.rows}x{instr.cols}{strided}"
    return f"{'->'.join(instr.dtypes)} {shape}: recorded {record['cycles']:g}, priced {value:.0f}"


def why_off(target: Target, instr: Instr, record: dict[str, Any]) -> str:
    """The reason for leaving a record: the target file's, or that two sources disagree."""
    if record["cycles"] == 0:
        return "the record says 0 cycles"
    found = price(target, instr)
    if found.differs:
        return found.differs
    return f"the sources disagree: this price follows {found.source!r}"


def check_models(records: list[dict[str, Any]], listing: bool) -> None:
    """Model records by their own model and by the price in use."""
    own, used, total = Counter[str](), Counter[str](), Counter[str]()
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    bodies = unsupported = 0
    for record in records:
        target, name = load_target(record["arch"]), record["model"]
        instr = instruction(record, target)
        total[name] += 1
        own[name] += near(cycles(target, instr, MODELS[name]), record["cycles"])
        if BODIES.search(instr.op):
            bodies += 1
            continue
        try:
            value = cycles(target, instr)
        except TileggError:
            unsupported += 1
            continue
        if near(value, record["cycles"]):
            used[name] += 1
        else:
            groups[name, instr.op, why_off(target, instr, record)].append(off(instr, record, value))
    count = sum(total.values())
    mine, ours = sum(own.values()), sum(used.values())
    print(f"model records: {count}; within 5 % by their own model: {mine} ({mine / count:.1%})")
    tiles = count - bodies - unsupported
    print(f"of {tiles} tile operations within 5 % by the price in use: {ours} ({ours / tiles:.1%})")
    print(f"  (as the models contradict one another, at most {most_possible(records)} could be)")
    print(f"  ({bodies} records are register loops, not tile operations; {unsupported} have no price)")
    for name in total:
        print(f"  {name}: {total[name]} records, own model {own[name]}, price in use {used[name]}")
    print_groups(groups, listing)


def most_possible(records: list[dict[str, Any]]) -> int:
    """How many tile-operation records one price per instruction could satisfy: the models contradict."""
    wanted: dict[tuple[str, Instr], list[float]] = defaultdict(list)
    for record in records:
        instr = instruction(record, load_target(record["arch"]))
        if not BODIES.search(instr.op):
            wanted[record["arch"], instr].append(record["cycles"])
    best = 0
    for values in wanted.values():
        tries = [value * factor for value in values for factor in (1, 1 - TOLERANCE, 1 + TOLERANCE)]
        best += max(sum(near(value, figure) for figure in values) for value in tries)
    return best


def check_measured(records: list[dict[str, Any]], listing: bool) -> None:
    """Profiled cycles by the price in use."""
    good, total, skipped = Counter[str](), Counter[str](), Counter[str]()
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for record in records:
        arch, op = record["arch"], record["op"].lower()
        if MATRIX.search(op) or "5D" in op.upper():
            skipped[arch] += 1
            continue
        target = load_target(arch)
        instr = instruction(record, target)
        value = cycles(target, instr)
        total[arch] += 1
        if near(value, record["cycles"]):
            good[arch] += 1
        else:
            groups[arch, instr.op, why_off(target, instr, record)].append(off(instr, record, value))
    for arch in total:
        share = good[arch] / total[arch]
        print(f"profiled tile operations of {arch}: {total[arch]}; within 5 %: {good[arch]} ({share:.1%})")
        if skipped[arch]:
            print(f"  ({skipped[arch]} cube, sort and fractal-load records are out of scope)")
    print_groups(groups, listing)


def print_groups(groups: dict[tuple[str, str, str], list[str]], listing: bool) -> None:
    """The records that are off, by model, operation and reason."""
    for (name, op, reason), lines in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
        print(f"    {name} {op}: {len(lines)} off, e.g. {lines[len(lines) // 2]}: {reason}")
        for line in lines if listing else ():
            print(f"        {line}")


def check_speed() -> None:
    """Time of a price, first and repeated."""
    target = load_target("a2a3")
    fresh = [Instr("tcvt", ("FP32", "FP16"), rows, 64, 64) for rows in range(1, 2001)]
    start = time.perf_counter()
    for instr in fresh:
        cycles(target, instr)
    miss = (time.perf_counter() - start) / len(fresh)
    start = time.perf_counter()
    for instr in fresh:
        cycles(target, instr)
    hit = (time.perf_counter() - start) / len(fresh)
    print(f"a price: {miss * 1e6:.1f} us the first time, {hit * 1e6:.2f} us from the memo")


def main() -> None:
    """Read the reference and print the report."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--list", action="store_true", help="print every record that is off")
    arguments = parser.parse_args()
    data = json.loads(arguments.reference.read_text())
    check_models(data["reference"], arguments.list)
    check_measured(data["measured"], arguments.list)
    check_speed()


if __name__ == "__main__":
    main()
