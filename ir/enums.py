"""The four enumerations of the distributed operations: integers that programs and dumps carry.

Their values are append-only: a new member goes at the end, so that what is written today keeps its meaning.
Programs store the lower-case word (``"atomic_add"``), texts may give the name or the integer.
"""

from __future__ import annotations

import difflib
import re
from enum import IntEnum
from typing import Any, Self

from .diagnostics import Span, error


class AbiEnum(IntEnum):
    """An enumeration of consecutive integers from 0, with a word for each member."""

    @property
    def word(self) -> str:
        """The lower-case word that attributes hold: ``AtomicAdd`` -> ``atomic_add``."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower().strip("_")

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """The words in order of their integers."""
        return tuple(m.word for m in cls)

    @classmethod
    def of(cls, value: Any, span: Span | None = None) -> Self:
        """Return the member given as a member, an integer, a name or a word; raises TG004 for anything else."""
        if isinstance(value, int) and not isinstance(value, bool):
            if 0 <= value < len(cls):
                return cls(value)
        elif isinstance(value, str):
            wanted = value.rpartition(".")[2].lower().replace("_", "").removeprefix("k")
            for member in cls:
                if member.word.replace("_", "") == wanted:
                    return member
        raise cls._unknown(value, span)

    @classmethod
    def _unknown(cls, value: Any, span: Span | None) -> Exception:
        members = [f"{m.name} = {int(m)}" for m in cls]
        near = difflib.get_close_matches(str(value), [m.name for m in cls], 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(members)}"
        return error("TG004", f"{str(value)[:60]!r} is no {cls.__name__}", span, hint=hint)


class NotifyOp(AbiEnum):
    """What ``pld.system.notify`` does to the peer's signal cell."""

    AtomicAdd = 0
    Set = 1


class WaitCmp(AbiEnum):
    """When ``pld.system.wait`` and ``defer_wait`` go on: the cell is equal to, or at least, the expected value."""

    Eq = 0
    Ge = 1


class AtomicType(AbiEnum):
    """Whether a write overwrites or adds to the peer's elements."""

    None_ = 0
    Add = 1


class ReduceOp(AbiEnum):
    """What a reducing collective does with the ranks' elements."""

    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


for _enum in (NotifyOp, WaitCmp, AtomicType, ReduceOp):
    if [int(m) for m in _enum] != list(range(len(_enum))):
        raise TypeError(f"the values of {_enum.__name__} are not 0, 1, 2...")
