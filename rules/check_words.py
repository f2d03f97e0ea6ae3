"""What proofs compute with: bit vectors of integer dtypes, exact FP32 fractions, FP32 numbers by their bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..ir.dtypes import DType


class Unproved(Exception):
    """Why a rule is not proved: what the expressions cannot say, or what Z3 found."""


@dataclass(frozen=True)
class Exact:
    """An exact FP32 number ``number / 2**shift``."""

    number: Any
    shift: int = 0


@dataclass(frozen=True)
class Bits:
    """Any FP32 number, by its bits; only what moves or reinterprets it, or changes its sign, can be said of it."""

    bits: Any


@dataclass(frozen=True)
class Words:
    """Bit vectors of a dtype, signed or not."""

    z3: Any
    dtype: DType

    def less(self, a: Any, b: Any) -> Any:
        return a < b if self.dtype.signed else self.z3.ULT(a, b)

    def extended(self, a: Any, bits: int) -> Any:
        """Return the same number in more bits."""
        return (self.z3.SignExt if self.dtype.signed else self.z3.ZeroExt)(bits - self.dtype.bits, a)

    def rectified(self, a: Any) -> Any:
        return self.larger(a, self.z3.BitVecVal(0, self.dtype.bits))

    def larger(self, a: Any, b: Any) -> Any:
        return self.z3.If(self.less(a, b), b, a)

    def smaller(self, a: Any, b: Any) -> Any:
        return self.z3.If(self.less(a, b), a, b)

    def magnitude(self, a: Any) -> Any:
        return self.z3.If(a < 0, -a, a) if self.dtype.signed else a

    def quotient(self, a: Any, b: Any) -> Any:
        return a / b if self.dtype.signed else self.z3.UDiv(a, b)

    def floor_remainder(self, a: Any, b: Any) -> Any:
        return a % b if self.dtype.signed else self.z3.URem(a, b)

    def remainder(self, a: Any, b: Any) -> Any:
        return self.z3.SRem(a, b) if self.dtype.signed else self.z3.URem(a, b)

    def shift_right(self, a: Any, k: Any) -> Any:
        return a >> k if self.dtype.signed else self.z3.LShR(a, k)


#: What operations mean on integers, by the name of the tile-tile form; forms with a scalar add an "s".
INTEGER: dict[str, Callable[..., Any]] = {
    "add": lambda w, a, b: a + b,
    "sub": lambda w, a, b: a - b,
    "mul": lambda w, a, b: a * b,
    "div": lambda w, a, b: w.quotient(a, b),
    "rem": lambda w, a, b: w.floor_remainder(a, b),
    "fmod": lambda w, a, b: w.remainder(a, b),
    "maximum": lambda w, a, b: w.larger(a, b),
    "minimum": lambda w, a, b: w.smaller(a, b),
    "neg": lambda w, a: -a,
    "abs": lambda w, a: w.magnitude(a),
    "relu": lambda w, a: w.rectified(a),
    "and_": lambda w, a, b: a & b,
    "ands": lambda w, a, b: a & b,
    "or_": lambda w, a, b: a | b,
    "ors": lambda w, a, b: a | b,
    "xor": lambda w, a, b: a ^ b,
    "not_": lambda w, a: ~a,
    "shl": lambda w, a, k: a << k,
    "shr": lambda w, a, k: w.shift_right(a, k),
}
#: Operations that pass on the element of one child.
SAME = {"expands": 1, "full": 0, "row_expand": 1, "col_expand": 1, "reshape": 0, "slice": 0}
