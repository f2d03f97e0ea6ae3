"""Collectives and transfers of kernels as notify, wait and data movement: one recipe each, in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.program import Op
from . import movement, transfer
from .allreduce import allreduce
from .exchange import all_to_all_v
from .scatter import reduce_scatter
from .steps import Context, Steps

__all__ = ["RECIPES", "Context", "Recipe", "Steps"]

#: Appends the statements that take an operation's place; returns the operand that its result becomes.
Recipe = Callable[[Steps, Op], Any]

#: Operation name -> recipe. Adding one is a recipe and a line here.
RECIPES: dict[str, Recipe] = {
    "pld.tensor.remote_store": transfer.remote_store,
    "pld.tensor.put": transfer.put,
    "pld.tensor.get": transfer.get,
    "pld.tensor.allreduce": allreduce,
    "pld.tensor.barrier": movement.barrier,
    "pld.tensor.broadcast": movement.broadcast,
    "pld.tensor.reduce_scatter": reduce_scatter,
    "pld.tensor.allgather": movement.allgather,
    "pld.tensor.all_to_all": movement.all_to_all,
    "pld.tensor.all_to_all_v": all_to_all_v,
}
