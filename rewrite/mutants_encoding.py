"""Wrong encodings: what is lost or exchanged between operations and terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..ir.program import Const
from ..ir.types import TileType
from . import encode
from .mutate import Mutant


def encoding_mutants() -> list[Mutant]:
    """Return the mutants of writing regions as terms and of reading terms back."""
    return [*_reading(), *_writing()]


def _reading() -> list[Mutant]:
    attributes, literal, type_from = encode._attributes, encode._literal, encode._type_from

    def without(name: str) -> Callable[..., Any]:
        def read(decl: Any, args: Any) -> Any:
            attrs, operands = attributes(decl, args)
            return {k: v for k, v in attrs.items() if k != name}, operands

        return read

    def changed(name: str, fn: Callable[[Any], Any]) -> Callable[..., Any]:
        def read(decl: Any, args: Any) -> Any:
            attrs, operands = attributes(decl, args)
            return {k: fn(v) if k == name else v for k, v in attrs.items()}, operands

        return read

    def lists_shifted(decl: Any, args: Any) -> Any:
        attrs, operands = attributes(decl, args)
        return attrs, tuple(o[::-1] if isinstance(o, tuple) else o for o in operands)

    def literal_as(fn: Callable[[Const], Const]) -> Callable[..., Const]:
        return lambda kind, bits: fn(literal(kind, bits))

    def whole(kind: int, bits: int) -> Const:
        made = literal(kind, bits)
        return replace(made, value=int(made.value)) if made.value == made.value and abs(made.value) < 1e9 else made

    def fully_valid(dtype: int, shape: int) -> Any:
        t = type_from(dtype, shape)
        return replace(t, valid=None) if isinstance(t, TileType) else t

    flips = {"on": "off", "off": "on"}
    found: dict[str, tuple[str, Any]] = {
        "reading: round modes lost": ("_attributes", without("mode")),
        "reading: saturations lost": ("_attributes", without("saturation_mode")),
        "reading: saturations flipped": ("_attributes", changed("saturation_mode", flips.get)),
        "reading: floor read as trunc": (
            "_attributes", changed("mode", lambda m: "trunc" if m == "floor" else m)),
        "reading: odd read as rint": ("_attributes", changed("mode", lambda m: "rint" if m == "odd" else m)),
        "reading: comparisons lost": ("_attributes", without("cmp_type")),
        "reading: comparisons turned": ("_attributes", changed("cmp_type", lambda c: {2: 4, 4: 2}.get(c, c))),
        "reading: lists reversed": ("_attributes", lists_shifted),
        "reading: literals whole": ("_literal", whole),
        "reading: literals positive": (
            "_literal", literal_as(lambda c: c if isinstance(c.value, bool) else replace(c, value=abs(c.value)))),
        "reading: valid shapes lost": ("_type_from", fully_valid),
    }  # fmt: skip
    return [Mutant(name, "encoding", ((encode, where, fn),)) for name, (where, fn) in found.items()]


def _writing() -> list[Mutant]:
    codes, literal, child, shape, rest, argument = (
        encode.argument_codes, encode._literal_codes, encode._child_text, encode._shape_code,
        encode._rest_code, encode._argument,
    )  # fmt: skip

    def argument_as(name: str, fn: Callable[[int], int]) -> Callable[..., int]:
        def write(which: str, *rest_of: Any) -> int:
            code = argument(which, *rest_of)
            return fn(code) if which == name else code

        return write

    def zeros_alike(c: Const) -> tuple[int, int]:
        kind, bits = literal(c)
        return kind, 0 if bits == -(2**63) else bits

    def low_half(c: Const) -> tuple[int, int]:
        kind, bits = literal(c)
        return kind, bits >> 32 << 32 if isinstance(c.value, float) else bits & 0xFF

    def no_dtype(c: Const) -> tuple[int, int]:
        return literal(c)[0] % 2, literal(c)[1]

    def dtype_lost(op: Any) -> tuple[int, ...]:
        found = codes(op)
        return (found[0] if op.name != "tile.cast" else found[2], *found[1:])

    def one_rest(op: Any, decl: Any) -> int:
        return rest(replace(op, attrs={}), decl)

    def no_literals(o: Any, number: Any) -> str:
        return child(replace(o, value=type(o.value)(1)), number) if isinstance(o, Const) else child(o, number)

    swap = {1: 2, 2: 1}
    found: dict[str, tuple[str, Any]] = {
        "writing: modes one off": ("_argument", argument_as("mode", lambda c: (c + 1) % 7)),
        "writing: modes lost": ("_argument", argument_as("mode", lambda c: 2)),
        "writing: saturations exchanged": ("_argument", argument_as("saturation", lambda c: swap.get(c, c))),
        "writing: saturations lost": ("_argument", argument_as("saturation", lambda c: min(c, 1))),
        "writing: comparisons lost": ("_argument", argument_as("compare", lambda c: 0)),
        "writing: source dtypes lost": ("_argument", argument_as("source", lambda c: 0)),
        "writing: roads marked inexact": ("_argument", argument_as("road", lambda c: 1)),
        "writing: -0.0 as 0.0": ("_literal_codes", zeros_alike),
        "writing: short literals": ("_literal_codes", low_half),
        "writing: literals without dtype": ("_literal_codes", no_dtype),
        "writing: literals all one": ("_child_text", no_literals),
        "writing: casts with the source's dtype": ("argument_codes", dtype_lost),
        "writing: other attributes lost": ("_rest_code", one_rest),
        "writing: one shape for all": ("_shape_code", lambda t: min(shape(t), 1)),
    }
    return [Mutant(name, "encoding", ((encode, where, fn),)) for name, (where, fn) in found.items()]
