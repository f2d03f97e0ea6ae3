"""Programs of scalar casts written in four ways, each of which reads back as the same program.

1. one ``cast``, integers with their sign in the type (``si32``, ``ui32``);
2. one ``cast`` on signless integers, the sign a word of the operation: what the language itself uses;
3. one operation per category (``itof ftoi ftof exti trunci``), the sign a word where it matters;
4. one operation per category and sign, with the names of MLIR's ``arith``.

What each design lacks is spelt out when it is printed: bridging conversions in 1, a word for the sign of a
truncation in 3 and 4, two operations for f16 to bf16 and for index to float in 4.

A rounding that is not the conversion's own (truncation to integers, to nearest even for floats) is an attribute of the
operation that rounds, ``{rint}``. A cast to BOOL is no conversion of these: it compares with zero, which the mode
``nonzero`` says (an operation of its own in 3 and 4). Integers clamp, in every design.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.diagnostics import error
from ..ir.rounding import ROUND_MODES

#: Widths of the carriers; an index counts as 64 bits.
WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64, "f16": 16, "bf16": 16, "f32": 32}
FLOATS = ("f16", "bf16", "f32")
DESIGNS = (1, 2, 3, 4)
#: The mode of casts to BOOL.
NONZERO = "nonzero"
TITLES = {
    1: "one cast, signed types", 2: "one cast, signless, sign as a word", 3: "category operations, sign as a word",
    4: "arith names",
}  # fmt: skip


@dataclass(frozen=True)
class Cast:
    """``result = cast source``; ``sign`` is signed or unsigned, exactly when an integer or index is involved.

    ``mode``: the rounding where it is not the conversion's own, or ``nonzero`` for a comparison with zero (to i1).
    """

    result: str
    source: str
    src: str
    dst: str
    sign: str = ""
    mode: str = ""


@dataclass(frozen=True)
class CastProgram:
    """Parameters by name and carrier type, and casts in order."""

    name: str
    params: tuple[tuple[str, str], ...]
    casts: tuple[Cast, ...]


def is_float(t: str) -> bool:
    return t in FLOATS


def check(p: CastProgram) -> None:
    """Raise TG004, TG007 or TG009 for a program that is none: names, types, the sign word."""
    known: dict[str, str] = {}
    for name, t in p.params:
        _define(known, name, t)
    for c in p.casts:
        if known.get(c.source) != c.src:
            raise error("TG009", f"%{c.source} is no {c.src} here")
        if c.src == c.dst:
            raise error("TG007", f"a cast from {c.src} to itself")
        due = not (is_float(c.src) and is_float(c.dst))
        if due != bool(c.sign) or c.sign not in ("", "signed", "unsigned"):
            reason = "the sign is given exactly when an integer or index is involved"
            raise error("TG004", f"a cast from {c.src} to {c.dst} with sign {c.sign!r}", reason=reason)
        _check_mode(c)
        _define(known, c.result, c.dst)


def own_mode(c: Cast) -> str:
    """Return the rounding a conversion has without a word; empty for one that never rounds."""
    if is_float(c.src):
        return "" if c.dst == "f32" else "rint" if is_float(c.dst) else "trunc"
    return "rint" if is_float(c.dst) else ""


def _check_mode(c: Cast) -> None:
    if not c.mode or (c.mode == NONZERO and c.dst == "i1"):
        return
    what, own = f"a cast from {c.src} to {c.dst} with mode {c.mode[:40]!r}", own_mode(c)
    if c.mode not in ROUND_MODES or c.mode == "none":
        words = ", ".join(m for m in ROUND_MODES if m != "none")
        raise error("TG004", what, hint=f"one of {words}" + (f", {NONZERO}" if c.dst == "i1" else ""))
    if c.mode == own or not own:
        why = "it is the conversion's own" if own else "nothing is rounded"
        raise error("TG004", what, reason=why, hint="leave it out")


def _define(known: dict[str, str], name: str, t: str) -> None:
    if t not in WIDTHS:
        raise error("TG004", f"unknown type {t[:40]!r}", hint=f"one of {', '.join(WIDTHS)}")
    if name in known or "__" in name or not name.isidentifier():
        hint = "names are new and without double underscores"
        raise error("TG009", f"%{name[:40]} cannot be defined here", hint=hint)
    known[name] = t


def print_design(p: CastProgram, design: int) -> str:
    """Return the program's text in one of the four designs."""
    check(p)
    types = dict(p.params)
    signed = _signs(p) if design == 1 else {}
    params = ", ".join(f"%{n}: {_typed(t, signed.get(n, '')) if design == 1 else t}" for n, t in types.items())
    lines = [f"func @{p.name}({params}) {{"]
    bridged: set[str] = set()
    for c in p.casts:
        lines += [f"  {line}" for line in _WRITERS[design](c, signed, bridged)]
    return "\n".join([*lines, "}"]) + "\n"


# -- design 1 ---------------------------------------------------------------------------------------------------


def _typed(t: str, sign: str) -> str:
    return t if is_float(t) or t == "index" else f"{'ui' if sign == 'unsigned' else 'si'}{t[1:]}"


