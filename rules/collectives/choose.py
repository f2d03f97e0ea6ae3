"""Mesh or ring, and the size of chunks: an alpha-beta model of one allreduce.

``alpha`` is the time of one remote access, from its issue to its arrival, ``beta`` the time of one byte on a link.
A barrier costs ``alpha`` for the last signal and ``issue`` for each of the ``n - 1`` others. With ``n`` ranks, ``S``
bytes and chunks of ``c`` bytes:

* mesh, ``k = ceil(S / c)``: ``(k + 1) * barrier + k * (n - 1) * alpha + (n - 1) * S * beta``, since one rank's
  loads follow one another;
* ring, segments of ``S / n``, ``k = ceil(S / n / c)``: ``2 * (n - 1) * (k * (2 * barrier + alpha) + S / n * beta)``.

The figures are those of the target file (``link_latency_ns``, ``link_gb_per_s``, ``notify_issue_ns``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.dtypes import DType
from ..target import Target
from .geometry import CHUNK_BYTES, round_up, row_unit

#: Chunk sizes that are compared, in bytes.
CHUNKS = (4096, 8192, CHUNK_BYTES)
#: Numbers of ranks that a decision at run time is made for.
RANKS = range(2, 65)


@dataclass(frozen=True)
class LinkModel:
    """The figures of a machine's links: nanoseconds, nanoseconds per byte; ``source`` names where they are from."""

    alpha: float
    beta: float
    issue: float
    source: str

    def barrier(self, n: int) -> float:
        """The time in nanoseconds that ``n`` ranks take to meet."""
        return self.alpha + self.issue * (n - 1)

    def mesh(self, nbytes: int, n: int, chunk: int) -> float:
        """The time in nanoseconds of a mesh allreduce of ``nbytes``."""
        k = -(-nbytes // chunk)
        return (k + 1) * self.barrier(n) + (n - 1) * (k * self.alpha + nbytes * self.beta)

    def ring(self, nbytes: int, n: int, chunk: int) -> float:
        """The time in nanoseconds of a ring allreduce of ``nbytes``."""
        segment = -(-nbytes // n)
        k = -(-segment // chunk)
        return 2 * (n - 1) * (k * (2 * self.barrier(n) + self.alpha) + segment * self.beta)


@dataclass(frozen=True)
class Choice:
    """A decision and its figures: the times of both modes in nanoseconds, each at its best chunk size."""

    mode: str
    chunk_bytes: int
    mesh: float
    ring: float
    nbytes: int
    ranks: int
    source: str

    def text(self) -> str:
        """The decision in a line."""
        return (
            f"{self.mode} in chunks of {self.chunk_bytes} bytes: {self.nbytes} bytes on {self.ranks} ranks take "
            f"{self.mesh / 1000:.1f} us on a mesh, {self.ring / 1000:.1f} us on a ring ({self.source})"
        )


#: Used with no target: the figures of a3.
_DEFAULT = LinkModel(1000.0, 1 / 28.0, 50.0, "figures of a2a3")


def link_model(target: Target | None) -> LinkModel:
    """Return the figures of a target; without one, or when it states none, those of a2a3."""
    names = ("link_latency_ns", "link_gb_per_s", "notify_issue_ns")
    if target is None or any(n not in target.hardware for n in names):
        return _DEFAULT
    latency, bandwidth, issue = (target.figure(n) for n in names)
    return LinkModel(latency, 1 / bandwidth, issue, f"figures of {target.name}")


def choose(model: LinkModel, size: int, dtype: DType, ranks: int) -> Choice:
    """Return the faster mode for ``size`` elements, and the chunk size at which it is fastest (larger at a tie)."""
    nbytes = round_up(size, row_unit(dtype)) * dtype.bits // 8
    best = {
        name: min((time(nbytes, ranks, c), -c) for c in CHUNKS)
        for name, time in (("mesh", model.mesh), ("ring", model.ring))
    }
    mode = "ring" if best["ring"][0] < best["mesh"][0] else "mesh"
    return Choice(mode, -best[mode][1], best["mesh"][0], best["ring"][0], nbytes, ranks, model.source)


def ring_from(model: LinkModel, size: int, dtype: DType) -> int:
    """Return from how many ranks on the ring is taken where their number is known at run time only.

    Whole chunks make the better mode change back and forth, so it is the border with the least loss over ``RANKS``;
    ``RANKS.stop`` stands for never.
    """
    times = [(c.mesh, c.ring) for c in (choose(model, size, dtype, n) for n in RANKS)]
    lost = [(mesh / min(mesh, ring), ring / min(mesh, ring)) for mesh, ring in times]
    borders = range(len(lost) + 1)
    return RANKS.start + min(borders, key=lambda i: sum(m for m, _ in lost[:i]) + sum(r for _, r in lost[i:]))
