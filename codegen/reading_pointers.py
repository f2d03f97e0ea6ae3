"""Pointers of a function that is read back: the sign of what they point to, which are written, pairs seen through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Operation, SSAValue

from ..ir import program as ir

#: Operations whose result is their first operand, moved or seen as another element.
_PASSES = ("pto.addptr", "pto.castptr")
#: Operand that an operation writes through.
_WRITES = {"pto.store": 1, "pto.stg": 1, "pto.store_scalar": 0}


@dataclass(frozen=True)
class Pairs:
    """A pointer to pairs: the pointer to elements, and where it stands, in elements."""

    base: ir.Value
    offset: ir.Operand


def root(x: SSAValue) -> SSAValue:
    """Return the pointer that others were made from."""
    while isinstance(x.owner, Operation) and x.owner.name in _PASSES:
        x = x.owner.operands[0]
    return x


class Signs:
    """Which pointers of a module's functions point to unsigned integers, and which are written through."""

    def __init__(self, functions: Sequence[func.FuncOp]) -> None:
        self._unsigned: set[SSAValue] = set()
        self._written: set[SSAValue] = set()
        entry = {f.sym_name.data: f.body.block.args for f in functions}
        pairs: list[tuple[SSAValue, SSAValue]] = []
        for f in functions:
            for op in f.walk():
                self._look(op)
                pairs += _handed(op, entry)
        changed = True
        while changed:
            changed = False
            for given, param in pairs:
                for known in (self._unsigned, self._written):
                    if param in known and given not in known:
                        known.add(given)
                        changed = True
                if given in self._unsigned and param not in self._unsigned:
                    self._unsigned.add(param)
                    changed = True

    def _look(self, op: Operation) -> None:
        if op.name.startswith("pto.atomic_"):
            self._written.add(root(op.operands[0]))
            word = op.properties.get("signedness")
            if isinstance(word, StringAttr) and word.data == "unsigned":
                self._unsigned.add(root(op.operands[0]))
        elif op.name in _WRITES:
            self._written.add(root(op.operands[_WRITES[op.name]]))

    def unsigned(self, x: SSAValue) -> bool:
        """Tell whether a pointer's integers are unsigned."""
        return root(x) in self._unsigned

    def written(self, x: SSAValue) -> bool:
        """Tell whether something is written through a pointer."""
        return root(x) in self._written


def _handed(op: Operation, entry: Mapping[str, Sequence[SSAValue]]) -> list[tuple[SSAValue, SSAValue]]:
    """Return what a call or launch hands over, with the parameter it becomes."""
    if op.name not in ("pto.simt_launch", "func.call"):
        return []
    callee = op.properties["callee"]
    params = entry.get(callee.root_reference.data, ()) if isinstance(callee, SymbolRefAttr) else ()
    given = op.operands[3:] if op.name == "pto.simt_launch" else op.operands
    return [(root(x), p) for x, p in zip(given, params)]
