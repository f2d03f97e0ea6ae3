"""The dialect as a whole: its operations, types and attributes, and a context that knows them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import cast

from xdsl.context import Context
from xdsl.dialects import builtin, func, scf
from xdsl.ir import Attribute, Dialect

from . import comm, elements, gather, movement, scalars, simt, simt_memory, sort, sync, tiles, types, views
from .base import Classes, PtoOp
from .families import DPS_OPS
from .intrinsics import ARITH_DIALECT, llvm_dialect
from .words import WORD_ATTRS

_MODULES = (views, tiles, movement, scalars, sync, comm, gather, sort, simt, simt_memory)
_MADE = (simt.VALUE_OPS, simt.QUERY_OPS, simt.SYNC_OPS, simt_memory.MEMORY_OPS)


def _makers() -> dict[str, Callable[[], type[PtoOp]]]:
    """Return what gives the class of each operation, by full name, in order of definition."""
    found: dict[str, Callable[[], type[PtoOp]]] = {}
    for module in _MODULES:
        for item in vars(module).values():
            if isinstance(item, type) and issubclass(item, PtoOp) and "name" in vars(item):
                found[item.name] = partial(_same, item)
    for classes in (*_MADE, DPS_OPS):
        found.update((f"pto.{name}", partial(classes.__getitem__, name)) for name in classes)
    return found


def _same(item: type[PtoOp]) -> type[PtoOp]:
    return item


#: Full name (``"pto.tadd"``) to class, for every operation of the dialect.
OPS: Classes[type[PtoOp]] = Classes(_makers())

_TYPES = (
    types.PtrType,
    types.TensorViewType,
    types.PartitionTensorViewType,
    types.TileBufType,
    types.AsyncSessionType,
    types.AsyncEventType,
    elements.HiF8Type,
    elements.HiF8x2Type,
    elements.F8E8M0Type,
    elements.F4E1M2x2Type,
    elements.F4E2M1x2Type,
)


@cache
def pto_dialect() -> Dialect:
    """Return the dialect with all its operations."""
    return Dialect("pto", list(OPS.values()), cast(list[type[Attribute]], [*_TYPES, *WORD_ATTRS.values()]))


def pto_context() -> Context:
    """Return a context with this dialect and the ones a PTO file may use around it."""
    context = Context()
    for dialect in (builtin.Builtin, func.Func, ARITH_DIALECT, scf.Scf, pto_dialect()):
        context.load_dialect(dialect)
    context.register_dialect("llvm", llvm_dialect)
    return context
