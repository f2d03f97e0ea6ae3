"""The operations of SIMT threads and of scalars: one row each, and the classes made from the rows.

Formats, types and places: assembler v0.60 (operation definitions and verifiers).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import IntAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import opt_prop_def, var_operand_def, var_result_def
from xdsl.printer import Printer

from .base import (
    BareOp,
    PtoOp,
    defined,
    op_definition,
    parse_types,
    parse_values,
    print_dictionary,
    print_values,
    resolve,
    type_text,
    types_text,
)
from .classes import Classes
from .conditions import fail
from .elements import spell
from .simt_scopes import in_threads

if TYPE_CHECKING:
    from xdsl.parser import Parser

SIGNS = ("signed", "unsigned")
#: Shuffles stay within segments of so many lanes.
WIDTHS = (16, 32)
_PAIRS = ("vector<2xf16>", "vector<2xbf16>")
_FLOATS = ("f16", "f32")
_WIDE = ("f16", "f32", "bf16")
_LANE = ("i32", "i64", "f16", "f32", "vector<2xf16>")


@dataclass(frozen=True)
class SimtRow:
    """One operation between values.

    ``operands``: the types each may have, ``("=",)`` for the first one's; ``result``: its types, or ``("=",)``;
    ``sign``: ``""`` no word, ``"due"`` always, ``"integers"`` exactly with integers, ``"free"`` allowed with integers.
    """

    name: str
    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...] = ("=",)
    sign: str = ""
    width: bool = False


def _same(name: str, types: tuple[str, ...], count: int = 1, **more: Any) -> SimtRow:
    return SimtRow(name, (types, *[("=",)] * (count - 1)), **more)


_I32 = ("i32",)
VALUE_ROWS = (
    *(SimtRow(f"vote_{n}", (("i1",),)) for n in ("all", "any", "uni")),
    SimtRow("vote_ballot", (("i1",),), _I32),
    *(SimtRow(f"shuffle_{n}", (_LANE, _I32), width=True) for n in ("idx", "up", "down", "bfly")),
    _same("redux_add", ("i32", *_FLOATS), sign="free"),
    *(_same(f"redux_{n}", ("i32", *_FLOATS), sign="integers") for n in ("max", "min")),
    *(_same(n, (*_FLOATS, _PAIRS[0])) for n in ("sqrt", "exp", "log")),
    _same("pow", (*_FLOATS, _PAIRS[0]), 2),
    *(_same(n, ("f32",)) for n in ("sin", "cos")),
    *(_same(n, _WIDE) for n in ("ceil", "floor", "rint", "round")),
    _same("absf", (*_FLOATS, *_PAIRS)),
    *(_same(n, (*_WIDE, *_PAIRS), 2) for n in ("fmax", "fmin")),
    _same("fma", (*_WIDE, *_PAIRS), 3),
    _same("mulhi", ("i32", "i64"), 2, sign="due"),
    SimtRow("mul_i32toi64", (_I32, _I32), ("i64",), "due"),
    SimtRow("prmt", (_I32, _I32, _I32)),
)  # fmt: skip


def _axes(stem: str) -> tuple[str, ...]:
    return tuple(f"{stem}_{axis}" for axis in "xyz")


#: Queries and the width of what they give.
QUERIES: dict[str, int] = {
    **dict.fromkeys(
        [n for stem in ("tid", "block_dim", "block_idx", "grid_dim") for n in _axes(f"get_{stem}")]
        + ["get_laneid", "get_veccoreid", "get_clock32"]
        + [f"get_lanemask_{n}" for n in ("eq", "le", "lt", "ge", "gt")], 32),
    "get_clock64": 64,
}  # fmt: skip
SYNCS = ("syncthreads", "threadfence", "threadfence_block")


def sign_word(op: PtoOp) -> str:
    """Return the sign an operation carries, or an empty string."""
    found = op.properties.get("signedness")
    return found.data if isinstance(found, StringAttr) else ""


def parse_sign(parser: Parser) -> StringAttr | None:
    """Read ``signed`` or ``unsigned`` where one stands."""
    for word in SIGNS:
        if parser.parse_optional_keyword(word) is not None:
            return StringAttr(word)
    return None


def number(value: int, bits: int = 64) -> IntegerAttr:
    """Return an integer attribute."""
    return IntegerAttr(value, IntegerType(bits))


def number_of(attr: Attribute | None, default: int) -> int:
    """Return the number of an integer attribute."""
    if isinstance(attr, IntegerAttr):
        return int(attr.value.data)
    return int(attr.data) if isinstance(attr, IntAttr) else default


def check_type(what: str, found: Attribute, allowed: tuple[str, ...], first: Attribute | None = None) -> None:
    """Raise unless a type is one of those allowed, or the first operand's where that is asked."""
    if allowed == ("=",):
        if found != first:
            fail(f"{what} is {spell(found)}, the first operand {spell(first) if first else 'missing'}")
    elif spell(found) not in allowed:
        fail(f"{what} is {spell(found)}; it takes {', '.join(allowed)}")