def _signs(p: CastProgram) -> dict[str, str]:
    """Return the sign each integer value has in its type: of the cast that makes it, or that reads it first."""
    found = {c.result: c.sign for c in p.casts}
    for c in reversed(p.casts):
        if c.source in dict(p.params):
            found[c.source] = c.sign or "signed"
    return {**{n: "signed" for n, _ in p.params}, **found}


def _write1(c: Cast, signed: dict[str, str], bridged: set[str]) -> Iterator[str]:
    source, own = c.source, _typed(c.src, signed.get(c.source, ""))
    wanted = _typed(c.src, c.sign)
    if c.src == "index" and is_float(c.dst):
        # The type of an index has no sign: a 64-bit integer stands between.
        wanted = _typed("i64", c.sign)
    if own != wanted:
        source = f"{c.source}__{wanted}"
        if source not in bridged:
            bridged.add(source)
            yield f"%{source} = builtin.unrealized_conversion_cast %{c.source} : {own} to {wanted}"
    if c.dst == "index" and is_float(c.src):
        middle = _typed("i64", c.sign)
        yield f"%{c.result}__{middle} = pto.cast %{source}{_words(c.mode)} : {wanted} -> {middle}"
        yield f"%{c.result} = builtin.unrealized_conversion_cast %{c.result}__{middle} : {middle} to index"
    else:
        yield f"%{c.result} = pto.cast %{source}{_words(c.mode)} : {wanted} -> {_typed(c.dst, c.sign)}"


# -- designs 2 and 3 --------------------------------------------------------------------------------------------


def _write2(c: Cast, signed: dict[str, str], bridged: set[str]) -> Iterator[str]:
    word = f" {c.sign}" if c.sign else ""
    yield f"%{c.result} = pto.cast %{c.source}{word}{_words(c.mode)} : {c.src} -> {c.dst}"


def category(c: Cast) -> str:
    """Return the operation of design 3."""
    if c.mode == NONZERO:
        return NONZERO
    if is_float(c.src):
        return "ftof" if is_float(c.dst) else "ftoi"
    if is_float(c.dst):
        return "itof"
    if "index" in (c.src, c.dst):
        return "indexcast"
    return "exti" if WIDTHS[c.src] < WIDTHS[c.dst] else "trunci"


def _write3(c: Cast, signed: dict[str, str], bridged: set[str]) -> Iterator[str]:
    op = category(c)
    word = f" {c.sign}" if c.sign and op != "trunci" else ""
    yield f"%{c.result} = pto.{op} %{c.source}{word}{_words(_kept(op, c.sign), said(c))} : {c.src} -> {c.dst}"


def said(c: Cast) -> str:
    """Return the mode as designs 3 and 4 write it: their operations for ``nonzero`` need no word."""
    return "" if c.mode == NONZERO else c.mode


def _kept(op: str, sign: str) -> str:
    """The bits of a truncation do not depend on the sign; the word is kept for whoever reads on."""
    return sign if op in ("trunci", *COMPARISONS) and sign == "unsigned" else ""


def _words(*words: str) -> str:
    """Return the attributes of an operation."""
    given = ", ".join(filter(None, words))
    return f" {{{given}}}" if given else ""


# -- design 4 ---------------------------------------------------------------------------------------------------


#: Names in design 4 of comparing an integer, and a float (a NaN is not zero), with zero.
COMPARISONS = ("cmpi_ne_zero", "cmpf_une_zero")


def rounding_name(c: Cast) -> int:
    """Return which operation of :func:`arith_names` rounds: the last, but to an index the first."""
    return 0 if c.dst == "index" else -1


def arith_names(c: Cast) -> tuple[tuple[str, str], ...]:
    """Return the operations of design 4 with the type each gives."""
    s = c.sign == "signed"
    match category(c):
        case "nonzero":
            return ((COMPARISONS[is_float(c.src)], c.dst),)
        case "itof":
            last = ("sitofp" if s else "uitofp", c.dst)
            return ((("index_cast" if s else "index_castui"), "i64"), last) if c.src == "index" else (last,)
        case "ftoi":
            if c.dst == "index":
                return ("fptosi" if s else "fptoui", "i64"), ("index_cast" if s else "index_castui", "index")
            return (("fptosi" if s else "fptoui", c.dst),)
        case "ftof":
            if WIDTHS[c.src] == WIDTHS[c.dst]:
                return ("extf", "f32"), ("truncf", c.dst)
            return (("extf" if WIDTHS[c.src] < WIDTHS[c.dst] else "truncf", c.dst),)
        case "indexcast":
            return (("index_cast" if s else "index_castui", c.dst),)
        case "exti":
            return (("extsi" if s else "extui", c.dst),)
        case _:
            return (("trunci", c.dst),)


def _write4(c: Cast, signed: dict[str, str], bridged: set[str]) -> Iterator[str]:
    source, src = c.source, c.src
    names = arith_names(c)
    rounds = rounding_name(c) % len(names)
    for i, (op, dst) in enumerate(names):
        result = c.result if i == len(names) - 1 else f"{c.result}__via"
        words = _words(_kept(op, c.sign), said(c) if i == rounds else "")
        yield f"%{result} = pto.{op} %{source}{words} : {src} -> {dst}"
        source, src = result, dst


_WRITERS = {1: _write1, 2: _write2, 3: _write3, 4: _write4}
