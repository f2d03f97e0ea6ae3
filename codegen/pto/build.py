"""Cheap construction of functions: builders that append operations to a block.

Operations are created without the library's keyword initialisers, which check every argument: whoever builds
a module calls ``verify_pto`` on the finished one. Attributes and types are shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...ir.diagnostics import Span
from . import arith, scf
from .base import SEGMENTS, constant_of, segments
from .dialect import OPS
from .elements import ELEMENTS
from .families import DPS_OPS
from .making import append, insert, make, name_value
from .movement import TloadOp, TmovOp, TstoreOp
from .printing import location_of
from .tiles import AllocTileOp, SubviewOp, index_array, subview_type
from .types import (
    DYNAMIC,
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    TileBufType,
    view_type,
)
from .views import MakeTensorViewOp, PartitionViewOp
from .words import word

INDEX = IndexType()
Attrs = Mapping[str, Attribute]


class Constants:
    """The constants of one function: each is made once, at the top of the entry block."""

    def __init__(self, entry: Block) -> None:
        self._entry = entry
        self._last: Operation | None = None
        self._made: dict[tuple[object, Attribute, bool], SSAValue] = {}
        self._indices: dict[int, SSAValue] = {}

    def get(self, value: int | float, type_: Attribute) -> SSAValue:
        """Return the constant of an index, integer or float type."""
        # 1, 1.0 and True are one dictionary key, and so are 0.0 and -0.0; the text tells them apart.
        key = (repr(value), type_, isinstance(value, float))
        known = self._made.get(key)
        if known is None:
            known = self._made.setdefault(key, self._make(value, type_))
        return known

    def index(self, value: int) -> SSAValue:
        """Return the constant of type index."""
        known = self._indices.get(value)
        if known is None:
            known = self._indices[value] = self.get(int(value), INDEX)
        return known

    def _make(self, value: int | float, type_: Attribute) -> SSAValue:
        attr = _constant(repr(value), value, type_)
        op = make(arith.ConstantOp, (), (type_,), {"value": attr}, UNKNOWN_LOC)
        if isinstance(type_, IndexType) and int(value) >= 0:
            name_value(op.results[0], f"c{int(value)}")
        insert(self._entry, op, self._last)
        self._last = op
        return op.results[0]


@lru_cache(maxsize=4096)
def _constant(_text: str, value: int | float, type_: Attribute) -> Attribute:
    """Return the (shared) attribute of a constant; the text tells 1 from 1.0, and 0.0 from -0.0."""
    if isinstance(type_, IndexType | IntegerType):
        return IntegerAttr(int(value), type_)
    if isinstance(type_, AnyFloat):
        return FloatAttr(float(value), type_)
    raise ValueError(f"no constants of type {type_}")


class PtoBuilder:
    """Appends operations to one block.

    ``location`` is given to every operation until it is changed; :meth:`at` sets it from a span.
    """

    def __init__(self, block: Block, constants: Constants, location: LocationAttr = UNKNOWN_LOC) -> None:
        self.block = block
        self.constants = constants
        self.location = location

    def at(self, span: Span | None) -> None:
        """Set the location of the operations to come."""
        self.location = UNKNOWN_LOC if span is None else location_of(span)

    def add(self, op: Operation) -> Operation:
        """Append any operation, with the current location."""
        op.location = self.location
        self.block.add_op(op)
        return op

    def made(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        types: Sequence[Attribute],
        properties: dict[str, Attribute],
    ) -> Operation:
        """Append a new operation of a class, which then owns ``properties``."""
        op = make(cls, operands, types, properties, self.location)
        append(self.block, op)
        return op

    def op(
        self,
        name: str,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Attrs | None = None,
    ) -> Operation:
        """Append an operation of this dialect by full name, operands in the generic form's order."""
        return self.made(OPS[name], operands, result_types, dict(properties) if properties else {})

    def constant(self, value: int | float, dtype: str = "index") -> SSAValue:
        """Return a constant; ``dtype`` is ``"index"`` or an element type's spelling."""
        return self.constants.get(value, INDEX if dtype == "index" else ELEMENTS[dtype])

    def index(self, value: int | SSAValue) -> SSAValue:
        """Return an index value, a constant for an int."""
        return self.constants.index(value) if isinstance(value, int) else value

    def dps(
        self, mnemonic: str, ins: Sequence[SSAValue], outs: Sequence[SSAValue], attrs: Attrs | None = None
    ) -> Operation:
        """Append a tile operation, operands in text order: ``dps("tadd", [a, b], [c])``.

        Raises:
            ValueError: no form of the operation has that many operands.
        """
        cls = DPS_OPS[mnemonic]
        lay = cls.layout_of(len(ins), len(outs))
        if lay is None:
            raise ValueError(f"pto.{mnemonic} takes {cls.ROW.form}, not {len(ins)} -> {len(outs)}")
        operands: list[SSAValue] = [*ins, *outs]
        if not lay.in_order:
            places = lay.ins + lay.outs
            operands = [value for _, value in sorted(zip(places, operands, strict=True), key=_first)]
        properties = dict(attrs) if attrs else {}
        if cls.SEGMENTED:
            properties[SEGMENTS] = segments(*lay.sizes)
        return self.made(cls, operands, (), properties)

    def cvt(
        self, src: SSAValue, dst: SSAValue, mode: str, saturate: bool, tmp: SSAValue | None = None
    ) -> Operation:
        """Append ``pto.tcvt`` with the round mode (``"RINT"`` ...) and the saturation spelled."""
        attrs = {
            "rmode": word("round_mode", mode),
            "sat_mode": word("saturation_mode", "ON" if saturate else "OFF"),
        }
        return self.dps("tcvt", [src] if tmp is None else [src, tmp], [dst], attrs)

    def tensor_view(
        self,
        ptr: SSAValue,
        shape: Sequence[int | SSAValue],
        strides: Sequence[int | SSAValue],
        layout: str | None = None,
        static: bool = False,
        name: str | None = None,
    ) -> SSAValue:
        """Append ``pto.make_tensor_view``; strides in elements. ``static`` puts int extents into the type."""
        assert isinstance(ptr.type, PtrType)
        dims = tuple(n if static and isinstance(n, int) else DYNAMIC for n in shape)
        operands = [ptr, *map(self.index, shape), *map(self.index, strides)]
        properties: dict[str, Attribute] = {SEGMENTS: segments(1, len(shape), len(strides))}
        if layout is not None:
            properties["layout"] = word("layout", layout)
        made = view_type(TensorViewType, dims, ptr.type.element)
        return self._result(MakeTensorViewOp, operands, made, properties, name)

    def partition(
        self,
        view: SSAValue,
        offsets: Sequence[int | SSAValue],
        sizes: Sequence[int | SSAValue],
        name: str | None = None,
    ) -> SSAValue:
        """Append ``pto.partition_view``; sizes that are constants become static dimensions of the type."""
        assert isinstance(view.type, TensorViewType)
        known = [n if isinstance(n, int) else constant_of(n) for n in sizes]
        dims = tuple([DYNAMIC if n is None else n for n in known])
        extents = [self.index(n) for n in sizes]
        made = view_type(PartitionTensorViewType, dims, view.type.element)
        operands = [view, *map(self.index, offsets), *extents]
        properties: dict[str, Attribute] = {SEGMENTS: segments(1, len(offsets), len(sizes))}
        return self._result(PartitionViewOp, operands, made, properties, name)

    def alloc(
        self,
        type_: TileBufType,
        valid: tuple[int | SSAValue, int | SSAValue] | None = None,
        addr: int | None = None,
        name: str | None = None,
    ) -> SSAValue:
        """Append ``pto.alloc_tile``; ``valid`` gives the extents that are ``?`` in the type.

        ``addr`` is in bytes.
        """
        operands = [] if addr is None else [self.constant(addr, "i64")]
        sizes = [len(operands)]
        for axis, extent in enumerate(type_.valid):
            there = extent == DYNAMIC and valid is not None
            sizes.append(int(there))
            if there and valid is not None:
                operands.append(self.index(valid[axis]))
        return self._result(AllocTileOp, operands, type_, {SEGMENTS: segments(*sizes)}, name)

    def subview(
        self,
        source: SSAValue,
        offsets: Sequence[int | SSAValue],
        sizes: tuple[int, int],
        name: str | None = None,
    ) -> SSAValue:
        """Append ``pto.subview``: a window of a tile that shares its storage."""
        assert isinstance(source.type, TileBufType)
        properties: dict[str, Attribute] = {
            "sizes": index_array(sizes), SEGMENTS: segments(1, len(offsets), 0, 0)
        }
        operands = [source, *map(self.index, offsets)]
        return self._result(SubviewOp, operands, subview_type(source.type, sizes), properties, name)

    def load(self, view: SSAValue, tile: SSAValue) -> Operation:
        """Append ``pto.tload``: partition view to tile."""
        return self.made(TloadOp, (view, tile), (), {SEGMENTS: segments(1, 1, 0, 0, 0, 0)})

    def store(self, tile: SSAValue, view: SSAValue, atomic: bool = False) -> Operation:
        """Append ``pto.tstore``: tile to partition view, adding to memory when ``atomic``."""
        properties: dict[str, Attribute] = {SEGMENTS: segments(1, 1, 0, 0)}
        if atomic:
            properties["atomicType"] = word("atomic_type", "atomic_add")
        return self.made(TstoreOp, (tile, view), (), properties)

    def move(self, src: SSAValue, dst: SSAValue) -> Operation:
        """Append ``pto.tmov``: tile to tile."""
        return self.made(TmovOp, (src, dst), (), {SEGMENTS: segments(1, 1, 0, 0)})

    def barrier(self, pipe: str = "PIPE_ALL") -> Operation:
        """Append ``pto.barrier``."""
        return self.op("pto.barrier", properties={"pipe": word("pipe", pipe)})

    @contextmanager
    def loop(
        self,
        start: int | SSAValue,
        stop: int | SSAValue,
        step: int | SSAValue = 1,
        carried: Sequence[SSAValue] = (),
        name: str = "i",
    ) -> Iterator[Loop]:
        """Append ``scf.for``; inside the ``with`` block build into the loop's ``body``, set its ``yields``.

        ``results`` of the loop are there afterwards.
        """
        block = Block(arg_types=[INDEX, *(value.type for value in carried)])
        block.args[0].name_hint = name
        made = Loop(self._nested(block), block.args[0], tuple(block.args[1:]))
        yield made
        block.add_op(scf.YieldOp.create(operands=list(made.yields), location=self.location))
        bounds = [self.index(n) for n in (start, stop, step)]
        op = scf.ForOp.create(
            operands=[*bounds, *carried],
            result_types=[value.type for value in carried],
            regions=[Region(block)],
        )
        self.add(op)
        made.results = tuple(op.results)

    @contextmanager
    def branch(self, condition: SSAValue, types: Sequence[Attribute] = ()) -> Iterator[Branch]:
        """Append ``scf.if``; build into ``then`` and ``other`` and set their yields.

        Without result types and with nothing built into ``other`` no else part is written. ``results``
        are there afterwards.
        """
        blocks = (Block(), Block())
        made = Branch(self._nested(blocks[0]), self._nested(blocks[1]))
        yield made
        empty = not types and blocks[1].is_empty
        for block, values in zip(blocks, (made.then_yields, made.other_yields), strict=True):
            if block is blocks[0] or not empty:
                block.add_op(scf.YieldOp.create(operands=list(values), location=self.location))
        regions = [Region(blocks[0]), Region() if empty else Region(blocks[1])]
        op = scf.IfOp.create(operands=[condition], result_types=list(types), regions=regions)
        self.add(op)
        made.results = tuple(op.results)

    @contextmanager
    def section(self, kind: str) -> Iterator[PtoBuilder]:
        """Append ``pto.section.vector`` or ``pto.section.cube`` and build into it."""
        block = Block()
        yield self._nested(block)
        self.add(OPS[f"pto.section.{kind}"].create(regions=[Region(block)]))

    def _nested(self, block: Block) -> PtoBuilder:
        return PtoBuilder(block, self.constants, self.location)

    def _result(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        properties: dict[str, Attribute],
        name: str | None,
    ) -> SSAValue:
        """Append a new operation of one result, and return that."""
        (result,) = self.made(cls, operands, (type_,), properties).results
        if name is not None:
            name_value(result, name)
        return result


@dataclass
class Loop:
    """A loop under construction: its body, induction variable, carried values; set ``yields``."""

    body: PtoBuilder
    index: SSAValue
    carried: tuple[SSAValue, ...]
    yields: Sequence[SSAValue] = ()
    results: tuple[SSAValue, ...] = ()


@dataclass
class Branch:
    """A branch under construction: both parts; set ``then_yields`` and ``other_yields``."""

    then: PtoBuilder
    other: PtoBuilder
    then_yields: Sequence[SSAValue] = ()
    other_yields: Sequence[SSAValue] = ()
    results: tuple[SSAValue, ...] = ()


def _first(item: tuple[int, SSAValue]) -> int:
    return item[0]
