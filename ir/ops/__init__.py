"""The declared operations, one module per family; importing this package registers them all."""

from . import convert, elementwise, memory, reduce, scalars, select

__all__ = ["convert", "elementwise", "memory", "reduce", "scalars", "select"]
