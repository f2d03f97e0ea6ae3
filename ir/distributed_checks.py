"""What a distributed program must satisfy beyond each operation's own types: levels, signals, targets.

The operations check what their operands tell. Which level a function runs at, where a window comes from and what the
target has is known only here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .deferred import deferred_problems
from .diagnostics import Diagnostic
from .dtypes import BF16
from .lane_writes import lane_problems
from .levels import HOST, INCORE, level_of
from .op import OPS
from .program import Block, For, Function, Op, Program, Value, While, inner_blocks
from .types import Dim, TensorType, shape_text

_HOST_ONLY = ("pld.tensor.alloc_window_buffer", "pld.tensor.window", "pld.system.world_size")
_DEVICE_ONLY = (
    "pld.tensor.remote_store", "pld.tensor.put", "pld.tensor.get", "pld.system.notify", "pld.system.wait",
    "pld.system.defer_wait", "pld.system.get_comm_ctx", "pld.system.rank", "pld.system.nranks",
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What a target has for distributed operations: its vector cores, the limit of a host allreduce's ``core_num``,
    and whether its stores add BF16 atomically."""

    name: str
    vector_cores: int
    bf16_atomic_add: bool


def distributed_problems(program: Program, limits: Limits | None = None) -> list[Diagnostic]:
    """Return what is wrong with the distributed operations of a program; an empty list when nothing is.

    ``limits``: also what the target does not have.
    """
    found: list[Diagnostic] = []
    for f in program.functions:
        level = level_of(f)
        for s, in_loop in _operations(f.body):
            found += _placed(s, level)
            if s.name == "pld.tensor.allreduce":
                found += _allreduce(s, level)
            if s.name == "pld.tensor.all_to_all_v" and level == HOST:
                found += _host_exchange(f, s, in_loop)
        found += deferred_problems(f)
        found += lane_problems(f)
    return found if limits is None else found + limit_problems(program, limits)


def limit_problems(program: Program, limits: Limits) -> list[Diagnostic]:
    """Return which distributed operations of a program go beyond what a target has."""
    found: list[Diagnostic] = []
    for f in program.functions:
        for s, _ in _operations(f.body):
            count = s.attrs.get("core_num", 1)
            if s.name == "pld.tensor.allreduce" and level_of(f) == HOST and count > limits.vector_cores:
                what = f"asks for {count} cores, a chip of {limits.name} has {limits.vector_cores} vector cores"
                found.append(_problem("TG050", s, what))
            if s.attrs.get("atomic") == "add":
                found += _atomic(s, limits)
    return found


def _operations(block: Block, in_loop: bool = False) -> Iterator[tuple[Op, bool]]:
    for s in block.statements:
        if isinstance(s, Op):
            yield s, in_loop
        for inner in inner_blocks(s):
            yield from _operations(inner, in_loop or isinstance(s, For | While))


def _placed(s: Op, level: str) -> list[Diagnostic]:
    if s.name in _HOST_ONLY and level != HOST:
        return [_problem("TG053", s, "belongs to host functions", "this function runs on a chip", _HOST_HINT)]
    if level == HOST and (s.name in _DEVICE_ONLY or s.name.startswith("pld.tile.")):
        return [_problem("TG053", s, "runs inside a kernel", "this function runs on the host", "")]
    return []


_HOST_HINT = "mark it level=pl.Level.HOST, role=pl.Role.Orchestrator, or pass windows as parameters"


def _problem(code: str, s: Op, what: str, reason: str = "", hint: str = "") -> Diagnostic:
    return Diagnostic(code, f"{s.name} {what}", s.span, reason, hint)


# -- allreduce -----------------------------------------------------------------------------------------------


def _allreduce(s: Op, level: str) -> list[Diagnostic]:
    count = s.attrs.get("core_num", 1)
    signal = s.operands[1]
    found = []
    if level != HOST:
        if count != 1:
            hint = "put it into pl.spmd(...) to use several cores"
            found.append(_problem("TG050", s, f"has core_num = {count} inside a kernel", "", hint))
        if signal is None:
            hint = "pass an INT32 window [NR, 1]"
            found.append(_problem("TG053", s, "has no signal", "signals are made up for host calls only", hint))
    if isinstance(signal, Value) and isinstance(signal.type, TensorType):
        why = signal_problem(signal.type, str(s.attrs.get("mode", "mesh")), level)
        if why:
            found.append(_problem("TG008", s, f"has a signal {shape_text(signal.type.shape)}", why))
    return found


