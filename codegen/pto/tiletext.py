"""Reading of tile types: the short form and the long one every version of the assembler accepts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .types import BLAYOUTS, COMPACTS, DYNAMIC, FRACTALS, PADS, SLAYOUTS, TileSpec

if TYPE_CHECKING:
    from xdsl.parser import AttrParser

_SHAPE = re.compile(r"\s*([0-9]+)\s*x\s*([0-9]+)\s*x")
_VALID = re.compile(r"\s*(\?|[0-9]+)\s*x\s*(\?|[0-9]+)")
_WORD_KEYS = {"blayout": BLAYOUTS, "slayout": SLAYOUTS}
_NUMBER_KEYS: dict[str, tuple[int, ...]] = {"fractal": FRACTALS, "pad": PADS, "compact": COMPACTS}
#: Fields of the long form, in their fixed order.
_LONG = ("dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad")


def parse_tile(parser: AttrParser, at: int) -> TileSpec:
    """Read the content of ``!pto.tile_buf<...>`` in either form; ``at`` is where errors are shown."""
    first = parser.parse_identifier()
    fields = _long(parser) if first == "loc" else _short(parser, first)
    rows, cols = fields["rows"], fields["cols"]
    fields.setdefault("valid_rows", rows)
    fields.setdefault("valid_cols", cols)
    spec = TileSpec(**fields)
    problem = spec.problem()
    if problem:
        parser.raise_error(problem, at)
    return spec


def _match(parser: AttrParser, pattern: re.Pattern[str], what: str) -> re.Match[str]:
    found = pattern.match(parser.lexer.input.content, parser.pos)
    if found is None:
        parser.raise_error(f"expected {what}")
    parser._resume_from(found.end())
    return found


def _short(parser: AttrParser, space: str) -> dict[str, Any]:
    parser.parse_punctuation(",")
    shape = _match(parser, _SHAPE, "the physical shape as ROWSxCOLSxTYPE")
    fields: dict[str, Any] = {"space": space, "rows": int(shape[1]), "cols": int(shape[2])}
    fields["element"] = parser.parse_type()
    while parser.parse_optional_punctuation(",") is not None:
        at = parser.pos
        key = parser.parse_identifier()
        if key in fields or (key == "valid" and "valid_rows" in fields):
            parser.raise_error(f"{key} is given twice", at)
        if parser.lexer.input.content[parser.pos] != "=":
            parser.raise_error("expected '='")
        if key == "valid":
            # The lexer would read ``0x4`` as a hexadecimal number, so the dimensions are matched in the text.
            fields["valid_rows"], fields["valid_cols"] = _valid(parser)
        else:
            fields[key] = _setting(parser, key, at)
    return fields


def _valid(parser: AttrParser) -> tuple[int, int]:
    source = parser.lexer.input.content
    found = _VALID.match(source, source.index("=", parser.pos) + 1)
    if found is None:
        parser.raise_error("expected the valid shape as ROWSxCOLS")
    parser._resume_from(found.end())
    return tuple(DYNAMIC if text == "?" else int(text) for text in found.groups())  # type: ignore[return-value]


def _setting(parser: AttrParser, key: str, at: int) -> object:
    """Read ``=value`` of one configuration key, whose name was just read."""
    parser.parse_punctuation("=")
    if key in _WORD_KEYS:
        return parser.parse_optional_identifier() or parser.parse_str_literal()
    if key in _NUMBER_KEYS:
        return parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.raise_error(f"unknown key {key} in a tile type", at)


def _long(parser: AttrParser) -> dict[str, Any]:
    parser.parse_punctuation("=")
    fields: dict[str, Any] = {"space": parser.parse_identifier()}
    for key in _LONG:
        parser.parse_punctuation(",")
        at = parser.pos
        parser.parse_keyword(key)
        if key == "dtype":
            parser.parse_punctuation("=")
            fields["element"] = parser.parse_type()
        elif key in ("rows", "cols"):
            parser.parse_punctuation("=")
            fields[key] = parser.parse_integer(allow_boolean=False, allow_negative=False)
        elif key in ("v_row", "v_col"):
            parser.parse_punctuation("=")
            fields["valid_rows" if key == "v_row" else "valid_cols"] = _long_valid(parser)
        else:
            fields[key] = _setting(parser, key, at)
    if parser.parse_optional_punctuation(",") is not None:
        at = parser.pos
        parser.parse_keyword("compact")
        fields["compact"] = _setting(parser, "compact", at)
    return fields


def _long_valid(parser: AttrParser) -> int:
    if parser.parse_optional_punctuation("?") is not None:
        return DYNAMIC
    return parser.parse_integer(allow_boolean=False)
