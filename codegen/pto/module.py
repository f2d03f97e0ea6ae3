"""Construction of modules and functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import UNKNOWN_LOC, FunctionType, LocationAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...ir.diagnostics import Span
from . import func
from .build import Constants, PtoBuilder
from .making import name_value
from .printing import location_of
from .words import word

_ENTRY = UnitAttr()
#: Attributes that modules and functions have again and again; the library checks each that is made.
_text = lru_cache(maxsize=4096)(StringAttr)


@lru_cache(maxsize=4096)
def _signature(args: tuple[Attribute, ...], results: tuple[Attribute, ...]) -> FunctionType:
    return FunctionType.from_lists(args, results)


class FunctionBuilder:
    """A function under construction: ``args`` by name, ``body`` to build into, then :meth:`finish`."""

    def __init__(self, op: func.FuncOp, block: Block, names: Sequence[str]) -> None:
        self.op = op
        self.args: dict[str, SSAValue] = dict(zip(names, block.args, strict=True))
        self.body = PtoBuilder(block, Constants(block))

    def finish(self, values: Sequence[SSAValue] = ()) -> None:
        """Append the return."""
        self.body.add(func.ReturnOp.create(operands=list(values)))


class ModuleBuilder:
    """A module under construction; ``arch`` becomes its ``pto.target_arch``."""

    def __init__(self, arch: str | None = None) -> None:
        self._block = Block()
        self._declared: set[str] = set()
        attributes = {} if arch is None else {"pto.target_arch": _text(arch)}
        self.op: ModuleOp = ModuleOp.create(regions=[Region(self._block)], attributes=attributes)

    def declare(self, name: str, args: Sequence[Attribute]) -> None:
        """Declare a function that is defined elsewhere, once."""
        if name in self._declared:
            return
        self._declared.add(name)
        op = func.FuncOp.create(
            properties={
                "sym_name": _text(name),
                "function_type": _signature(tuple(args), ()),
                "sym_visibility": _text("private"),
            },
            regions=[Region()],
        )
        first = self._block.first_op
        if first is None:
            self._block.add_op(op)
        else:
            self._block.insert_ops_before([op], first)

    def add(self, op: Operation) -> None:
        """Append a function that was built elsewhere."""
        self._block.add_op(op)

    def function(
        self,
        name: str,
        args: Sequence[tuple[str, Attribute]],
        *,
        results: Sequence[Attribute] = (),
        entry: bool = True,
        kernel_kind: str | None = "vector",
        span: Span | None = None,
    ) -> FunctionBuilder:
        """Add a function.

        Args:
            name: symbol name.
            args: (name, type) of each argument.
            results: types of the returned values.
            entry: mark it as a kernel (``pto.entry``).
            kernel_kind: ``"vector"``, ``"cube"`` or None.
            span: source of the function.
        """
        types = [type_ for _, type_ in args]
        block = Block(arg_types=types)
        for (hint, _), value in zip(args, block.args, strict=True):
            name_value(value, hint)
        attributes: dict[str, Attribute] = {}
        if entry:
            attributes["pto.entry"] = _ENTRY
        if kernel_kind is not None:
            attributes["pto.kernel_kind"] = word("kernel_kind", kernel_kind)
        place: LocationAttr = UNKNOWN_LOC if span is None else location_of(span)
        op = func.FuncOp.create(
            properties={
                "sym_name": _text(name),
                "function_type": _signature(tuple(types), tuple(results)),
            },
            attributes=attributes,
            regions=[Region(block)],
            location=place,
        )
        self._block.add_op(op)
        return FunctionBuilder(op, block, [hint for hint, _ in args])
