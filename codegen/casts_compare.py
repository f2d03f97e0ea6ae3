"""Scalar casts of a program, side by side in the four designs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..ir.dtypes import BOOL, DType
from ..ir.program import Function, Op, Value, walk
from ..ir.rounding import effective, parse_mode
from ..ir.types import ScalarType
from .casts_designs import DESIGNS, NONZERO, TITLES, Cast, CastProgram, own_mode, print_design


def carrier_of(dtype: DType) -> str:
    """Return the signless carrier of a dtype; empty where the designs have none."""
    if dtype is BOOL or (dtype.is_int and dtype.kind != "index" and dtype.bits >= 8):
        return f"i{dtype.bits}"
    return {"INDEX": "index", "FP16": "f16", "BF16": "bf16", "FP32": "f32"}.get(dtype.name, "")


def program_of(f: Function) -> CastProgram:
    """Return the scalar casts of a function: values they read from elsewhere become parameters.

    A cast between integers of one width changes no bits of a signless carrier and is left out.
    """
    params: dict[str, str] = {}
    made: dict[str, str] = {}
    renamed: dict[str, str] = {}
    casts: list[Cast] = []
    for s in walk(f.body):
        if not isinstance(s, Op) or s.name != "scalar.cast" or not isinstance(s.operands[0], Value):
            continue
        source, t = s.operands[0], s.operands[0].type
        assert isinstance(t, ScalarType) and isinstance(s.result.type, ScalarType)
        src, dst = carrier_of(t.dtype), carrier_of(s.result.type.dtype)
        if not src or not dst:
            continue
        name = renamed.get(source.name, _plain(source.name))
        if src == dst:
            renamed[s.result.name] = name
            continue
        if name not in made:
            params[name] = src
        whole = s.result.type.dtype if t.dtype.is_float else t.dtype
        sign = "" if whole.is_float else "signed" if whole.signed and whole is not BOOL else "unsigned"
        result = _plain(s.result.name)
        made[result] = dst
        cast = Cast(result, name, src, dst, sign)
        casts.append(replace(cast, mode=_mode(cast, s, s.result.type.dtype)))
    return CastProgram(f.name, tuple(params.items()), tuple(casts))


def _mode(cast: Cast, s: Op, dst: DType) -> str:
    """Return the mode a cast has to say."""
    if dst is BOOL:
        return NONZERO
    own, mode = own_mode(cast), effective(parse_mode(s.attrs.get("mode", "none")), dst)
    return mode if own and mode != own else ""


def _plain(name: str) -> str:
    while "__" in name:
        name = name.replace("__", "_")
    return name


def comparison(p: CastProgram) -> dict[str, Any]:
    """Return the four texts of a program with counts, for showing and as JSON."""
    found = []
    for design in DESIGNS:
        text = print_design(p, design)
        body = text.splitlines()[1:-1]
        ops = [line.split(" = ")[1].split()[0] for line in body]
        found.append({
            "design": design, "title": TITLES[design], "text": text, "operations": len(ops),
            "distinct": sorted(set(ops)), "bridges": sum(op.startswith("builtin.") for op in ops),
            "extra": len(ops) - len(p.casts),
        })  # fmt: skip
    return {"schema": 1, "function": p.name, "casts": len(p.casts), "designs": found}


def comparison_text(found: dict[str, Any]) -> str:
    """Return the comparison as text."""
    parts = [f"{found['function']}: {found['casts']} casts\n"]
    for d in found["designs"]:
        parts.append(
            f"\ndesign {d['design']}: {d['title']} ({d['operations']} operations of {len(d['distinct'])} kinds, "
            f"{d['bridges']} bridges, {d['extra']} more than casts)\n{d['text']}"
        )
    return "".join(parts)
