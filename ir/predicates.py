"""Packed predicates used as numbers: refused where a value is known to be one.

A predicate has the type of any UINT8 tile of its shape, so a type alone does not tell. What a comparison made is
known, and so is the bitwise result of such values. A predicate read as bytes on purpose goes through
``reinterpret_view``; values that pass through views, loops and calls are not followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .diagnostics import Span, error
from .op import Kind, OpDecl
from .program import Operand, Value

#: Operations that give a predicate; of predicates; a predicate under another name or in other storage.
_COMPARES = frozenset({"tile.cmp", "tile.cmps"})
_COMBINES = frozenset({"tile.mask_not", "tile.and_", "tile.or_", "tile.xor", "tile.not_"})
_KEEPS = frozenset({"tile.move", "tile.assume", "tile.set_validshape", "tile.reshape"})
#: Operations that take one for what it is.
_CHOOSES = frozenset({"tile.select", "tile.sel", "tile.sels"})
#: Families whose operations read the elements of their tiles as numbers.
_NUMBERS = frozenset(
    {
        "tile-tile arithmetic", "tile-scalar arithmetic", "unary", "fused arithmetic", "partial operations",
        "row reductions", "column reductions", "expands", "positions of extremes", "quantisation", "sorting",
    }
)  # fmt: skip
#: Operations of other families that do.
_NUMERIC = _COMPARES | {"tile.cast", "tile.shl", "tile.shr", "tile.shls", "tile.shrs", "tile.sin", "tile.cos"}
#: Operations whose first operand gives the shape only.
_SHAPED = frozenset({"tile.row_expand", "tile.col_expand", "tile.expands"})


def no_number(mask: str, like: str) -> tuple[str, str]:
    """Return why a predicate cannot be calculated with, and what to write: names of it and of a tile of its shape."""
    # A nested expression's own name is not one that can be written.
    mask, like = (what if "__arg_tmp_v" in name else name for name, what in ((mask, "mask"), (like, "tile")))
    numbers = f"pl.tile.select({mask}, pl.tile.expands({like}, 1), 0)"
    return (
        "a comparison writes one bit per element",
        f"make numbers 1 and 0 of it, once: {numbers}; to choose between two tiles, select is enough",
    )


def compares(name: str) -> bool:
    """Return whether an operation makes a predicate of the tiles that it compares."""
    return name in _COMPARES


def keeps_bits(name: str, predicates: Sequence[bool]) -> bool:
    """Return whether an operation on predicates gives one; ``predicates``: which of its tiles are, scratch tiles aside.

    Of a tile that was only loaded or calculated nobody knows it, whatever its dtype and shape.
    """
    if name in _COMBINES:
        return bool(predicates) and all(predicates)
    return name in _KEEPS and bool(predicates) and predicates[0]


def reads_bits(name: str, predicates: Sequence[bool]) -> bool:
    """Return whether an operation reads a predicate bit by bit, and not as a tile of bytes."""
    return name in _CHOOSES or keeps_bits(name, predicates)


@dataclass
class Predicates:
    """The predicates of one function met so far, each with the name of a tile that was compared for it."""

    compared: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, operands: Sequence[Operand], results: Sequence[Value]) -> None:
        """Take note of an operation's results."""
        if name in _COMPARES and results:
            self.compared[results[0].name] = getattr(operands[0], "name", "tile")
        elif name in _COMBINES and results and self.compared:
            known = [self.compared.get(o.name) for o in operands if isinstance(o, Value)]
            # Beside the scratch tile of xor, both sides must be predicates.
            if known and all(k is not None for k in known[:2]):
                self.compared[results[0].name] = str(known[0])

    def check(self, decl: OpDecl, operands: Sequence[Operand], span: Span | None) -> None:
        """Raise TG008 where an operation calculates with a predicate."""
        if not self.compared or (decl.family not in _NUMBERS and decl.name not in _NUMERIC):
            return
        for i, (param, o) in enumerate(zip(decl.operand_params, operands)):
            if not isinstance(o, Value) or o.name not in self.compared or param.kind is Kind.SCRATCH:
                continue
            if i == 0 and decl.name in _SHAPED:
                continue
            reason, hint = no_number(o.name, self.compared[o.name])
            what = f"{param.name} is the packed predicate {o.type}, which is no number"
            raise error("TG008", f"{decl.name}: {what}", span, reason=reason, hint=hint)