class SimtValueOp(PtoOp):
    """Base: ``%r = pto.NAME %a, ... [signed|unsigned] [{width = 16 : i32}] : A, ... -> R``."""

    ROW: ClassVar[SimtRow]
    args = var_operand_def()
    res = var_result_def()
    signedness = opt_prop_def(StringAttr)
    width = opt_prop_def(IntegerAttr)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self._operands)
        if sign_word(self):
            printer.print_string(f" {sign_word(self)}")
        print_dictionary(printer, self.dictionary(skip=("signedness",)))
        printer.print_string(f" : {types_text(self._operands)} -> {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> SimtValueOp:
        values = parse_values(parser)
        sign = parse_sign(parser)
        properties, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        if sign is not None:
            properties["signedness"] = sign
        parser.parse_punctuation(":")
        operands = resolve(parser, values, parse_types(parser, len(values)))
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return cls.create(operands=operands, result_types=[result], properties=properties, attributes=attributes)

    def verify_(self) -> None:
        row = self.ROW
        if len(self._operands) != len(row.operands) or len(self.results) != 1:
            fail(f"takes {len(row.operands)} operands and gives one result")
        first = self._operands[0].type
        for i, (value, allowed) in enumerate(zip(self._operands, row.operands)):
            check_type(f"operand {i + 1}", value.type, allowed, first)
        check_type("the result", self.results[0].type, row.result, first)
        _check_sign(row.sign, sign_word(self), first)
        lanes = number_of(self.properties.get("width"), 32)
        if "width" in self.properties and not row.width:
            fail("has no width")
        if lanes not in WIDTHS:
            fail(f"the width is 16 or 32, not {lanes}")


def _check_sign(policy: str, word: str, first: Attribute) -> None:
    integer = isinstance(first, IntegerType)
    if word and (not policy or not integer):
        fail(f"has no sign for {spell(first)}")
    if not word and integer and policy in ("due", "integers"):
        fail("needs signed or unsigned for integers")


class SimtQueryOp(PtoOp):
    """Base: ``%t = pto.get_tid_x : i32``."""

    BITS: ClassVar[int]
    res = var_result_def()

    def print(self, printer: Printer) -> None:
        print_dictionary(printer, self.attributes)
        printer.print_string(f" : {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> SimtQueryOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(result_types=[parser.parse_type()], attributes=attributes)

    def verify_(self) -> None:
        if self.results[0].type != IntegerType(self.BITS):
            fail(f"gives an i{self.BITS}, not {spell(self.results[0].type)}")


class SimtSyncOp(BareOp):
    """Base: ``pto.syncthreads``; no operands, SIMT code only."""

    PLACED: ClassVar[bool] = True

    def verify_(self) -> None:
        in_threads(self)


def made(base: type[PtoOp], name: str, doc: str, **more: Any) -> type[PtoOp]:
    """Return the operation ``pto.NAME`` of a family: ``base`` with what the table says of this one (``more``)."""
    found = type(f"Simt_{name}", (base,), {"name": f"pto.{name}", "__doc__": doc})
    # The library takes constants in the class's own text only.
    whole: Any = defined(op_definition(found))
    for key, value in more.items():
        setattr(whole, key, value)
    return whole  # type: ignore[no-any-return]


VALUE_OPS = Classes(
    {r.name: partial(made, SimtValueOp, r.name, f"``pto.{r.name}``", ROW=r) for r in VALUE_ROWS}
)
QUERY_OPS = Classes(
    {n: partial(made, SimtQueryOp, n, f"``pto.{n} : i{b}``", BITS=b) for n, b in QUERIES.items()}
)
SYNC_OPS = Classes({n: partial(made, SimtSyncOp, n, f"``pto.{n}``") for n in SYNCS})


@op_definition
class ConvertOp(PtoOp):
    """``%h = pto.convert %x round(r) sat [signed|unsigned] : f32 -> f16``."""

    name = "pto.convert"
    args = var_operand_def()
    res = var_result_def()
    rounding = opt_prop_def(StringAttr)
    saturation = opt_prop_def(StringAttr)
    signedness = opt_prop_def(StringAttr)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self._operands[0])
        words = [self.properties[k].data for k in ("rounding", "saturation")]  # type: ignore[attr-defined]
        printer.print_string(f" round({words[0]}) {words[1]}" + f" {sign_word(self)}".rstrip())
        print_dictionary(printer, self.attributes)
        printer.print_string(f" : {type_text(self._operands[0].type)} -> {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> ConvertOp:
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("round")
        parser.parse_punctuation("(")
        properties: dict[str, Attribute] = {"rounding": StringAttr(_one_of(parser, tuple("rafczoh")))}
        parser.parse_punctuation(")")
        properties["saturation"] = StringAttr(_one_of(parser, ("sat", "nosat")))
        sign = parse_sign(parser)
        if sign is not None:
            properties["signedness"] = sign
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(value, parser.parse_type())
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return cls.create(
            operands=[operand], result_types=[result], properties=properties, attributes=attributes
        )  # fmt: skip

    def verify_(self) -> None:
        from .simt_convert import check_convert

        src, dst = self._operands[0].type, self.results[0].type
        rounding, saturation = (self.properties[k].data for k in ("rounding", "saturation"))  # type: ignore[attr-defined]
        check_convert(spell(src), spell(dst), rounding, saturation, sign_word(self))


def _one_of(parser: Parser, words: tuple[str, ...]) -> str:
    at = parser.pos
    word = parser.parse_optional_identifier()
    if word not in words:
        parser.raise_error(f"expected one of {', '.join(words)}", at)
    return word


def _slot(op: PtoOp, kept: Attribute) -> None:
    in_threads(op)
    if not isinstance(kept, IntegerType) and spell(kept) not in _WIDE:
        fail(f"keeps integers, f16, bf16 and f32, not {spell(kept)}")
    slot = number_of(op.properties.get("slot"), -1)
    if slot < 0:
        fail("needs a slot: {slot = 0}")
    if spell(kept) == "i64" and slot % 2:
        fail(f"64-bit values take an even slot, not {slot}")


@op_definition
class KeepOp(PtoOp):
    """``pto.keep %x {slot = 0} : f32``: the last statements of SIMT code, before at most a barrier."""

    name = "pto.keep"
    PLACED: ClassVar[bool] = True
    args = var_operand_def()
    slot = opt_prop_def(IntegerAttr)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self._operands[0])
        _print_slot(self, printer)
        printer.print_string(f" : {type_text(self._operands[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> KeepOp:
        value = parser.parse_unresolved_operand()
        properties, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(value, parser.parse_type())
        return cls.create(operands=[operand], properties=properties, attributes=attributes)

    def verify_(self) -> None:
        _slot(self, self._operands[0].type)
        after = self.next_op
        while after is not None and after.name == "pto.keep":
            after = after.next_op
        while after is not None and after.name == "pto.syncthreads":
            after = after.next_op
        parent = self.parent_op()
        top = parent is not None and parent.name in ("func.func", "pto.section.simt")
        if not top or not (after is None or after.name == "func.return"):
            fail("values are kept at the end: only pto.syncthreads may stand between and the return")


def _print_slot(op: PtoOp, printer: Printer) -> None:
    printer.print_string(f" {{slot = {number_of(op.properties.get('slot'), 0)}}}")


@op_definition
class ResumeOp(PtoOp):
    """``%x = pto.resume {slot = 0} : f32``: the first statements of SIMT code, after constants."""

    name = "pto.resume"
    PLACED: ClassVar[bool] = True
    res = var_result_def()
    slot = opt_prop_def(IntegerAttr)

    def print(self, printer: Printer) -> None:
        _print_slot(self, printer)
        printer.print_string(f" : {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> ResumeOp:
        properties, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        return cls.create(result_types=[parser.parse_type()], properties=properties, attributes=attributes)

    def verify_(self) -> None:
        _slot(self, self.results[0].type)
        before = self.prev_op
        while before is not None and before.name in ("pto.resume", "arith.constant"):
            before = before.prev_op
        parent = self.parent_op()
        if before is not None or parent is None or parent.name not in ("func.func", "pto.section.simt"):
            fail("kept values are resumed at the start: only constants may stand before")
