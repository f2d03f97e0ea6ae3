"""Compile-time words of the language: one table row per kind of attribute, with how it is read and written.

A value is accepted as a dotted name (``pl.Mem.Vec``), a string (``"round"``) or the enum's integer, as
compilers dump it, and kept in one spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..diagnostics import Span, error
from ..dtypes import DTYPES, DType, parse_dtype
from ..enums import AbiEnum, AtomicType, NotifyOp, ReduceOp, WaitCmp
from ..op import Kind
from ..ops.select import COMPARISONS
from ..types import MEMORY_SPACES
from .source import did_you_mean

ROUND_MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")


@dataclass(frozen=True)
class Words:
    """An enumeration: its title, words in order of their integers, other spellings, printed form."""

    title: str
    words: tuple[str, ...]
    aliases: dict[str, str]
    show: Callable[[str], str]


def _abi(title: str, enum: type[AbiEnum], prefix: str) -> Words:
    """The row of an enumeration whose members dumps write as integers."""
    shown = {m.word: f"{prefix}.{enum.__name__}.{m.name}" for m in enum}
    return Words(title, enum.words(), {m.name.lower(): m.word for m in enum}, lambda w: shown[w])


_TABLE: dict[Kind, Words] = {
    Kind.MODE: Words("round mode", ROUND_MODES, {}, lambda w: f'"{w}"'),
    Kind.SATURATION: Words("saturation mode", ("off", "on"), {"false": "off", "true": "on"}, lambda w: f'"{w}"'),
    Kind.COMPARE: Words("comparison", COMPARISONS, {}, lambda w: str(COMPARISONS.index(w))),
    Kind.MEMORY: Words("memory space", MEMORY_SPACES, {}, lambda w: f"pl.Mem.{w}"),
    Kind.ATOMIC: _abi("atomic type", AtomicType, "pl"),
    Kind.NOTIFY: _abi("notify operation", NotifyOp, "pld"),
    Kind.WAIT: _abi("wait comparison", WaitCmp, "pld"),
    Kind.REDUCE: _abi("reduction", ReduceOp, "pld"),
    Kind.PAD: Words("pad value", ("null", "zero", "max", "min"), {}, lambda w: f"pl.PadValue.{w}"),
}
_LOOKUP = {kind: {w.lower(): w for w in row.words} | row.aliases for kind, row in _TABLE.items()}


def is_worded(kind: Kind) -> bool:
    """Return whether attributes of this kind are words of an enumeration."""
    return kind in _TABLE


def read_word(kind: Kind, value: str | int | bool, span: Span | None) -> str | int:
    """Return the kept spelling of an enumerated attribute (comparisons: their integer). Raises TG004."""
    row = _TABLE[kind]
    if isinstance(value, bool) and kind is not Kind.SATURATION:
        raise _unknown(row, str(value), span)
    if isinstance(value, int):
        if not 0 <= value < len(row.words):
            raise _unknown(row, str(int(value)), span)
        word = row.words[int(value)]
    else:
        found = _LOOKUP[kind].get(value.lower())
        if found is None:
            raise _unknown(row, value, span)
        word = found
    return COMPARISONS.index(word) if kind is Kind.COMPARE else word


def _unknown(row: Words, value: str, span: Span | None) -> Exception:
    hint = did_you_mean(value, row.words) or f"known: {', '.join(row.words)}"
    return error("TG004", f"unknown {row.title} {value[:60]!r}", span, hint=hint)


def show_attr(kind: Kind, value: Any) -> str:
    """Return the text of an attribute's value."""
    if isinstance(value, DType):
        return f"pl.{value.name}"
    if kind is Kind.COMPARE:
        return str(value)
    if kind in _TABLE and isinstance(value, str):
        return _TABLE[kind].show(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(show_attr(kind, v) for v in value) + "]"
    if isinstance(value, float):
        return show_float(value)
    return repr(value)


def show_float(value: float) -> str:
    """Return the text of a float: its shortest exact decimal, or a name for infinity and NaN."""
    if value != value:
        return "math.nan"
    if value in (float("inf"), float("-inf")):
        return "math.inf" if value > 0 else "-math.inf"
    return repr(value)


def quoted(text: str) -> str:
    """Return a string literal, in double quotes where that needs no escapes."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)


def read_dtype(word: str, span: Span | None) -> DType:
    """Return the dtype named by the last part of a dotted name or a string. Raises TG004."""
    return DTYPES.get(word) or parse_dtype(word, span)
