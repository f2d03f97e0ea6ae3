"""What is recorded of a scalar or SIMT operation beside its meaning: where it may run and what it becomes.

Execution domain, target capability, packed types and section kind are four independent columns: none of them
follows from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

#: Where an operation may run: in any function, in SIMT bodies only, outside of them only.
Domain = Literal["anywhere", "simt", "ordinary"]
DOMAINS: dict[str, str] = {
    "anywhere": "ordinary functions and SIMT bodies",
    "simt": "SIMT bodies only: reads thread state, crosses lanes, synchronises, or is defined there only",
    "ordinary": "ordinary functions only",
}

#: What is to become of an operation's interface.
Conclusion = Literal[
    "keep scalar", "keep SIMT-only", "keep target-specific", "keep both", "compatible, then deprecated",
    "needs verification",
]  # fmt: skip
CONCLUSIONS: dict[str, str] = {
    "keep scalar": "the one interface of a plain meaning",
    "keep SIMT-only": "depends on the execution state of SIMT threads",
    "keep target-specific": "one instruction of the target, with limits of its own",
    "keep both": "a plain and a target form of different meaning stand side by side",
    "compatible, then deprecated": "read and kept for hand-written code; new code uses the plain form",
    "needs verification": "kept as it is until the hardware is measured",
}

GROUPS: dict[str, str] = {
    "A": "scalar arithmetic, comparison, bits, select",
    "B": "maximum and minimum",
    "C": "standard mathematics",
    "D": "rounding and fused multiply-add",
    "E": "conversions",
    "F": "memory",
    "G": "atomics",
    "H": "queries of the execution state",
    "I": "collectives across lanes",
    "J": "synchronisation and state",
    "K": "target-specific scalar operations",
}


@dataclass(frozen=True)
class Classification:
    """The record of one operation.

    ``group``: a letter of :data:`GROUPS`, empty for the forms lowering produces; ``types``: dtypes of the (first)
    value operand; ``packed``: pairs it takes in one register; ``capability``: what the target must have (empty:
    nothing special); ``section``: the section kind its presence proves (empty: none); ``vpto``: the name at the level
    of the assembler; ``intrinsics``: LLVM intrinsic or instruction by kind of operand (``float``, ``int``, ``uint``,
    ``index``, ``bool``, or ``any``); ``differences``: where the meaning departs from the plain form of the same name;
    ``instead``: the form new code uses; ``open``: what documents and assembler leave to a measurement on hardware.
    """

    group: str
    domain: Domain
    conclusion: Conclusion | Literal[""]
    types: tuple[str, ...]
    packed: tuple[str, ...] = ()
    capability: str = ""
    section: str = ""
    vpto: str = ""
    intrinsics: Mapping[str, str] = field(default_factory=dict)
    differences: str = ""
    instead: str = ""
    open: str = ""

    def intrinsic(self, kind: str) -> str:
        """Return what operands of a kind become, or an empty string."""
        return self.intrinsics.get(kind) or self.intrinsics.get("any", "")
