"""Destination-passing operations: ``pto.NAME ins(%a, %b : A, B) outs(%c : C)``, made from one-line rows.

A row gives the mnemonic and the operands in the order of the text::

    DpsRow("tsels", "mask src tmp? $scalar -> dst", ...)

``name`` is a tile, ``$name`` a signless integer or float scalar, ``!name`` an f32, ``%name`` a signless
integer, ``+name`` any integer, ``#name`` an index, ``~name`` a tile or any scalar, ``@name`` a global view,
``&name`` a tile or a global view; a trailing ``?`` marks an optional operand. The classes are generated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from xdsl.dialects.builtin import (
    AnyFloatConstr,
    Float32Type,
    IndexType,
    IntegerType,
    SignlessIntegerConstraint,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    operand_def,
    opt_operand_def,
    opt_prop_def,
)
from xdsl.printer import Printer

from .base import (
    SEGMENTS,
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
from .types import PartitionTensorViewType, TensorViewType, TileBufType
from .words import WORD_ATTRS

if TYPE_CHECKING:
    from xdsl.parser import Parser

_TILE = BaseAttr(TileBufType)
_VIEW = BaseAttr(PartitionTensorViewType) | BaseAttr(TensorViewType)
_ANY_SCALAR = BaseAttr(IntegerType) | AnyFloatConstr
_SIGNLESS = SignlessIntegerConstraint
#: What each mark in a form admits.
_KINDS: dict[str, Any] = {
    "": _TILE,
    "$": _SIGNLESS | AnyFloatConstr,
    "!": BaseAttr(Float32Type),
    "%": _SIGNLESS,
    "+": BaseAttr(IntegerType),
    "#": BaseAttr(IndexType),
    "~": _TILE | _ANY_SCALAR,
    "@": _VIEW,
    "&": _TILE | _VIEW,
}


class Slot(NamedTuple):
    """One operand of a form."""

    name: str
    kind: str
    optional: bool


class Layout(NamedTuple):
    """Where the operands of the text stand among an operation's operands, for one choice of optionals."""

    ins: tuple[int, ...]
    outs: tuple[int, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    #: The text's order is the generic form's.
    in_order: bool


Check = Callable[["DpsOp"], None]
ArchCheck = Callable[["DpsOp", str], None]


@dataclass(frozen=True)
class DpsRow:
    """One operation.

    Attributes:
        mnemonic: name without ``pto.``.
        form: operands in text order, see the module's docstring.
        check: target-independent rule, or None.
        arch_check: rule of one target branch, or None.
        attrs: attribute name to word family (``"cmp"``), or to None for any attribute.
        inside: the attribute dictionary stands inside ``ins(...)``.
        order: operand names in the generic form's order, when it is not the text's.
        more: optional operands only the generic form can give.
        surface: attribute name to its name in the custom text.
    """

    mnemonic: str
    form: str
    check: Check | None = None
    arch_check: ArchCheck | None = None
    attrs: Mapping[str, str | None] = field(default_factory=dict)
    inside: bool = False
    order: str = ""
    more: str = ""
    surface: Mapping[str, str] = field(default_factory=dict)


def _slots(text: str) -> tuple[Slot, ...]:
    found = []
    for item in text.split():
        kind = item[0] if item[0] in _KINDS else ""
        found.append(Slot(item.strip("$!%+#~@&?"), kind, item.endswith("?")))
    return tuple(found)


def _layouts(
    ins: tuple[Slot, ...], outs: tuple[Slot, ...], more: tuple[Slot, ...], order: tuple[str, ...]
) -> list[Layout]:
    """List the layouts for every choice of optional operands, none first."""
    both = ins + outs
    optional = [slot.name for slot in both + more if slot.optional]
    made = []
    for choice in product((False, True), repeat=len(optional)):
        absent = {name for name, there in zip(optional, choice, strict=True) if not there}
        names = tuple(name for name in order if name not in absent)
        place = {name: i for i, name in enumerate(names)}
        first = tuple(place[s.name] for s in ins if s.name in place)
        last = tuple(place[s.name] for s in outs if s.name in place)
        sizes = tuple(int(name in place) for name in order)
        made.append(Layout(first, last, names, sizes, first + last == tuple(range(len(names)))))
    return made


class DpsOp(PtoOp):
    """Base of the generated operations."""

    # The library wants class constants in capitals, annotated in the class itself.
    ROW: ClassVar[DpsRow]
    LAYOUTS: ClassVar[list[Layout]]
    SEGMENTED: ClassVar[bool]

    def layout(self) -> Layout:
        """Return where each operand stands in this operation."""
        if self.SEGMENTED:
            sizes = segment_sizes(self)
            return next((lay for lay in self.LAYOUTS if lay.sizes == sizes), self.LAYOUTS[0])
        count = len(self._operands)
        return next((lay for lay in self.LAYOUTS if len(lay.names) == count), self.LAYOUTS[0])

    def named(self) -> dict[str, SSAValue]:
        """Return the operands that are there, by name."""
        return dict(zip(self.layout().names, self._operands, strict=True))

    def needs_generic(self) -> bool:
        if not self.ROW.more:
            return False
        lay = self.layout()
        return len(lay.ins) + len(lay.outs) != len(lay.names)

    def print(self, printer: Printer) -> None:
        lay = self.layout()
        operands = self._operands
        ins = [operands[i] for i in lay.ins]
        outs = [operands[i] for i in lay.outs]
        entries = self.dictionary()
        printer.print_string(" ins(")
        print_values(printer, ins)
        if self.ROW.inside:
            print_dictionary(printer, entries)
        printer.print_string(f" : {types_text(ins)}) outs(")
        print_values(printer, outs)
        printer.print_string(f" : {types_text(outs)})")
        if not self.ROW.inside:
            print_dictionary(printer, entries)

    @classmethod
    def parse(cls, parser: Parser) -> DpsOp:
        at = parser.pos
        parser.parse_keyword("ins")
        parser.parse_punctuation("(")
        ins = parse_values(parser)
        entries: dict[str, Attribute] = parser.parse_optional_attr_dict() if cls.ROW.inside else {}
        parser.parse_punctuation(":")
        in_types = parse_types(parser, len(ins))
        parser.parse_punctuation(")")
        parser.parse_keyword("outs")
        parser.parse_punctuation("(")
        outs = parse_values(parser)
        parser.parse_punctuation(":")
        out_types = parse_types(parser, len(outs))
        parser.parse_punctuation(")")
        if not cls.ROW.inside:
            entries = parser.parse_optional_attr_dict()
        lay = cls.layout_of(len(ins), len(outs))
        if lay is None:
            parser.raise_error(f"{cls.name} takes {cls.ROW.form}", at)
        found = resolve(parser, ins, in_types) + resolve(parser, outs, out_types)
        operands = [value for _, value in sorted(zip(lay.ins + lay.outs, found, strict=True), key=_place)]
        properties, attributes = cls.split(parser, entries)
        if cls.SEGMENTED:
            properties[SEGMENTS] = segments(*lay.sizes)
        return cls.create(operands=operands, properties=properties, attributes=attributes)

    @classmethod
    def layout_of(cls, ins: int, outs: int) -> Layout | None:
        """Return the layout with that many operands in each list, or None."""
        for layout in cls.LAYOUTS:
            if len(layout.ins) == ins and len(layout.outs) == outs:
                return layout
        return None

    def verify_(self) -> None:
        if self.ROW.check is not None:
            self.ROW.check(self)

    def verify_arch(self, arch: str) -> None:
        if self.ROW.arch_check is not None:
            self.ROW.arch_check(self, arch)


def _place(item: tuple[int, SSAValue]) -> int:
    return item[0]


def make_op(row: DpsRow) -> type[DpsOp]:
    """Generate the operation class of a row."""
    ins_text, outs_text = row.form.split("->")
    ins, outs = _slots(ins_text), _slots(outs_text)
    more = _slots(row.more)
    slots = {slot.name: slot for slot in ins + outs + more}
    order = tuple(row.order.split()) or tuple(slots)
    segmented = sum(slot.optional for slot in slots.values()) > 1
    body: dict[str, Any] = {
        "name": f"pto.{row.mnemonic}",
        "__module__": __name__,
        "__doc__": f"``pto.{row.mnemonic}``: {row.form}.",
        "__annotations__": dict.fromkeys(("ROW", "LAYOUTS", "SEGMENTED", "SURFACE"), ClassVar),
        "ROW": row,
        "LAYOUTS": _layouts(ins, outs, more, order),
        "SEGMENTED": segmented,
        "SURFACE": row.surface,
    }
    for name in order:
        define: Any = opt_operand_def if slots[name].optional else operand_def
        body[name] = define(_KINDS[slots[name].kind])
    for name, family in row.attrs.items():
        body[f"{name}_attr"] = (
            opt_prop_def(WORD_ATTRS[family], prop_name=name)
            if family
            else opt_prop_def(Attribute, prop_name=name)
        )
    if segmented:
        body["irdl_options"] = (AttrSizedOperandSegments(as_property=True),)
    title = "".join(part.capitalize() for part in row.mnemonic.replace(".", "_").split("_"))
    # A class object made at run time has no static type to give to the decorator.
    cls: Any = type(f"{title}Op", (DpsOp,), body)
    made: type[DpsOp] = op_definition(cls)
    return made
