"""Movement between global memory and tiles, and between tiles: tload, tstore, tmov.

Formats and rules: assembler v0.60 operation definitions and verifier.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_operand_def,
    opt_prop_def,
)
from xdsl.printer import Printer

from .base import SEGMENTS, PtoOp, op_definition, print_dictionary, segment_sizes, segments, type_text
from .conditions import admits, fail, plain
from .elements import LOW_PRECISION, element_bytes, spell
from .types import DYNAMIC, PartitionTensorViewType, TileBufType
from .words import WORD_ATTRS, parse_word_in_brackets

if TYPE_CHECKING:
    from xdsl.parser import Parser

_LOADABLE = "i8 i16 i32 i64 f16 bf16 f32"
_LOADABLE_A5 = f"{_LOADABLE} f8E4M3FN f8E5M2 !pto.hif8 !pto.f8E8M0 !pto.f4E1M2x2 !pto.f4E2M1x2"
_SIZED = (AttrSizedOperandSegments(as_property=True),)


class MoveOp(PtoOp):
    """Base: ``ins(%src : S <clauses>) outs(%dst : D)`` with optional further operands after the first two."""

    #: Keyword before each optional operand of ins, in operand order; "" stands for a comma.
    CLAUSES: ClassVar[tuple[str, ...]] = ()

    def optional(self) -> list[SSAValue | None]:
        """Return the optional operands in order, None where absent."""
        rest = iter(self._operands[2:])
        return [next(rest) if there else None for there in segment_sizes(self)[2:]]

    def print(self, printer: Printer) -> None:
        src, dst = self._operands[:2]
        printer.print_string(" ins(")
        printer.print_ssa_value(src)
        printer.print_string(f" : {type_text(src.type)}")
        for word, value in zip(self.CLAUSES, self.optional(), strict=False):
            if value is not None:
                printer.print_string(f" {word} " if word else ", ")
                printer.print_ssa_value(value)
                printer.print_string(f" : {type_text(value.type)}")
        printer.print_string(") outs(")
        printer.print_ssa_value(dst)
        printer.print_string(f" : {type_text(dst.type)})")
        self.print_tail(printer)

    def print_tail(self, printer: Printer) -> None:
        """Print what follows ``outs(...)``."""
        print_dictionary(printer, self.dictionary())

    @classmethod
    def parse(cls, parser: Parser) -> MoveOp:
        parser.parse_keyword("ins")
        parser.parse_punctuation("(")
        src = _typed(parser)
        found: list[SSAValue | None] = [None] * (len(cls.get_irdl_definition().operands) - 2)
        while parser.parse_optional_punctuation(")") is None:
            at = parser.pos
            word = "" if parser.parse_optional_punctuation(",") is not None else parser.parse_identifier()
            value = _typed(parser)
            place = cls.place(word, value)
            if place is None or found[place] is not None:
                parser.raise_error(f"unexpected operand of {cls.name}", at)
            found[place] = value
        parser.parse_keyword("outs")
        parser.parse_punctuation("(")
        dst = _typed(parser)
        parser.parse_punctuation(")")
        properties, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        cls.parse_tail(parser, found, properties)
        properties[SEGMENTS] = segments(1, 1, *(int(value is not None) for value in found))
        operands = [src, dst, *(value for value in found if value is not None)]
        return cls.create(operands=operands, properties=properties, attributes=attributes)

    @classmethod
    def place(cls, word: str, value: SSAValue) -> int | None:
        """Return which optional operand a clause gives: the comma form tells a tile from a scalar."""
        fits = [i for i, clause in enumerate(cls.CLAUSES) if clause == word]
        if len(fits) > 1:
            return fits[0] if isinstance(value.type, TileBufType) else fits[1]
        return fits[0] if fits else None

    @classmethod
    def parse_tail(
        cls, parser: Parser, found: list[SSAValue | None], properties: dict[str, Attribute]
    ) -> None:
        """Read what follows the attribute dictionary."""


def _typed(parser: Parser) -> SSAValue:
    """Read ``%x : T``."""
    value = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return parser.resolve_operand(value, parser.parse_type())


def _check_sizes(tile: TileBufType, view: PartitionTensorViewType, converts: bool = False) -> None:
    if any(dim != DYNAMIC and dim <= 0 for dim in view.shape):
        fail("the dimensions of the view must be positive")
    if not converts and element_bytes(tile.element) != element_bytes(view.element):
        fail(f"element sizes differ: {spell(tile.element)} in the tile, {spell(view.element)} in the view")


def _check_transfer(name: str, tile: TileBufType, view: PartitionTensorViewType, arch: str) -> None:
    """The element types a transfer takes; on a5 the layouts a vec tile may have."""
    words = _LOADABLE_A5 if arch == "a5" else _LOADABLE
    if not admits(words, spell(tile.element)):
        fail(f"{name}: element type {spell(tile.element)} is not one of {words}")
    if arch == "a2a3" and spell(view.element) in LOW_PRECISION:
        fail(f"low-precision element types are not supported on a2/a3 ({spell(view.element)})")
    spec = tile.data
    layouts = (("row_major", "none_box"), ("col_major", "none_box"), ("col_major", "row_major"))
    thin = name == "src" and 1 in tile.shape
    if arch == "a5" and spec.space == "vec" and not thin and (spec.blayout, spec.slayout) not in layouts:
        fail(f"a vec {name} must be laid out as ND, DN or NZ on a5")


@op_definition
class TloadOp(MoveOp):
    """``pto.tload ins(%w : PARTITION) outs(%t : TILE)``: global memory to a vec or mat tile."""

    name = "pto.tload"
    src = operand_def(PartitionTensorViewType)
    dst = operand_def(TileBufType)
    pad_value = opt_operand_def()
    left_padding_num = opt_operand_def(IndexType)
    right_padding_num = opt_operand_def()
    init_condition = opt_operand_def()
    pad_mode = opt_prop_def(WORD_ATTRS["padmode"])
    init_out_buffer = opt_prop_def()
    irdl_options = _SIZED
    #: Clauses after outs in text order, with the operand's place (None: the attribute of that name).
    TAIL: ClassVar[tuple[tuple[str, int | None], ...]] = (
        ("pad_mode", None),
        ("pad_value", 0),
        ("left_padding_num", 1),
        ("init_out_buffer", None),
        ("right_padding_num", 2),
        ("init_condition", 3),
    )

    def print_tail(self, printer: Printer) -> None:
        attributes = [name for name, place in self.TAIL if place is None]
        print_dictionary(printer, self.dictionary(skip=attributes))
        values = self.optional()
        for name, place in self.TAIL:
            if place is None:
                if name in self.properties:
                    printer.print_string(f" {name} = ")
                    printer.print_attribute(self.properties[name])
                continue
            value = values[place]
            if value is not None:
                printer.print_string(f" {name} = ")
                printer.print_ssa_value(value)
                printer.print_string(f" : {type_text(value.type)}")

    @classmethod
    def parse_tail(
        cls, parser: Parser, found: list[SSAValue | None], properties: dict[str, Attribute]
    ) -> None:
        for name, place in cls.TAIL:
            if parser.parse_optional_keyword(name) is not None:
                parser.parse_punctuation("=")
                if name == "pad_mode":
                    properties[name] = parse_word_in_brackets(parser, "padmode")
                elif place is None:
                    properties[name] = parser.parse_attribute()
                else:
                    found[place] = _typed(parser)

    def verify_(self) -> None:
        view, tile = self._operands[0].type, self._operands[1].type
        assert isinstance(view, PartitionTensorViewType) and isinstance(tile, TileBufType)
        _check_sizes(tile, view)

    def verify_arch(self, arch: str) -> None:
        view, tile = self._operands[0].type, self._operands[1].type
        assert isinstance(view, PartitionTensorViewType) and isinstance(tile, TileBufType)
        _check_transfer("dst", tile, view, arch)
        if arch == "a2a3" and tile.data.space not in ("vec", "mat"):
            fail(f"dst must be in vec or mat on a2/a3, not in {tile.data.space}")
        if arch == "a5" and admits("i64", spell(tile.element)) and tile.data.pad > 1:
            fail("a 64-bit dst must have pad 0 or 1 on a5")


@op_definition
class TstoreOp(MoveOp):
    """``pto.tstore ins(%t : TILE) outs(%w : PARTITION) [{atomicType = ...}]``: a tile to global memory."""

    name = "pto.tstore"
    src = operand_def(TileBufType)
    dst = operand_def(PartitionTensorViewType)
    fp = opt_operand_def(TileBufType)
    preQuantScalar = opt_operand_def(i64)
    stPhase = opt_prop_def(WORD_ATTRS["st_phase"])
    atomicType = opt_prop_def(WORD_ATTRS["atomic_type"])
    reluPreMode = opt_prop_def(WORD_ATTRS["relu_pre_mode"])
    irdl_options = _SIZED
    CLAUSES: ClassVar[tuple[str, ...]] = ("fp", "")

    def verify_(self) -> None:
        tile, view = self._operands[0].type, self._operands[1].type
        assert isinstance(tile, TileBufType) and isinstance(view, PartitionTensorViewType)
        _check_sizes(tile, view, converts=tile.data.space == "acc")
        quantised = [value for value in self.optional() if value is not None]
        if len(quantised) > 1:
            fail("fp and the quantisation scalar exclude each other")
        if quantised and tile.data.space != "acc":
            fail(f"a quantising store needs a src in acc, not in {tile.data.space}")
        if 0 in tile.valid or DYNAMIC in (*tile.valid, *view.shape) or (quantised and self.optional()[0]):
            return
        have, want = prod(tile.valid), prod(view.shape)
        if have != want:
            fail(f"the view has {want} elements, the valid part of the tile {have}")

    def verify_arch(self, arch: str) -> None:
        tile, view = self._operands[0].type, self._operands[1].type
        assert isinstance(tile, TileBufType) and isinstance(view, PartitionTensorViewType)
        spaces = ("vec", "acc") if arch == "a5" else ("vec", "mat", "acc")
        if tile.data.space not in spaces:
            fail(f"src must be in {' or '.join(spaces)}, not in {tile.data.space}")
        if tile.data.space != "acc":
            _check_transfer("src", tile, view, arch)
        elif not admits("i32 f32", spell(tile.element)):
            fail(f"src: element type {spell(tile.element)} in acc is not i32 or f32")
        elif not any(self.optional()) and not admits("i32 f32 f16 bf16", spell(view.element)):
            fail(f"dst: element type {spell(view.element)} is not one of i32 f32 f16 bf16")


@op_definition
class TmovOp(MoveOp):
    """``pto.tmov ins(%a : TILE [, %fp : TILE] [, %q : i64]) outs(%b : TILE)``: tile to tile.

    The assembler takes the first operand after a comma for ``fp``, so a scalar alone is written generically.
    """

    name = "pto.tmov"
    src = operand_def(TileBufType)
    dst = operand_def(TileBufType)
    fp = opt_operand_def(TileBufType)
    preQuantScalar = opt_operand_def(i64)
    accToVecMode = opt_prop_def()
    reluPreMode = opt_prop_def(WORD_ATTRS["relu_pre_mode"])
    grpAxis = opt_prop_def(WORD_ATTRS["mx_group_axis"])
    irdl_options = _SIZED
    CLAUSES: ClassVar[tuple[str, ...]] = ("", "")

    def needs_generic(self) -> bool:
        fp, scalar = self.optional()
        return fp is None and scalar is not None

    def verify_arch(self, arch: str) -> None:
        src, dst = self._operands[0].type, self._operands[1].type
        assert isinstance(src, TileBufType) and isinstance(dst, TileBufType)
        if arch == "a2a3":
            plain({"src": self._operands[0], "dst": self._operands[1]})
            if src.shape != dst.shape:
                fail("src and dst must have the same physical shape on a2/a3")
