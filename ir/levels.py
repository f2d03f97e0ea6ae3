"""At which level of the machine a function runs: the host, a chip's orchestration, or a core."""

from __future__ import annotations

from .program import Function

HOST, CHIP, INCORE = "host", "chip", "incore"


def level_of(f: Function) -> str:
    """Return ``"host"`` (orchestrates ranks), ``"chip"`` (orchestrates kernels of one rank) or ``"incore"``.

    Read from the decorator: ``level=pl.Level.HOST``, ``type=pl.FunctionType.Orchestration`` or ``pl.jit.host``; a
    function that says nothing of it is taken for a kernel.
    """
    level, kind = f.attrs.get("level", ""), f.attrs.get("type", "")
    role, decorator = f.attrs.get("role", ""), f.attrs.get("decorator", "")
    if level.endswith("HOST") or decorator.endswith(".host"):
        return HOST
    if kind.endswith("Orchestration") or role.endswith("Orchestrator"):
        return CHIP
    return INCORE