def signal_problem(signal: TensorType, mode: str, level: str = INCORE) -> str:
    """Return why a signal cannot serve an allreduce in its mode, or an empty string.

    ``auto`` takes either: on the signal of a ring also a mesh runs, on that of a mesh no ring does.
    """
    mesh = mesh_signal_problem(signal, level)
    if mode == "mesh" or (mode == "auto" and (not mesh or len(signal.shape) != 2)):
        return mesh
    return ring_signal_problem(signal, level)


def mesh_signal_problem(signal: TensorType, level: str = INCORE) -> str:
    """Return why a signal cannot serve a mesh collective, or an empty string.

    In a kernel it is ``[NR, 1]``; on the host also ``[world_size]`` or ``[world_size, stride]``.
    """
    shape: Sequence[Dim] = signal.shape
    if level == HOST:
        return ""
    if len(shape) != 2 or (isinstance(shape[1], int) and shape[1] != 1):
        return "a mesh uses one cell for each rank, [NR, 1]; a ring's signal has another shape and cannot be shared"
    return ""


def ring_signal_problem(signal: TensorType, level: str = INCORE) -> str:
    """Return why a signal cannot serve a ring allreduce, or an empty string.

    In a kernel it is ``[2 * (NR - 1), NR]``; on the host one row longer, for the return barrier.
    """
    rows, ranks = signal.shape
    if not isinstance(rows, int) or not isinstance(ranks, int):
        return ""
    want = 2 * (ranks - 1) + (level == HOST)
    return "" if rows == want else f"a ring of {ranks} ranks at this level needs [{want}, {ranks}]"


# -- all_to_all_v on the host, atomic adds ---------------------------------------------------------------------


def _host_exchange(f: Function, s: Op, in_loop: bool) -> list[Diagnostic]:
    found = []
    for name, o in zip(("input", "send_counts"), (s.operands[0], s.operands[3])):
        if isinstance(o, Value) and isinstance(o.type, TensorType) and not o.type.is_window:
            found.append(_problem("TG006", s, f"on the host needs {name} in a window", "", "stage it with pld.window"))
    if in_loop:
        found.append(_problem("TG050", s, "stands in a loop of a host function", "its signals serve one use"))
    buffers = [(p.name, _allocation(f, o)) for p, o in zip(OPS[s.name].operand_params, s.operands)]
    for i, (name, buffer) in enumerate(buffers):
        for other, earlier in buffers[:i]:
            if buffer is not None and buffer == earlier:
                why = "other ranks write one while the kernel reads the other"
                found.append(_problem("TG050", s, f"has {other} and {name} in one allocation, {buffer}", why))
    return found


def _allocation(f: Function, o: object) -> str | None:
    """Return the buffer a window value is a view of, as far as the function shows it."""
    made = {v.name: s for s, _ in _operations(f.body) for v in s.results}
    seen = 0
    while isinstance(o, Value) and o.name in made and seen < 1000:
        s = made[o.name]
        if s.name == "pld.tensor.alloc_window_buffer":
            return o.name
        is_view = s.name == "pld.tensor.window"
        o = s.operands[0] if is_view else next((x for x in s.operands if _is_window(x)), None)
        seen += 1
    return None


def _is_window(o: object) -> bool:
    return isinstance(o, Value) and isinstance(o.type, TensorType) and o.type.is_window


def _atomic(s: Op, limits: Limits) -> list[Diagnostic]:
    into = next((o for o in s.operands if isinstance(o, Value) and isinstance(o.type, TensorType)), None)
    if s.name == "pld.tensor.remote_store":
        into = s.operands[1] if isinstance(s.operands[1], Value) else None
    if into is None or not isinstance(into.type, TensorType) or into.type.dtype is not BF16 or limits.bf16_atomic_add:
        return []
    why, hint = "only the stores of Ascend910B and C add BF16", "accumulate in FP32"
    return [_problem("TG022", s, f"adds BF16 atomically, which {limits.name} cannot", why, hint)]

