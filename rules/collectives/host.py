"""The mode of an allreduce that a host function or a chip's orchestration calls with ``mode="auto"``.

Such calls are left to the runtime, which knows a mesh and a ring, so the choice is made here and written down.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...ir.distributed_checks import ring_signal_problem
from ...ir.levels import HOST
from ...ir.program import Op, Value
from ...ir.types import TensorType, static
from ..target import Target
from .choose import choose, link_model


def is_auto(op: Op) -> bool:
    """Return whether an operation is an allreduce whose mode is open."""
    return op.name == "pld.tensor.allreduce" and op.attrs.get("mode") == "auto"


def host_mode(op: Op, target: Target | None) -> tuple[Op, str]:
    """Return the call with its mode, and why; a ring needs a signal with a row for each of its rounds."""
    window, signal = op.operands
    ranks = _ring_ranks(signal)
    size = static(window.type.shape) if isinstance(window, Value) and isinstance(window.type, TensorType) else None
    mode, why = "mesh", "mesh: "
    if ranks is None or op.attrs.get("core_num", 1) != 1:
        why += "the signal has no cells for the rounds of a ring"
    elif size is None:
        why += "the size is known at run time only"
    else:
        count = 1
        for n in size:
            count *= n
        found = choose(link_model(target), count, window.type.dtype, ranks)  # type: ignore[union-attr]
        mode, why = found.mode, found.text()
    attrs = {k: v for k, v in op.attrs.items() if k != "mode"}
    return replace(op, attrs=attrs if mode == "mesh" else {**attrs, "mode": mode}), why


def _ring_ranks(signal: Any) -> int | None:
    """Return the number of ranks of a ring's signal, ``None`` for another signal."""
    if not isinstance(signal, Value) or not isinstance(signal.type, TensorType):
        return None
    shape = static(signal.type.shape)
    if shape is None or len(shape) != 2 or shape[1] < 2 or ring_signal_problem(signal.type, HOST):
        return None
    return shape[1]
