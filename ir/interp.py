"""The exact reference interpreter: what a program means, bit for bit.

Tiles are :class:`TileArray` values (a physical array of which a leading rectangle is valid, the rest
undefined), tensors are mutable arrays, scalars are Python numbers of their dtype: integers wrap, floats are
rounded to nearest even. Loops of every kind run sequentially.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import ops as _ops
from .diagnostics import error
from .interp_eval import eval_op, evaluator
from .interp_flow import compile_block
from .interp_frame import Code, Machine, Probe
from .interp_io import bind_inputs, collect, to_storage
from .program import Function, Op, Program, require_program, walk
from .simt import launch
from .simt_threads import WARP
from .sizes import require_sizes
from .tilearray import TileArray, poison

__all__ = ["TileArray", "entry", "eval_op", "evaluator", "execute", "poison", "run", "to_storage"]

#: Statements a run may execute unless told otherwise.
MAX_STEPS = 10_000_000
_KEPT = 64

_compiled: OrderedDict[tuple[int, ...], tuple[tuple[Function, ...], dict[str, Code]]] = OrderedDict()
_loaded = _ops  # importing the families declares the operations


def run(
    program: Program | Function,
    inputs: Mapping[str, Any],
    *,
    function: str | None = None,
    dims: Mapping[str, int] | None = None,
    max_steps: int = MAX_STEPS,
) -> dict[str, Any]:
    """Run a function on inputs by parameter name and return its outputs.

    ``inputs``: arrays in ``dtype.storage`` or losslessly convertible to it (see
    :func:`~tilegg.ir.interp_io.to_storage`: bit codes, ml_dtypes arrays), Python numbers for scalars. An
    ``Out`` parameter may be left out; it starts with undefined contents. Arrays given are not changed.
    ``function``: which function of the program, needed when there are several entry points. ``dims``: values
    of dynamic dimensions that no input's shape gives.

    A SIMT entry runs on one warp, and its results are arrays of one element per thread.

    Outputs: each ``Out`` or ``InOut`` parameter by its name, then results that are not these arrays: as
    ``return``, or ``return_0``, ``return_1``... of several. Tiles come out as their valid region.

    Raises TG030 when the inputs do not fit the parameters or ``dims`` names no size of the program, TG032 when a
    statement cannot be evaluated or ``max_steps`` statements were not enough.
    """
    require_program(program, "run", Function)
    require_sizes(dims or {}, [program], "dims")
    f = entry(program, function)
    outputs, _ = execute(program, f, inputs, dims or {}, max_steps)
    return outputs


def execute(
    program: Program | Function,
    f: Function,
    inputs: Mapping[str, Any],
    dims: Mapping[str, int],
    max_steps: int = MAX_STEPS,
    watch: bool = False,
    probe: Probe | None = None,
) -> tuple[dict[str, Any], bool]:
    """Run ``f`` as :func:`run` does; with ``watch`` also tell whether every ``assume`` held.

    ``probe`` is shown the operations of tiles and tensors as they are executed.
    """
    codes = _compile((program,) if isinstance(program, Function) else program.functions)
    values, names = bind_inputs(f, inputs, dims)
    machine = Machine(codes, max_steps)
    machine.watch, machine.probe = watch, probe
    with np.errstate(all="ignore"):
        if f.attrs.get("type", "").endswith("SimtEntry"):
            results = launch({name: c.function for name, c in codes.items()}, f.name, [WARP, 1, 1], values)
        else:
            results = codes[f.name].invoke(machine, values, names)
    return collect(f, values, results), not machine.broken


def entry(program: Program | Function, name: str | None = None) -> Function:
    """Return the named function, or the only one that no other calls; raises TG030."""
    if isinstance(program, Function):
        return program
    if name is not None:
        for f in program.functions:
            if f.name == name:
                return f
        known = ", ".join(f.name for f in program.functions)
        raise error("TG030", f"the program has no function {name!r}", hint=f"it has {known or 'none'}")
    ops = [s for f in program.functions for s in walk(f.body) if isinstance(s, Op)]
    called = {s.attrs.get("callee") for s in ops if s.name in ("call", "pto.simt_launch")}
    free = [f for f in program.functions if f.name not in called]
    if len(free) != 1:
        names = ", ".join(f.name for f in free) or "none"
        raise error("TG030", "the program has not one entry function", hint=f"name one; not called: {names}")
    return free[0]


def _compile(functions: tuple[Function, ...]) -> dict[str, Code]:
    """Return the compiled functions by name, from a small cache (functions are immutable values)."""
    key = tuple(map(id, functions))
    found = _compiled.get(key)
    if found is None:
        # The entry holds the functions, so that their ids stay theirs.
        found = _compiled[key] = (functions, {f.name: Code(f, compile_block) for f in functions})
        if len(_compiled) > _KEPT:
            _compiled.popitem(last=False)
    return found[1]
