"""Chains of conversions as they happen, and the verdict on one: what the proofs of exactness speak about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..ir.codes import Array
from ..ir.convert import convert
from ..ir.dtypes import BOOL, DType
from ..ir.exact import Value, converted


class Conversion(NamedTuple):
    """One conversion as it happens: ``mode`` is never ``none``; ``saturate`` clamps to the finite range."""

    src: DType
    dst: DType
    mode: str
    saturate: bool

    def apply(self, array: Array) -> Array:
        """Convert a storage array of ``src``."""
        return convert(array, self.src, self.dst, self.mode, self.saturate)

    @property
    def monotone(self) -> bool:
        """True when larger values never give smaller results."""
        if BOOL in (self.src, self.dst):
            return False
        return self.dst.has_sign if self.dst.is_float else self.saturate


@dataclass(frozen=True)
class Verdict:
    """Whether a chain is exact, how that was decided, and a source value that shows a difference."""

    exact: bool
    proof: str
    witness: int | float | None = None


Chain = tuple[Conversion, ...]


def run(chain: Sequence[Conversion], array: Array) -> Array:
    """Convert a storage array hop by hop."""
    for conversion in chain:
        array = conversion.apply(array)
    return array


def result_of(chain: Sequence[Conversion], value: Value) -> Value | None:
    """Convert one value hop by hop; ``None`` where single numbers are not converted."""
    result: Value | None = value
    for c in chain:
        if result is None:
            return None
        result = converted(result, c.src, c.dst, c.mode, c.saturate)
    return result


def ordered(chain: Chain) -> bool:
    """Tell whether a chain is monotone: each conversion is, and none hands an overflow on as NaN."""
    loses = [c.dst.has_nan and not c.dst.has_inf and not c.saturate for c in chain[:-1]]
    return all(c.monotone for c in chain) and not any(loses)
