"""Synchronisation, sections and memory consistency.

Formats: assembler v0.60 operation definitions. Pipes and events are printed ``<PIPE_V>``, read in every form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import IndexType, IntegerAttr, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.printer import Printer
from xdsl.traits import NoTerminator

from .base import PtoOp, op_definition, print_dictionary, type_text
from .conditions import fail
from .types import PartitionTensorViewType, PtrType, TensorViewType
from .words import WORD_ATTRS, WordAttr, parse_word_in_brackets, word

if TYPE_CHECKING:
    from xdsl.parser import Parser

_PIPE = WORD_ATTRS["pipe"]
_INDEX = IndexType()


def _short(attr: Attribute) -> str:
    """Return ``<WORD>``."""
    assert isinstance(attr, WordAttr)
    return f"<{attr.data}>"


@op_definition
class BarrierOp(PtoOp):
    """``pto.barrier <PIPE_V>``."""

    name = "pto.barrier"
    pipe = prop_def(_PIPE)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {_short(self.properties['pipe'])}")
        print_dictionary(printer, self.dictionary(skip=("pipe",)))

    @classmethod
    def parse(cls, parser: Parser) -> BarrierOp:
        pipe = parse_word_in_brackets(parser, "pipe")
        return cls.create(properties={"pipe": pipe}, attributes=parser.parse_optional_attr_dict())


class ListOp(PtoOp):
    """Base: attributes in square brackets; the last may be an index operand."""

    #: (property, word family), in text order.
    ITEMS: ClassVar[tuple[tuple[str, str], ...]] = ()
    #: Whether items are printed ``<W>`` rather than ``#pto.family<W>``.
    SHORT: ClassVar[bool] = True

    def print(self, printer: Printer) -> None:
        names = [name for name, _ in self.ITEMS]
        attrs = [self.properties[name] for name in names]
        items = [_short(a) if self.SHORT else str(a) for a in attrs]
        printer.print_string(("[" if self.SHORT else " [") + ", ".join(items))
        for value in self._operands:
            printer.print_string(", ")
            printer.print_ssa_value(value)
        printer.print_string("]")
        print_dictionary(printer, self.dictionary(skip=names))

    @classmethod
    def parse(cls, parser: Parser) -> ListOp:
        properties: dict[str, Attribute] = {}
        parser.parse_punctuation("[")
        for i, (name, family) in enumerate(cls.ITEMS):
            if i:
                parser.parse_punctuation(",")
            properties[name] = parse_word_in_brackets(parser, family)
        operands = []
        if cls.get_irdl_definition().operands:
            parser.parse_punctuation(",")
            operands.append(parser.resolve_operand(parser.parse_unresolved_operand(), _INDEX))
        parser.parse_punctuation("]")
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=operands, properties=properties, attributes=attributes)


_FLAG = (("src_pipe", "pipe"), ("dst_pipe", "pipe"), ("event_id", "event"))
_EVENT = (("src_op", "pipe_event_type"), ("dst_op", "pipe_event_type"), ("event_id", "event"))


@op_definition
class SetFlagOp(ListOp):
    """``pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]``."""

    name = "pto.set_flag"
    src_pipe = prop_def(_PIPE)
    dst_pipe = prop_def(_PIPE)
    event_id = prop_def(WORD_ATTRS["event"])
    ITEMS: ClassVar[tuple[tuple[str, str], ...]] = _FLAG


@op_definition
class WaitFlagOp(ListOp):
    """``pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]``."""

    name = "pto.wait_flag"
    src_pipe = prop_def(_PIPE)
    dst_pipe = prop_def(_PIPE)
    event_id = prop_def(WORD_ATTRS["event"])
    ITEMS: ClassVar[tuple[tuple[str, str], ...]] = _FLAG


@op_definition
class SetFlagDynOp(ListOp):
    """``pto.set_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %i]``."""

    name = "pto.set_flag_dyn"
    src_pipe = prop_def(_PIPE)
    dst_pipe = prop_def(_PIPE)
    event_id = operand_def(IndexType)
    ITEMS: ClassVar[tuple[tuple[str, str], ...]] = _FLAG[:2]


@op_definition
class WaitFlagDynOp(ListOp):
    """``pto.wait_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %i]``."""

    name = "pto.wait_flag_dyn"
    src_pipe = prop_def(_PIPE)
    dst_pipe = prop_def(_PIPE)
    event_id = operand_def(IndexType)
    ITEMS: ClassVar[tuple[tuple[str, str], ...]] = _FLAG[:2]


@op_definition
class RecordEventOp(ListOp):
    """``pto.record_event [#pto.pipe_event_type<A>, #pto.pipe_event_type<B>, #pto.event<E>]``."""

    name = "pto.record_event"
    src_op = prop_def(WORD_ATTRS["pipe_event_type"])
    dst_op = prop_def(WORD_ATTRS["pipe_event_type"])
    event_id = prop_def(WORD_ATTRS["event"])
    ITEMS: ClassVar[tuple[tuple[str, str], ...]] = _EVENT
    SHORT: ClassVar[bool] = False


@op_definition
class WaitEventOp(ListOp):
    """``pto.wait_event [#pto.pipe_event_type<A>, #pto.pipe_event_type<B>, #pto.event<E>]``."""

    name = "pto.wait_event"
    src_op = prop_def(WORD_ATTRS["pipe_event_type"])
    dst_op = prop_def(WORD_ATTRS["pipe_event_type"])
    event_id = prop_def(WORD_ATTRS["event"])
    ITEMS: ClassVar[tuple[tuple[str, str], ...]] = _EVENT
    SHORT: ClassVar[bool] = False


@op_definition
class BarrierSyncOp(ListOp):
    """``pto.barrier_sync[<TVEC>]``: TMATMUL or TVEC."""

    name = "pto.barrier_sync"
    op_type = prop_def(WORD_ATTRS["sync_op_type"])
    ITEMS: ClassVar[tuple[tuple[str, str], ...]] = (("op_type", "sync_op_type"),)

    def verify_(self) -> None:
        kind = self.properties["op_type"]
        if isinstance(kind, WordAttr) and kind.data not in ("TMATMUL", "TVEC"):
            fail(f"only TMATMUL and TVEC have a barrier, not {kind.data}")


class CrossCoreOp(PtoOp):
    """Base of sync.set and sync.wait: a pipe, and a constant or an index event."""

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {_short(self.properties['pipe'])}, ")
        event = self.properties.get("event_id")
        if isinstance(event, IntegerAttr):
            printer.print_string(str(event.value.data))
        else:
            printer.print_ssa_value(self._operands[0])
        print_dictionary(printer, self.dictionary(skip=("pipe", "event_id")))

    @classmethod
    def parse(cls, parser: Parser) -> CrossCoreOp:
        properties: dict[str, Attribute] = {"pipe": parse_word_in_brackets(parser, "pipe")}
        parser.parse_punctuation(",")
        operands = []
        value = parser.parse_optional_unresolved_operand()
        if value is not None:
            operands.append(parser.resolve_operand(value, _INDEX))
        else:
            number = parser.parse_integer(allow_boolean=False, allow_negative=False)
            properties["event_id"] = IntegerAttr(number, i32)
        more, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        return cls.create(operands=operands, properties=properties | more, attributes=attributes)

    def verify_(self) -> None:
        if ("event_id" in self.properties) == bool(self._operands):
            fail("exactly one of a constant and an index event is needed")


@op_definition
class SyncSetOp(CrossCoreOp):
    """``pto.sync.set <PIPE_MTE3>, 3``."""

    name = "pto.sync.set"
    pipe = prop_def(_PIPE)
    event_id = opt_prop_def(IntegerAttr)
    ffts_mode = opt_prop_def(IntegerAttr)
    event_id_dyn = opt_operand_def(IndexType)


@op_definition
class SyncWaitOp(CrossCoreOp):
    """``pto.sync.wait <PIPE_V>, 3``."""

    name = "pto.sync.wait"
    pipe = prop_def(_PIPE)
    event_id = opt_prop_def(IntegerAttr)
    ffts_mode = opt_prop_def(IntegerAttr)
    event_id_dyn = opt_operand_def(IndexType)


class SectionOp(PtoOp):
    """Base: one block without terminator."""

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.regions[0], print_empty_block=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> SectionOp:
        region = parser.parse_region()
        return cls.create(regions=[region], attributes=parser.parse_optional_attr_dict())


@op_definition
class SectionVectorOp(SectionOp):
    """``pto.section.vector { ... }``: code for vector cores only."""

    name = "pto.section.vector"
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@op_definition
class SectionCubeOp(SectionOp):
    """``pto.section.cube { ... }``: code for cube cores only."""

    name = "pto.section.cube"
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@op_definition
class CacheInvalidOp(PtoOp):
    """``pto.cmo.cacheinvalid all #pto.address_space<gm>`` or ``... %w single_cache_line : VIEW``."""

    name = "pto.cmo.cacheinvalid"
    addr = opt_operand_def()
    space = prop_def(WORD_ATTRS["address_space"])

    def print(self, printer: Printer) -> None:
        if self._operands:
            printer.print_string(" ")
            printer.print_ssa_value(self._operands[0])
            printer.print_string(f" single_cache_line : {type_text(self._operands[0].type)}")
        else:
            printer.print_string(f" all {self.properties['space']}")
        print_dictionary(printer, self.dictionary(skip=("space",)))

    @classmethod
    def parse(cls, parser: Parser) -> CacheInvalidOp:
        operands = []
        space: Attribute = word("address_space", "gm")
        if parser.parse_optional_keyword("all") is not None:
            space = parser.parse_attribute()
        else:
            value = parser.parse_unresolved_operand()
            parser.parse_keyword("single_cache_line")
            parser.parse_punctuation(":")
            operands.append(parser.resolve_operand(value, parser.parse_type()))
        more, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        return cls.create(operands=operands, properties={"space": space} | more, attributes=attributes)

    def verify_(self) -> None:
        space = self.properties["space"]
        if isinstance(space, WordAttr) and space.data not in ("gm", "zero"):
            fail(f"only global memory has cache maintenance, not {space.data}")
        kinds = (PtrType, TensorViewType, PartitionTensorViewType)
        if self._operands and not isinstance(self._operands[0].type, kinds):
            fail("the address must be a pointer or a view")


@op_definition
class FenceBarrierAllOp(PtoOp):
    """``pto.fence.barrier_all #pto.fence_scope<gm>``."""

    name = "pto.fence.barrier_all"
    scope = prop_def(WORD_ATTRS["fence_scope"])

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.properties['scope']}")
        print_dictionary(printer, self.dictionary(skip=("scope",)))

    @classmethod
    def parse(cls, parser: Parser) -> FenceBarrierAllOp:
        scope = parse_word_in_brackets(parser, "fence_scope")
        return cls.create(properties={"scope": scope}, attributes=parser.parse_optional_attr_dict())
