"""Reading programs of scalar casts back from the text of each design."""

from __future__ import annotations

import re

from ..ir.diagnostics import Span, TileggError, error
from .casts_designs import (
    COMPARISONS,
    NONZERO,
    WIDTHS,
    Cast,
    CastProgram,
    arith_names,
    category,
    check,
    is_float,
    rounding_name,
    said,
)

_HEAD = re.compile(r"func @(\w+)\((.*)\) \{")
_PARAM = re.compile(r"%(\w+): (\w+)")
_LINE = re.compile(r"%(\w+) = ([\w.]+) %(\w+)( signed| unsigned)?( \{\w+(?:, \w+)?\})? : (\w+) (?:->|to) (\w+)")
_SIGNED = re.compile(r"([su])i(\d+)")


class _Line:
    def __init__(self, text: str, number: int, file: str) -> None:
        self.span = Span(file, number, 1, number, max(2, len(text) + 1))
        found = _LINE.fullmatch(text.strip())
        if found is None:
            raise error("TG027", "not a cast", self.span)
        self.result, self.op, self.source, word, kept, self.src, self.dst = found.groups()
        words = (kept or "").strip(" {}").split(", ")
        self.word, self.kept = (word or "").strip(), words[0] == "unsigned"
        self.mode = ", ".join(words[1:] if self.kept else words)

    def fail(self, message: str) -> TileggError:
        return error("TG027", f"{self.op}: {message}", self.span)


def parse_design(text: str, design: int, file: str = "<casts>") -> CastProgram:
    """Return the program of a text in one of the four designs. Raises TG027 with the line, or what ``check`` raises."""
    rows = [(i, row) for i, row in enumerate(text.splitlines(), 1) if row.strip()]
    head = _HEAD.fullmatch(rows[0][1].strip()) if rows else None
    if head is None or rows[-1][1].strip() != "}":
        raise error("TG027", "a program is func @name(%x: type, ...) { ... }", Span(file, 1, 1, 1, 2))
    params = []
    for part in filter(None, (p.strip() for p in head.group(2).split(","))):
        found = _PARAM.fullmatch(part)
        if found is None:
            raise error("TG027", f"not a parameter: {part[:40]}", Span(file, rows[0][0], 1, rows[0][0], 2))
        params.append((found.group(1), found.group(2)))
    lines = [_Line(row, i, file) for i, row in rows[1:-1]]
    read = {1: _read1, 2: _read2, 3: _read3, 4: _read4}[design]
    casts = read(lines, dict(params))
    plain = tuple((n, _signless(t)) for n, t in params)
    program = CastProgram(head.group(1), plain, tuple(casts))
    check(program)
    return program


def _signless(t: str) -> str:
    found = _SIGNED.fullmatch(t)
    return f"i{found.group(2)}" if found else t


def _sign(t: str) -> str:
    found = _SIGNED.fullmatch(t)
    return "" if found is None else "signed" if found.group(1) == "s" else "unsigned"


def _read1(lines: list[_Line], types: dict[str, str]) -> list[Cast]:
    """Types tell the signs; bridging conversions only rename."""
    casts: list[Cast] = []
    behind: dict[str, tuple[str, str]] = {}
    for line in lines:
        if types.get(line.source) != line.src:
            raise line.fail(f"%{line.source} is no {line.src}")
        types[line.result] = line.dst
        if line.op == "builtin.unrealized_conversion_cast":
            if line.mode:
                raise line.fail("only renames and takes no words")
            if line.dst == "index" and casts and casts[-1].result == line.source:
                last = casts[-1]
                casts[-1] = Cast(line.result, last.source, last.src, "index", last.sign, last.mode)
            else:
                behind[line.result] = behind.get(line.source, (line.source, _signless(line.src)))
            continue
        if line.op != "pto.cast" or line.word or line.kept:
            raise line.fail("this design has pto.cast without words")
        source, src = behind.get(line.source, (line.source, _signless(line.src)))
        dst = _signless(line.dst)
        sign = _sign(line.src) or _sign(line.dst)
        if not sign and not (is_float(src) and is_float(dst)):
            raise line.fail(f"{line.src} to {line.dst} has no sign")
        casts.append(Cast(line.result, source, src, dst, sign, line.mode))
    return casts


def _read2(lines: list[_Line], types: dict[str, str]) -> list[Cast]:
    for line in lines:
        if line.op != "pto.cast" or line.kept:
            raise line.fail("this design has pto.cast only")
    return [Cast(x.result, x.source, x.src, x.dst, x.word, x.mode) for x in lines]


def _read3(lines: list[_Line], types: dict[str, str]) -> list[Cast]:
    casts = []
    for line in lines:
        sign = line.word or ("unsigned" if line.kept else "signed" if line.op == "pto.trunci" else "")
        mode = NONZERO if line.op == f"pto.{NONZERO}" else line.mode
        cast = Cast(line.result, line.source, line.src, line.dst, sign, mode)
        known = line.src in WIDTHS and line.dst in WIDTHS and said(cast) == line.mode
        if not known or f"pto.{category(cast)}" != line.op:
            raise line.fail(f"does not convert {line.src} to {line.dst}")
        casts.append(cast)
    return casts


_UNSIGNED = frozenset({"uitofp", "fptoui", "extui", "index_castui"})


def _read4(lines: list[_Line], types: dict[str, str]) -> list[Cast]:
    casts: list[Cast] = []
    first: _Line | None = None
    for line in lines:
        if line.result.endswith("__via"):
            first = line
            continue
        start = first if first is not None and first.result == line.source else line
        both = [start, line] if start is not line else [line]
        names = [x.op.removeprefix("pto.") for x in both]
        first = None
        floats = is_float(start.src) and is_float(line.dst)
        unsigned = line.kept or not _UNSIGNED.isdisjoint(names)
        sign = "" if floats else "unsigned" if unsigned else "signed"
        mode = "".join(x.mode for x in both)
        cast = Cast(line.result, start.source, start.src, line.dst, sign, NONZERO if names[0] in COMPARISONS else mode)
        known = cast.src in WIDTHS and cast.dst in WIDTHS and said(cast) == mode == both[rounding_name(cast)].mode
        if not known or [n for n, _ in arith_names(cast)] != names or line.word:
            raise line.fail(f"does not convert {start.src} to {line.dst}")
        casts.append(cast)
    return casts
