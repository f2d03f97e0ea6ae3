"""The scalar lowering by itself: plain scalar operations in the form LLVM has for them.

``scalar.max`` becomes ``llvm.maxnum``, ``smax``, ``umax`` or a comparison and a selection by kind of operand, standard
mathematics the LLVM intrinsics, integer division by powers of two shifts and masks where that is proved right. It is
the lowering of :mod:`tilegg.extract.lower` without a target, with every function at the level of LLVM. Casts and
control flow are not e-graph matters: emitters write them as they stand.
"""

from __future__ import annotations

from ..ir.program import Program
from ..rules.target import Target
from .lower import Options, _Lowering
from .price import Compat


def lower_scalars(program: Program, *, compat: Compat = "canonical", target: Target | None = None) -> Program:
    """Return the program with scalar operations in their LLVM forms.

    ``compat``: ``"canonical"`` rewrites the forms kept for hand-written code (``pto.fmax`` ...), ``"keep"`` leaves
    them. Packed operands keep their explicit operations either way. ``target``: casts of tiles and operations have to
    be legal there; without a maximum and minimum of float scalars, comparisons and selections take their place, which
    may give either of two equal zeros. Raises :class:`TileggError` (TG022).
    """
    return _Lowering(program, target, Options(level="llvm", compat=compat)).run().program
