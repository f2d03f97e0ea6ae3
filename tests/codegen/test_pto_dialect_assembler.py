"""The dialect against the assembler itself: random operations are accepted or refused alike.

Runs only where the assembler's ``pto-opt`` is installed (on the path, or named by ``PTO_OPT``).
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tilegg.codegen.pto.api import parse_pto, print_pto, verify_module, word
from tilegg.codegen.pto.dps import DpsRow
from tilegg.codegen.pto.families import ROWS

PTO_OPT = os.environ.get("PTO_OPT") or shutil.which("pto-opt")
pytestmark = pytest.mark.skipif(PTO_OPT is None, reason="the assembler is not installed")

INTEGERS = ["i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "si32"]
ELEMENTS = [*INTEGERS, "f16", "bf16", "f32", "f8E4M3FN", "!pto.hif8", "!pto.f4E2M1x2"]
#: Operations whose rules the dialect checks in part only.
PARTLY = re.compile(
    "tquant|tdequant|tsort32|tgather|tci|ttri|thist|tconcatidx|tget_|tprefetch|tsetval|trandom|tmatmul|tgemv|"
    "mgather|mscatter|textract|tinsert"
)
#: Stricter than the assembler on purpose: these need one element type throughout.
STRICTER = re.compile(r"tcolexpand[a-z]+: src0 and (src1|dst) must have the same element type")


def tile(rng: random.Random, dtype: str, shape: tuple[int, int], valid: tuple[int, int]) -> str:
    if rng.random() < 0.1:
        shape = rng.choice([(32, 64), (16, 64), (32, 8), (32, 1), (1, 16), (33, 64)])
    if rng.random() < 0.2:
        valid = rng.choice([shape[0], 1, 0, -1, 16]), rng.choice([shape[1], 1, 0, -1, 8, 32])
    rows, cols = (min(a, b) for a, b in zip(valid, shape, strict=True))
    parts = [rng.choice(["vec"] * 14 + ["mat", "acc"]), f"{shape[0]}x{shape[1]}x{dtype}"]
    if (rows, cols) != shape:
        parts.append(f"valid={'?' if rows < 0 else rows}x{'?' if cols < 0 else cols}")
    parts += ["blayout=col_major"] if rng.random() < 0.12 else []
    parts += ["slayout=row_major"] if rng.random() < 0.05 else []
    parts += ["pad=1"] if rng.random() < 0.15 else []
    return f"!pto.tile_buf<{', '.join(parts)}>"


def operand(rng: random.Random, row: DpsRow, name: str, kind: str, dtype: str, base: tuple[int, int]) -> str:
    """Return a random type for one operand, near what the operation wants."""
    if kind and kind in "$%+!":
        signless = dtype.removeprefix("s").removeprefix("u") if dtype[0] in "us" else dtype
        fitting = [signless] * 3 if not dtype.startswith("!") else []
        return {"$": rng.choice([*fitting, "f32", "i32"]), "!": "f32"}.get(kind, rng.choice(["i32", "i16"]))
    (rows, cols), head, valid = base, row.mnemonic[:4], base
    if name == "mask" or (row.mnemonic.startswith("tcmp") and name == "dst"):
        dtype = rng.choice(["ui8", "ui8", "i8", "i16"])
    elif row.mnemonic == "tcvt" and name == "dst":
        dtype = rng.choice(ELEMENTS)
    elif "Idx" in name or (head in ("trow", "tcol") and "arg" in row.mnemonic and name == "dst"):
        dtype = rng.choice(["i32", "i32", "ui32", "i16"])
    reduces = head in ("trow", "tcol") and "expand" not in row.mnemonic and name == "dst"
    spread = name == "src1" or (name == "src" and row.mnemonic.endswith("expand"))
    if head == "trow" and (reduces or ("expand" in row.mnemonic and spread)):
        if rng.random() < 0.4:
            return f"!pto.tile_buf<vec, {rows}x1x{dtype}, blayout=col_major>"
        base, valid = (rows, 32), (rows, rng.choice([1, 1, 8, 16, 32]))
    elif head == "tcol" and (reduces or ("expand" in row.mnemonic and spread)):
        base = valid = (1, cols)
    return tile(rng, dtype, base, valid)


def sample(rng: random.Random, row: DpsRow) -> tuple[list[str], str]:
    """Return argument types and the text of one operation."""
    dtype, base = rng.choice(ELEMENTS), rng.choice([(32, 64), (16, 32), (32, 128)])
    types: list[str] = []
    sides = []
    scalar_first = rng.random() < 0.5
    for side in row.form.split("->"):
        first = len(types)
        for item in side.split():
            if item.endswith("?") and rng.random() < 0.5:
                continue
            kind = item[0] if item[0] in "$%+!~#&@" else ""
            if kind == "~":
                kind = "$" if (item == "~src") == scalar_first else ""
            types.append(operand(rng, row, item.strip("$%+!~?"), kind, dtype, base))
        names = ", ".join(f"%a{i}" for i in range(first, len(types)))
        sides.append((names, ", ".join(types[first:])))
    entries = [
        f"{row.surface.get(name, name)} = {word(family, rng.choice(options))}"
        for name, family in row.attrs.items()
        if family and (options := word_options(family)) and rng.random() < 0.6
    ]
    if "isBinary" in row.attrs and len(types) == 3 and rng.random() < 0.7:
        entries.append(f"isBinary = {rng.choice(['true', 'false'])}")
    inside = f" {{{', '.join(entries)}}}" if entries else ""
    (ins, in_types), (outs, out_types) = sides
    before, after = (inside, "") if row.inside else ("", inside)
    return types, f"pto.{row.mnemonic} ins({ins}{before} : {in_types}) outs({outs} : {out_types}){after}"


def word_options(family: str) -> list[str]:
    known = {"cmp": ["lt", "eq"], "round_mode": ["RINT", "TRUNC"], "saturation_mode": ["ON", "OFF"]}
    return ["high_precision", "default", "default"] if family.endswith("_precision") else known.get(family, [])


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_random_operations_are_judged_as_the_assembler_judges_them(arch: str, tmp_path: Path) -> None:
    rng = random.Random(7)
    rows = [row for row in ROWS if not PARTLY.match(row.mnemonic)]
    chunks = []
    for i in range(3000):
        types, text = sample(rng, rows[i % len(rows)])
        args = ", ".join(f"%a{k}: {type_}" for k, type_ in enumerate(types))
        head = f'module attributes {{pto.target_arch = "{arch}"}} {{'
        chunks.append(f"{head}\nfunc.func @k({args}) {{\n  {text}\n  return\n}}\n}}")
    # Our own printing goes in, so that it is checked as well; each module takes the same number of lines.
    modules = [parse_pto(chunk) for chunk in chunks]
    source = tmp_path / "samples.pto"
    source.write_text("".join(f"{print_pto(module)}// -----\n" for module in modules))
    command = [str(PTO_OPT), "--split-input-file", str(source), "-o", os.devnull]
    log = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    height = print_pto(modules[0]).count("\n") + 1
    places = re.findall(r":(\d+) offset :(\d+):\d+: error: (.*)", log)
    theirs = {(int(a) + int(b) - 2) // height: message for a, b, message in places}
    ours = {i: found[0].message for i, module in enumerate(modules) if (found := verify_module(module))}
    differ = [
        (print_pto(modules[i]), ours.get(i), theirs.get(i))
        for i in range(len(modules))
        if (i in ours) != (i in theirs) and not STRICTER.search(ours.get(i, ""))
    ]
    assert 500 < len(theirs) < 2900
    assert differ == []
