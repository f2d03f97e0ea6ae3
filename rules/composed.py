"""Conversions made of several instructions, where a target lacks a single one.

A :class:`Composed` is one conversion, bit for bit, written with integer arithmetic on the bits and conversions that
targets have. The road search offers it as a hop (``rules/paths.py``) where no chain of native casts is exact;
``rules/casts.py`` makes each pattern a rule. Of several patterns for a conversion, a target's first legal one counts.

* Rounding to odd keeps whether anything was lost in the lowest bit kept, so that a second rounding sees it. No BF16
  conversion does it; on the bits of FP32 it is a carry out of the sixteen low bits, set into the seventeenth.
* An FP8E8M0 code is the exponent field of a BF16 number, except at its ends: 0 is subnormal there and 255 is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..ir.dtypes import BF16, FP8E8M0, FP32, INT16, INT32, UINT8, UINT16, DType
from ..ir.op import OPS
from .cost import Instr, cycles
from .recipes.terms import (
    X,
    add_whole,
    and_whole,
    convert,
    either,
    max_whole,
    min_whole,
    minus,
    plus,
    shift_left,
    shift_right,
    times,
    view,
)
from .rule import Pattern, Term
from .target import Target
from .terms import CODE_DTYPES, CODE_MODES, LITERAL


@dataclass(frozen=True)
class Composed:
    """One conversion as a pattern of the operand :data:`X`.

    ``mode``: the round mode it carries out (``None``: nothing is rounded, it serves every mode); infinities are kept.
    """

    name: str
    src: DType
    dst: DType
    mode: str | None
    pattern: Term
    reason: str

    @property
    def rule(self) -> str:
        """The name of the rule that puts the instructions in the conversion's place."""
        return f"cast.composed.{self.name}"

    @property
    def instructions(self) -> int:
        """The number of instructions it takes."""
        return sum(1 for _ in _instructions(self.pattern))

    def cycles(self, target: Target, rows: int, cols: int, phys: int) -> float:
        """Return the price of its instructions for one shape, in core cycles."""
        return sum(cycles(target, _instr(t, self.src, rows, cols, phys)) for t in _instructions(self.pattern))


# -- patterns ----------------------------------------------------------------------------------------------


def _odd_bf16() -> Term:
    """The low half carries into the seventeenth bit where it is not zero."""
    carry = add_whole(and_whole(view(X, INT32), 0xFFFF), 0xFFFF)
    return _with_carry(and_whole(carry, 0x10000))


def _with_carry(carry: Pattern) -> Term:
    """FP32 to BF16 by truncation, a bit set before; no more than that, or infinities would become NaN."""
    return convert(view(either(view(X, INT32), carry), FP32), FP32, BF16, "trunc")


def _odd_bf16_by_shifts() -> Term:
    """The same without a bitwise and: the low half is what a shift down and up again loses, 1 of it is kept."""
    bits = view(X, INT32)
    low = minus(bits, shift_left(shift_right(bits, 16), 16))
    return _with_carry(shift_left(min_whole(low, 1), 16))


def _odd_fp32() -> Term:
    """INT32 to FP32 by truncation; what it lost is less than 2**7, and 1 of it goes into the lowest bit."""
    cut = convert(X, INT32, FP32, "trunc")
    lost = minus(X, convert(cut, FP32, INT32, "trunc"))
    return view(either(view(cut, INT32), min_whole(times(lost, lost), 1)), FP32)


def _scale_bf16() -> Term:
    """The code in the exponent field; at least the subnormal 2**-127, and a quiet NaN where it is all ones."""
    code = view(convert(view(X, UINT8), UINT8, UINT16, "rint"), INT16)
    number = max_whole(shift_left(code, 7, INT16), 0x40, INT16)
    nan = max_whole(add_whole(number, -0x7F40, INT16), 0, INT16)
    return view(plus(number, nan, INT16), BF16)


_STICKY = "the lowest bit kept is set where any bit below it is, as rounding to odd does; NaN and infinities stay"

COMPOSED: tuple[Composed, ...] = (
    Composed("odd-bf16", FP32, BF16, "odd", _odd_bf16(), _STICKY),
    Composed("odd-bf16.shifts", FP32, BF16, "odd", _odd_bf16_by_shifts(), _STICKY),
    Composed(
        "odd-fp32", INT32, FP32, "odd", _odd_fp32(),
        "truncation is exact below 2**24 and loses up to seven bits above; the lowest bit of FP32 is set where it did",
    ),
    Composed(
        "scale-bf16", FP8E8M0, BF16, None, _scale_bf16(),
        "the code is BF16's exponent field; code 0 is the subnormal 2**-127, and code 255 NaN instead of infinity",
    ),
)  # fmt: skip


# -- what a target can do ----------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def composed_on(target: Target) -> dict[tuple[DType, DType], Composed]:
    """Return the conversions whose instructions a target has, by source and destination."""
    found: dict[tuple[DType, DType], Composed] = {}
    for made in COMPOSED:
        if all(_legal(t, made.src, target) for t in _operations(made.pattern)):
            found.setdefault((made.src, made.dst), made)
    return found


def _operations(p: Pattern) -> Iterator[Term]:
    """Yield the distinct operations of a pattern, operands first."""
    seen: dict[Term, None] = {}

    def visit(p: Pattern) -> None:
        if isinstance(p, Term) and p.op != LITERAL and p not in seen:
            for child in p.children:
                visit(child)
            seen[p] = None

    visit(p)
    yield from seen


_VIEW = "tile.reinterpret_view"


def _instructions(p: Pattern) -> Iterator[Term]:
    return (t for t in _operations(p) if t.op != _VIEW)


def _dtype(p: Pattern, src: DType) -> DType:
    code = p.args[0] if isinstance(p, Term) else None
    return CODE_DTYPES[code] if isinstance(code, int) else src


def _tiles(t: Term, src: DType) -> tuple[str, ...]:
    """Return the names of the dtypes of an operation's tiles, the result last."""
    operands = (c for c in t.children if not (isinstance(c, Term) and c.op == LITERAL))
    return tuple(_dtype(p, src).name for p in (*operands, t))


def _legal(t: Term, src: DType, target: Target) -> bool:
    names = _tiles(t, src)
    if t.op != "tile.cast":
        mnemonic = OPS[t.op].pto
        assert mnemonic is not None
        return all(target.legal(mnemonic, name).ok for name in names)
    edge = target.casts.get((names[0], names[-1]))
    mode = t.args[3]
    assert isinstance(mode, int)
    return edge is not None and edge.assembler and edge.effective_mode(CODE_MODES[mode]) == CODE_MODES[mode]


def _instr(t: Term, src: DType, rows: int, cols: int, phys: int) -> Instr:
    mnemonic, names = OPS[t.op].pto, _tiles(t, src)
    assert mnemonic is not None
    clamps = t.op == "tile.cast" and not _dtype(t, src).is_float
    return Instr(mnemonic, names, rows, cols, phys, (("saturation", "on"),) if clamps else ())
