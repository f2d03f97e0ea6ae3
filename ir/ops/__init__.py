"""The declared operations, one module per family; importing this package registers them all."""

from . import (
    convert,
    distributed,
    distributed_collectives,
    distributed_system,
    elementwise,
    memory,
    reduce,
    scalars,
    select,
)

__all__ = [
    "convert",
    "distributed",
    "distributed_collectives",
    "distributed_system",
    "elementwise",
    "memory",
    "reduce",
    "scalars",
    "select",
]
