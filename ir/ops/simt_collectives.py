"""Operations across the lanes of a warp: votes, shuffles, reductions, and the all-reduce built from them.

Only active threads take part. Types: assembler v0.60 verifiers. A shuffle that names a lane outside of its segment
gives the thread its own value, as do other SIMT targets; what an inactive lane hands out is left open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy_numpy as np
from ..classification import Classification
from ..lanes import Arr, settle
from ..op import OPS, Call, Env, Int, Scalar, op
from ..simt_threads import WARP
from ..types import Type, scalar
from ._scalar_result import dtype_at, require_listed, to, unary

FAMILY = "SIMT collectives"


def _record(types: tuple[str, ...], packed: tuple[str, ...], name: str, note: str = "") -> Classification:
    return Classification(
        "I", "simt", "keep SIMT-only", types, packed, "hivm", "simt", f"pto.{name}", {"any": f"llvm.hivm.{name}"}, note
    )


# -- votes ------------------------------------------------------------------------------------------------------


def _vote(name: str, result: str, doc: str, count: Callable[[Arr, Arr], Any]) -> None:
    def meaning(predicate: Scalar, *, env: Env) -> Any:
        threads, active = env.threads, env.active  # type: ignore[attr-defined]
        holds = threads.rows(np.asarray(predicate, np.bool_), False)
        return threads.per_warp(count(holds, threads.rows(active, False)))

    meaning.__doc__ = doc
    record = _record(("BOOL",), (), name)
    op(f"pto.{name}", result=to(result, unary), family=FAMILY, effect="cross", scalar=record)(meaning)


def _ballot(p: Arr, on: Arr) -> Arr:
    bits: Arr = (p & on) @ (1 << np.arange(WARP, dtype=np.int64))
    return bits


_vote("vote_all", "BOOL", "Whether it holds in every active lane.", lambda p, on: (p | ~on).all(1))
_vote("vote_any", "BOOL", "Whether it holds in some active lane.", lambda p, on: (p & on).any(1))
_vote("vote_uni", "BOOL", "Whether it is the same in every active lane.",
      lambda p, on: (p | ~on).all(1) | ~(p & on).any(1))  # fmt: skip
_vote("vote_ballot", "UINT32", "A mask of the active lanes in which it holds.", _ballot)

# -- shuffles ---------------------------------------------------------------------------------------------------

_SHUFFLED = ("INT32", "UINT32", "INT64", "UINT64", "FP16", "FP32")


def _shuffle_type(call: Call) -> Type:
    if call.attr("width") not in (16, 32):
        call.fail("TG004", f"the width is {call.attr('width')}", hint="segments are 16 or 32 lanes wide")
    if dtype_at(call, 1).name not in ("INT32", "UINT32", "INDEX"):
        call.fail("TG007", f"the lane is given as {dtype_at(call, 1).name}", hint="use INT32")
    return scalar(require_listed(call, dtype_at(call, 0)))


def _shuffle(name: str, doc: str, source: Callable[[Arr, Arr, int], Arr]) -> None:
    def meaning(value: Scalar, by: Scalar, *, width: Int = 32, env: Env) -> Any:
        threads = env.threads  # type: ignore[attr-defined]
        lane = threads.lane
        start = lane // width * width
        wanted = source(lane, np.asarray(by, np.int64), width)
        inside = (wanted >= start) & (wanted < start + width)
        at = threads.linear - lane + np.where(inside, wanted, lane)
        at = np.where(at < threads.count, at, threads.linear)
        return np.broadcast_to(value, (threads.count, *np.shape(value)[1:]))[at]

    meaning.__doc__ = doc
    decl = op(f"pto.{name}", result=_shuffle_type, family=FAMILY, effect="cross",
              target_defined="values of inactive lanes", scalar=_record(_SHUFFLED, ("FP16X2",), name))  # fmt: skip
    decl(meaning)


_shuffle("shuffle_idx", "The value of the lane with that number in the segment.",
         lambda lane, by, width: lane // width * width + by % width)  # fmt: skip
_shuffle("shuffle_up", "The value of the lane that many below.", lambda lane, by, width: lane - by)
_shuffle("shuffle_down", "The value of the lane that many above.", lambda lane, by, width: lane + by)
_shuffle("shuffle_bfly", "The value of the lane whose number differs in the bits of the mask.",
         lambda lane, by, width: lane ^ by)  # fmt: skip

# -- reductions -------------------------------------------------------------------------------------------------

_REDUCED = ("INT32", "UINT32", "FP16", "FP32")


def _redux(name: str, combine: str, doc: str) -> None:
    def meaning(value: Scalar, *, env: Env) -> Any:
        threads, active, dtype = env.threads, env.active, env.result.dtype  # type: ignore[attr-defined]
        rows, on = threads.rows(np.asarray(value)), threads.rows(active, False)
        return threads.per_warp(reduce_rows(rows, on, combine, dtype))

    meaning.__doc__ = doc
    note = "the order of a floating-point sum is left open; here halves of the warp are added pairwise"
    op(f"pto.{name}", result=unary, family=FAMILY, effect="cross", target_defined="the order of a floating-point sum",
       scalar=_record(_REDUCED, (), name, note if combine == "add" else ""))(meaning)  # fmt: skip


def reduce_rows(values: Arr, active: Arr, combine: str, dtype: Any) -> Arr:
    """Combine the active values of each row pairwise, halves first, by the scalar operation of that name."""
    fn = OPS[f"scalar.{combine}"].meaning
    width = values.shape[1]
    while width > 1:
        width //= 2
        a, b, on_a, on_b = values[:, :width], values[:, width:], active[:, :width], active[:, width:]
        both = settle(fn(a, b), dtype)
        values = np.where(on_a & on_b, both, np.where(on_a, a, b))
        active = on_a | on_b
    return values[:, 0]


_redux("redux_add", "add", "The sum over the active lanes of the warp.")
_redux("redux_max", "max", "The largest value of the active lanes of the warp.")
_redux("redux_min", "min", "The smallest value of the active lanes of the warp.")


# -- all-reduce -------------------------------------------------------------------------------------------------

_WIDTHS = (2, 4, 8, 16, 32)
_EXPANSION = "expanded to shuffle_bfly and the scalar operation of the same name"


def _all_reduce_type(call: Call) -> Type:
    if call.attr("threads") not in _WIDTHS:
        hint = f"one of {', '.join(map(str, _WIDTHS))}"
        call.fail("TG004", f"it runs over {call.attr('threads')} threads", hint=hint)
    return unary(call)


def _all_reduce(name: str, combine: str, doc: str) -> None:
    def meaning(value: Scalar, *, threads: Int = 32, env: Env) -> Any:
        fn, dtype, found = OPS[f"scalar.{combine}"].meaning, env.result.dtype, np.asarray(value)
        step = threads // 2
        while step:
            other = OPS["pto.shuffle_bfly"].meaning(found, np.int64(step), width=WARP, env=env)
            found = settle(fn(found, other), dtype)
            step //= 2
        return found

    meaning.__doc__ = doc
    record = Classification(
        "I", "simt", "keep SIMT-only", ("INT32", "UINT32", "FP16", "FP32"), (), "hivm", "simt", "", {},
        f"{_EXPANSION}, so the combination is that of scalar.{combine}",
    )  # fmt: skip
    op(f"pto.{name}", result=_all_reduce_type, family=FAMILY, effect="cross", scalar=record)(meaning)


#: All-reduce -> the scalar operation that combines.
COMBINES = {"pto.simt_allreduce_sum": "add", "pto.simt_allreduce_max": "max", "pto.simt_allreduce_min": "min"}
_all_reduce("simt_allreduce_sum", "add", "The sum over aligned groups of ``threads`` lanes, in every lane.")
_all_reduce("simt_allreduce_max", "max", "The largest value of aligned groups of ``threads`` lanes, in every lane.")
_all_reduce("simt_allreduce_min", "min", "The smallest value of aligned groups of ``threads`` lanes, in every lane.")

