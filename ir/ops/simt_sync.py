"""Synchronisation of SIMT threads, state that outlives a launch, and the launch itself.

All threads of a launch run in step in the interpreter, so that a barrier only has to check that they all come to it.
"""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from ..classification import Classification
from ..diagnostics import error
from ..lanes import Arr
from ..op import AnyValue, Call, Dims, DTypeAttr, Env, Int, Scalar, Word, op
from ..types import Type, scalar
from ._scalar_result import FLOATS, dtype_at, require_listed

FAMILY = "SIMT synchronisation and state"
_KEPT = ("INT32", "UINT32", "INT64", "UINT64", *FLOATS)
#: Slots of kept values a thread has.
SLOTS = 16


def _record(name: str, types: tuple[str, ...] = (), note: str = "", domain: Any = "simt") -> Classification:
    section = "simt" if domain == "simt" else ""
    return Classification(
        "J", domain, "keep SIMT-only", types, (), "hivm", section, f"pto.{name}", {"any": f"llvm.hivm.{name}"}, note
    )


def _nothing(call: Call) -> Type | None:
    return None


@op("pto.syncthreads", result=_nothing, family=FAMILY, effect="sync", scalar=_record("syncthreads"))
def syncthreads(*, env: Env) -> Any:
    """Every thread of the block waits for all the others. Raises TG059 where some are not active."""
    if not env.active.all():  # type: ignore[attr-defined]
        stray = int(np.flatnonzero(~env.active)[0])  # type: ignore[attr-defined]
        reason = f"thread {stray} does not come here"
        raise error("TG059", "pto.syncthreads in a branch that not all threads take", reason=reason)


@op("pto.threadfence", result=_nothing, family=FAMILY, effect="sync", scalar=_record("threadfence"))
def threadfence(*, env: Env) -> Any:
    """Writes before it are visible to the whole device before those after it."""


@op("pto.threadfence_block", result=_nothing, family=FAMILY, effect="sync", scalar=_record("threadfence_block"))
def threadfence_block(*, env: Env) -> Any:
    """Writes before it are visible to the block before those after it."""


def _check_slot(call: Call) -> None:
    if not 0 <= call.attr("slot") < SLOTS:
        call.fail("TG004", f"there is no slot {call.attr('slot')}", hint=f"slots are 0 to {SLOTS - 1}")


def _keep_type(call: Call) -> Type | None:
    _check_slot(call)
    require_listed(call, dtype_at(call, 0))
    return None


@op("pto.keep", result=_keep_type, family=FAMILY, effect="write", scalar=_record("keep", _KEPT))
def keep(value: Scalar, *, slot: Int = 0, env: Env) -> Any:
    """Keep each thread's value in a slot for a later launch of as many threads."""
    kept, active = env.state.kept, env.active  # type: ignore[attr-defined]
    whole: Arr = np.broadcast_to(np.asarray(value), active.shape)
    kept[slot] = np.where(active, whole, kept[slot]) if slot in kept else whole.copy()


def _resume_type(call: Call) -> Type:
    _check_slot(call)
    return scalar(require_listed(call, call.attr("dtype")))


@op("pto.resume", result=_resume_type, family=FAMILY, effect="read", scalar=_record("resume", _KEPT))
def resume(dtype: DTypeAttr, *, slot: Int = 0, env: Env) -> Any:
    """The value this thread kept in a slot."""
    found = env.state.kept.get(slot)  # type: ignore[attr-defined]
    if found is None or found.size != env.active.size:  # type: ignore[attr-defined]
        raise error("TG032", f"nothing was kept in slot {slot} by as many threads")
    return found


@op("pto.simt_launch", result=_nothing, family=FAMILY, effect="write",
    scalar=_record("simt_launch", (), "starts SIMT threads, so it stands outside of them", "ordinary"))  # fmt: skip
def simt_launch(
    callee: Word, grid: Dims, a0: AnyValue = None, a1: AnyValue = None, a2: AnyValue = None, a3: AnyValue = None,
    a4: AnyValue = None, a5: AnyValue = None, a6: AnyValue = None, a7: AnyValue = None,
) -> Any:  # fmt: skip
    """Run a SIMT function of the program on ``grid`` = [x, y, z] threads with up to eight arguments."""
    raise ValueError("a launch needs the program around it")
