"""The parts of a target: facts, native casts, operations, scratch plans and the answers about them."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.dtypes import DTYPES
from .cost import Instr, attr_words
from .formula import Formula

When = tuple[tuple[str, frozenset[str]], ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure or capability: ``value`` in ``unit`` with the key of its source and a note."""

    value: int | float | str | bool
    unit: str
    source: str
    note: str


@dataclass(frozen=True, slots=True)
class Legality:
    """Whether something may be emitted; ``reason`` says why not, or under which condition, ``hint`` what to do."""

    ok: bool
    reason: str = ""
    hint: str = ""

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True, slots=True)
class ScratchPlan:
    """A scratch tile an instruction takes: dtype name, shape in elements; ``required`` by the hardware or
    only an argument of the interface; ``why`` says what it holds."""

    dtype: str
    rows: int
    cols: int
    required: bool
    why: str

    @property
    def bytes(self) -> int:
        """The tile's size."""
        return self.rows * DTYPES[self.dtype].nbytes(self.cols)


@dataclass(frozen=True, slots=True)
class ScratchRule:
    """When an instruction takes a scratch tile, and which.

    ``dtype`` is empty where the tile has the dtype of the result, or of the source (``of_source``).
    """

    when: When
    dtypes: frozenset[str] | None
    dtype: str
    of_source: bool
    rows: Formula
    cols: Formula
    required: bool
    why: str

    def plan(self, instr: Instr, block_bytes: int) -> ScratchPlan | None:
        """The tile for ``instr``, or ``None`` when the rule does not apply to it."""
        data = instr.dtypes[0 if self.of_source else -1]
        if self.dtypes is not None and data not in self.dtypes:
            return None
        if not all(attr_words(instr, name) & words for name, words in self.when):
            return None
        dtype = self.dtype or data
        names = {
            "rows": max(instr.rows, 1),
            "cols": max(instr.cols, 1),
            "phys_cols": max(instr.phys_cols, instr.cols, 1),
            "block": max(1, 8 * block_bytes // max(DTYPES[dtype].bits, 1)),
        }
        return ScratchPlan(dtype, self.rows.value(names), self.cols.value(names), self.required, self.why)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Dtypes (and attribute values) an operation must not be used with, why, and what to write ("": nothing known)."""

    dtypes: frozenset[str] | None
    when: When
    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class CastEdge:
    """One native conversion.

    ``modes`` are the round modes the hardware honours, ``fixed`` the one it uses for any other request
    (empty: nothing is ever rounded).  ``saturation`` is the hardware's default, ``saturation_control``
    whether a request reaches it.  ``page`` marks the pairs of the cast-legality page; ``refusal`` says why
    the assembler cannot express the pair (empty: it can).  ``negatives_undefined``: the sources disagree on
    the result for negative values.
    """

    src: str
    dst: str
    modes: tuple[str, ...]
    fixed: str
    exact: bool
    saturation: str
    saturation_control: bool
    page: bool
    refusal: str
    scratch: tuple[ScratchRule, ...]
    source: str
    note: str
    negatives_undefined: bool = False

    @property
    def assembler(self) -> bool:
        """True when the assembler accepts the pair."""
        return not self.refusal

    @property
    def rounds(self) -> bool:
        """True when the conversion can round at all, so that its mode matters."""
        return bool(self.fixed)

    def effective_mode(self, requested: str) -> str:
        """The round mode the hardware applies; the requested one where nothing can round."""
        return requested if not self.fixed or requested in self.modes else self.fixed


@dataclass(frozen=True, slots=True)
class OpInfo:
    """One operation: what the assembler and the instruction set take, scratch and in-place rules.

    ``assembler`` is false for operations that the assembler does not have; ``native`` is false where the
    library expands the operation; ``inplace`` says why the result must not be a source (empty: it may be).
    """

    name: str
    kind: str
    assembler: bool
    casts: bool
    asm: frozenset[str]
    isa: frozenset[str]
    refusals: tuple[Refusal, ...]
    scratch: tuple[ScratchRule, ...]
    native: bool
    inplace: str
    source: str
    note: str

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of the dtypes that both the assembler and the instruction set take, in the order of ``DTYPES``.

        Those that are refused whatever the details are left out.
        """
        refused = [r.dtypes for r in self.refusals if not r.when]
        taken = (name for name in DTYPES if name in self.asm and name in self.isa)
        return tuple(name for name in taken if not any(names is None or name in names for names in refused))
