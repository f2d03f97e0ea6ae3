"""The dialect as a whole: its operations, types and attributes, and a context that knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

from xdsl.ir import Attribute, Dialect

from . import elements, types
from .base import PtoOp, defined
from .classes import Classes
from .families import DPS_OPS
from .words import WORD_ATTRS

if TYPE_CHECKING:
    from xdsl.context import Context

#: The modules with operations, in the order in which they are looked at for a name.
_MODULES = ("views", "tiles", "movement", "scalars", "sync", "comm", "gather", "sort", "simt", "simt_memory")
#: Tables of operations in them.
_TABLES = ("VALUE_OPS", "QUERY_OPS", "SYNC_OPS", "MEMORY_OPS")


def _makers() -> Iterator[dict[str, Callable[[], type[PtoOp]]]]:
    """Give what gives the class of each operation, by full name, module by module."""
    for name in _MODULES:
        module = vars(import_module(f".{name}", __package__))
        found: dict[str, Callable[[], type[PtoOp]]] = {}
        for item in module.values():
            if isinstance(item, type) and issubclass(item, PtoOp) and "name" in vars(item):
                found[item.name] = partial(defined, item)
        for table in _TABLES:
            found.update(_of(module.get(table, {})))
        yield found


def _of(classes: Mapping[str, type[PtoOp]]) -> dict[str, Callable[[], type[PtoOp]]]:
    return {f"pto.{name}": partial(_from, classes, name) for name in classes}


def _from(classes: Mapping[str, type[PtoOp]], name: str) -> type[PtoOp]:
    return defined(classes[name])


#: Full name (``"pto.tadd"``) to class, for every operation of the dialect.
OPS: Classes[type[PtoOp]] = Classes(_of(DPS_OPS), _makers())

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
    from xdsl.context import Context
    from xdsl.dialects import builtin, func, scf

    from .intrinsics import ARITH_DIALECT, llvm_dialect

    context = Context()
    for dialect in (builtin.Builtin, func.Func, ARITH_DIALECT, scf.Scf, pto_dialect()):
        context.load_dialect(dialect)
    context.register_dialect("llvm", llvm_dialect)
    return context
