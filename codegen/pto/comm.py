"""Communication between ranks: transfers, signals, collectives and the asynchronous forms.

Formats and rules: assembler v0.60 operation definitions and verifier. Views are global-memory views, staging
tiles (ping, pong) lie in vec, signals are i32 views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import IntegerAttr, SignlessIntegerConstraint, i1, i32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    ParsePropInAttrDict,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.printer import Printer

from .base import (
    SEGMENTS,
    FormatOp,
    PtoOp,
    op_definition,
    parse_types,
    parse_values,
    print_dictionary,
    print_values,
    resolve,
    segment_sizes,
    segments,
    types_text,
)
from .conditions import fail
from .elements import spell
from .types import (
    DYNAMIC,
    AsyncEventType,
    AsyncSessionType,
    PartitionTensorViewType,
    TensorViewType,
    TileBufType,
)
from .words import WORD_ATTRS

if TYPE_CHECKING:
    from xdsl.parser import Parser

_VIEW = BaseAttr(TensorViewType) | BaseAttr(PartitionTensorViewType)


def check_view(value: SSAValue, name: str, dynamic: bool = False) -> None:
    """A view with positive static dimensions; ``dynamic`` allows ``?`` in a partition view."""
    type_ = value.type
    assert isinstance(type_, TensorViewType | PartitionTensorViewType)
    free = dynamic and isinstance(type_, PartitionTensorViewType)
    if any(dim <= 0 and not (free and dim == DYNAMIC) for dim in type_.shape):
        fail(f"{name} must have positive static dimensions")


def check_staging(values: list[SSAValue]) -> None:
    """Ping and pong are vec tiles of one type."""
    for value in values:
        assert isinstance(value.type, TileBufType)
        if value.type.data.space != "vec":
            fail(f"a staging tile must be in vec, not in {value.type.data.space}")
        if value.type != values[0].type:
            fail("ping and pong must have the same type")


class TransferOp(PtoOp):
    """Base of tput and tget: ``(%dst, %src, buf(%ping [, %pong]) : D, S, T [, T])``."""

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        print_values(printer, self._operands[:2])
        printer.print_string(", buf(")
        print_values(printer, self._operands[2:])
        printer.print_string(f") : {types_text(self._operands)})")
        print_dictionary(printer, self.dictionary())

    @classmethod
    def parse(cls, parser: Parser) -> TransferOp:
        parser.parse_punctuation("(")
        values = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        values.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(",")
        parser.parse_keyword("buf")
        parser.parse_punctuation("(")
        values += parse_values(parser)
        parser.parse_punctuation(")")
        parser.parse_punctuation(":")
        operands = resolve(parser, values, parse_types(parser, len(values)))
        parser.parse_punctuation(")")
        properties, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        return cls.create(operands=operands, properties=properties, attributes=attributes)

    def verify_(self) -> None:
        dst, src, *staging = self._operands
        check_view(dst, "dst", dynamic=True)
        check_view(src, "src", dynamic=True)
        check_staging(staging)
        assert isinstance(dst.type, TensorViewType | PartitionTensorViewType)
        assert isinstance(src.type, TensorViewType | PartitionTensorViewType)
        assert isinstance(staging[0].type, TileBufType)
        elements = [spell(t.element) for t in (dst.type, src.type, staging[0].type)]
        if len(set(elements)) > 1:
            fail(f"dst, src and ping must have the same element type, not {', '.join(elements)}")
        if dst.type.shape != src.type.shape:
            fail("dst and src must have the same shape")


@op_definition
class TputOp(TransferOp):
    """``pto.comm.tput(%dst, %src, buf(%ping) : D, S, T) {atomicType = ...}``: local to remote."""

    name = "pto.comm.tput"
    dst = operand_def(_VIEW)
    src = operand_def(_VIEW)
    ping = operand_def(TileBufType)
    pong = opt_operand_def(TileBufType)
    atomicType = opt_prop_def(WORD_ATTRS["atomic_type"])


@op_definition
class TgetOp(TransferOp):
    """``pto.comm.tget(%dst, %src, buf(%ping) : D, S, T)``: remote to local."""

    name = "pto.comm.tget"
    dst = operand_def(_VIEW)
    src = operand_def(_VIEW)
    ping = operand_def(TileBufType)
    pong = opt_operand_def(TileBufType)


class SignalOp(FormatOp):
    """Base of the signal operations: ``(%signal, %value : VIEW, i32) {...}``."""

    def verify_(self) -> None:
        signal, value = self._operands
        check_view(signal, "the signal")
        assert isinstance(signal.type, TensorViewType | PartitionTensorViewType)
        if signal.type.element != i32 or value.type != i32:
            fail("a signal and its value are i32")


@op_definition
class TnotifyOp(SignalOp):
    """``pto.comm.tnotify(%sig, %v : S, i32) {notifyOp = #pto<notify_op set>}``."""

    name = "pto.comm.tnotify"
    signal = operand_def(_VIEW)
    value = operand_def(SignlessIntegerConstraint)
    notifyOp = prop_def(WORD_ATTRS["notify_op"])
    irdl_options = (ParsePropInAttrDict(),)
    FORMAT: ClassVar[str] = "`(` $signal `,` $value `:` type($signal) `,` type($value) `)` attr-dict"


@op_definition
class TwaitOp(SignalOp):
    """``pto.comm.twait(%sig, %v : S, i32) {cmp = #pto<wait_cmp ge>}``."""

    name = "pto.comm.twait"
    signal = operand_def(_VIEW)
    cmpValue = operand_def(SignlessIntegerConstraint)
    cmp = prop_def(WORD_ATTRS["wait_cmp"])
    irdl_options = (ParsePropInAttrDict(),)
    FORMAT: ClassVar[str] = "`(` $signal `,` $cmpValue `:` type($signal) `,` type($cmpValue) `)` attr-dict"


@op_definition
class TtestOp(SignalOp):
    """``%r = pto.comm.ttest(%sig, %v : S, i32) {cmp = ...} -> i1``."""

    name = "pto.comm.ttest"
    signal = operand_def(_VIEW)
    cmpValue = operand_def(SignlessIntegerConstraint)
    cmp = prop_def(WORD_ATTRS["wait_cmp"])
    irdl_options = (ParsePropInAttrDict(),)
    result = result_def(i1)
    FORMAT: ClassVar[str] = (
        "`(` $signal `,` $cmpValue `:` type($signal) `,` type($cmpValue) `)` attr-dict `->` type($result)"
    )


class CollectiveOp(PtoOp):
    """Base: ``(<heads>, recv(%ping [, %pong]), group(%g, ...) : types) {root = 0 : i32}``."""

    #: How many operands stand before ``recv``.
    HEADS: ClassVar[int] = 1

    def parts(self) -> tuple[list[SSAValue], list[SSAValue], list[SSAValue]]:
        """Return (heads, staging tiles, group)."""
        sizes = segment_sizes(self)
        first = self.HEADS + sum(sizes[self.HEADS : -1])
        values = list(self._operands)
        return values[: self.HEADS], values[self.HEADS : first], values[first:]

    def print(self, printer: Printer) -> None:
        heads, staging, group = self.parts()
        printer.print_string("(")
        print_values(printer, heads)
        printer.print_string(", recv(")
        print_values(printer, staging)
        printer.print_string("), group(")
        print_values(printer, group)
        printer.print_string(f") : {types_text(self._operands)})")
        print_dictionary(printer, self.dictionary())

    @classmethod
    def parse(cls, parser: Parser) -> CollectiveOp:
        parser.parse_punctuation("(")
        values = []
        for _ in range(cls.HEADS):
            values.append(parser.parse_unresolved_operand())
            parser.parse_punctuation(",")
        counts = []
        for word in ("recv", "group"):
            if word == "group":
                parser.parse_punctuation(",")
            parser.parse_keyword(word)
            parser.parse_punctuation("(")
            found = parse_values(parser)
            parser.parse_punctuation(")")
            counts.append(len(found))
            values += found
        parser.parse_punctuation(":")
        operands = resolve(parser, values, parse_types(parser, len(values)))
        parser.parse_punctuation(")")
        properties, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        properties[SEGMENTS] = segments(*[1] * cls.HEADS, 1, counts[0] - 1, counts[1])
        return cls.create(operands=operands, properties=properties, attributes=attributes)

    def verify_(self) -> None:
        heads, staging, group = self.parts()
        check_staging(staging)
        for i, value in enumerate(group):
            check_view(value, f"group member {i}")
            if value.type != group[0].type:
                fail("all group members must have the same type")
        root = self.properties["root"]
        if not group:
            fail("a group needs at least one member")
        if isinstance(root, IntegerAttr) and not 0 <= root.value.data < len(group):
            fail(f"root {root.value.data} is outside a group of {len(group)}")
        check_view(heads[0], "the local view")
        self.verify_heads(heads, staging, group)

    def verify_heads(self, heads: list[SSAValue], staging: list[SSAValue], group: list[SSAValue]) -> None:
        """Check what is special to the operation."""


_SIZED = (AttrSizedOperandSegments(as_property=True),)


@op_definition
class TbroadcastOp(CollectiveOp):
    """``pto.comm.tbroadcast(%src, recv(%ping), group(...) : ...) {root = 0 : i32}``."""

    name = "pto.comm.tbroadcast"
    src = operand_def(_VIEW)
    ping = operand_def(TileBufType)
    pong = opt_operand_def(TileBufType)
    group = var_operand_def(_VIEW)
    root = prop_def(IntegerAttr)
    irdl_options = _SIZED

    def verify_heads(self, heads: list[SSAValue], staging: list[SSAValue], group: list[SSAValue]) -> None:
        if heads[0].type != group[0].type:
            fail("src must have the group members' type")


@op_definition
class CommTgatherOp(CollectiveOp):
    """``pto.comm.tgather(%dst, recv(%ping), group(...) : ...) {root = 0 : i32}``."""

    name = "pto.comm.tgather"
    dst = operand_def(_VIEW)
    ping = operand_def(TileBufType)
    pong = opt_operand_def(TileBufType)
    group = var_operand_def(_VIEW)
    root = prop_def(IntegerAttr)
    irdl_options = _SIZED


@op_definition
class CommTscatterOp(CollectiveOp):
    """``pto.comm.tscatter(%src, recv(%ping), group(...) : ...) {root = 0 : i32}``."""

    name = "pto.comm.tscatter"
    src = operand_def(_VIEW)
    ping = operand_def(TileBufType)
    pong = opt_operand_def(TileBufType)
    group = var_operand_def(_VIEW)
    root = prop_def(IntegerAttr)
    irdl_options = _SIZED


@op_definition
class TreduceOp(CollectiveOp):
    """``pto.comm.treduce(%dst, %acc, recv(%ping), group(...) : ...) {reduceOp = ..., root = 0 : i32}``."""

    name = "pto.comm.treduce"
    dst = operand_def(_VIEW)
    acc = operand_def(TileBufType)
    recvPing = operand_def(TileBufType)
    recvPong = opt_operand_def(TileBufType)
    group = var_operand_def(_VIEW)
    reduceOp = prop_def(WORD_ATTRS["reduce_op"])
    root = prop_def(IntegerAttr)
    irdl_options = _SIZED
    HEADS: ClassVar[int] = 2

    def verify_heads(self, heads: list[SSAValue], staging: list[SSAValue], group: list[SSAValue]) -> None:
        if heads[1].type != staging[0].type:
            fail("acc must have the staging tile's type")


@op_definition
class BuildAsyncSessionOp(FormatOp):
    """``%s = pto.comm.build_async_session(%scratch, %ws : T, PTR) -> !pto.async_session``."""

    name = "pto.comm.build_async_session"
    scratch = operand_def(TileBufType)
    workspace = operand_def()
    session = result_def(AsyncSessionType)
    FORMAT: ClassVar[str] = (
        "`(` $scratch `,` $workspace `:` type($scratch) `,` type($workspace) `)`"
        " attr-dict `->` type($session)"
    )


_ASYNC = (
    "`(` $dst `,` $src `,` $session `:` type($dst) `,` type($src) `,` type($session) `)`"
    " attr-dict `->` type($event)"
)
_AWAIT = "`(` $event `,` $session `:` type($event) `,` type($session) `)` attr-dict `->` type($completed)"


@op_definition
class TputAsyncOp(FormatOp):
    """``%e = pto.comm.tput_async(%d, %s, %sess : D, S, SESSION) -> !pto.async_event``."""

    name = "pto.comm.tput_async"
    dst = operand_def(_VIEW)
    src = operand_def(_VIEW)
    session = operand_def(AsyncSessionType)
    event = result_def(AsyncEventType)
    FORMAT: ClassVar[str] = _ASYNC


@op_definition
class TgetAsyncOp(FormatOp):
    """``%e = pto.comm.tget_async(%d, %s, %sess : D, S, SESSION) -> !pto.async_event``."""

    name = "pto.comm.tget_async"
    dst = operand_def(_VIEW)
    src = operand_def(_VIEW)
    session = operand_def(AsyncSessionType)
    event = result_def(AsyncEventType)
    FORMAT: ClassVar[str] = _ASYNC


@op_definition
class WaitAsyncEventOp(FormatOp):
    """``%d = pto.comm.wait_async_event(%e, %sess : EVENT, SESSION) -> i1``."""

    name = "pto.comm.wait_async_event"
    event = operand_def(AsyncEventType)
    session = operand_def(AsyncSessionType)
    completed = result_def(i1)
    FORMAT: ClassVar[str] = _AWAIT


@op_definition
class TestAsyncEventOp(FormatOp):
    """``%d = pto.comm.test_async_event(%e, %sess : EVENT, SESSION) -> i1``."""

    name = "pto.comm.test_async_event"
    event = operand_def(AsyncEventType)
    session = operand_def(AsyncSessionType)
    completed = result_def(i1)
    FORMAT: ClassVar[str] = _AWAIT
