"""Prices of tile instructions in core cycles, from the ``[[cost]]`` rows of a target file.

``cycles(target, instr)`` is the price the extractor minimises.  Where public models and profiled cycles
disagree the target file decides and says so; ``model="..."`` asks one of the published models instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from ..ir.diagnostics import error
from ..ir.dtypes import DTYPES
from ..ir.types import TileType
from .cost_forms import FORMS, Form, Sum, Work
from .target_data import Row, Sets

if TYPE_CHECKING:
    from .target import Target


class Instr(NamedTuple):
    """One assembler instruction as seen by prices and scratch plans.

    ``op`` is the mnemonic without its ``pto.`` prefix; ``dtypes`` names the tile operands' dtypes, sources
    first, result last; ``rows``, ``cols`` are the valid extent in elements, ``phys_cols`` the physical
    columns.  ``attrs`` are name/value pairs; prices and scratch plans read ``cmp`` (eq ne lt le gt ge),
    ``saturation`` (on off), ``precision`` (default high) and ``binary`` (True for the tree form).
    """

    op: str
    dtypes: tuple[str, ...]
    rows: int
    cols: int
    phys_cols: int
    attrs: tuple[tuple[str, object], ...] = ()


class Price(NamedTuple):
    """A price with what is known about it.

    ``estimate`` is true for prices by analogy; ``source`` is a key of the target's sources; ``why`` explains
    the figure and ``differs`` why it leaves a public model.
    """

    cycles: float
    estimate: bool
    source: str
    why: str
    differs: str


_ROW_KEYS = "ops form dtypes from to when of known estimate source why differs"


@dataclass(frozen=True)
class PriceRow:
    """One row: which instructions it prices, and how."""

    form: Any
    dtypes: frozenset[str] | None
    pair: tuple[frozenset[str], frozenset[str]] | None
    when: tuple[tuple[str, frozenset[str]], ...]
    of_source: bool
    known: frozenset[str] | None
    estimate: bool
    source: str
    why: str
    differs: str

    def fits(self, instr: Instr) -> bool:
        """True when the row prices ``instr`` (whose mnemonic is already the row's)."""
        if self.dtypes is not None and self.data_dtype(instr) not in self.dtypes:
            return False
        if self.pair and (instr.dtypes[0] not in self.pair[0] or instr.dtypes[-1] not in self.pair[1]):
            return False
        return all(attr_words(instr, name) & words for name, words in self.when)

    def data_dtype(self, instr: Instr) -> str:
        """The dtype that decides the element width."""
        return instr.dtypes[0 if self.of_source else -1]


def attr_words(instr: Instr, name: str) -> frozenset[str]:
    """The value of an attribute as a set of one lower-case word, empty when absent."""
    return frozenset(str(value).lower() for key, value in instr.attrs if key == name)


class PriceBook:
    """The price rows of a target (or of one of its published models) by mnemonic, with a memo."""

    def __init__(self, rows: Sequence[Row], sets: Sets, hardware: Mapping[str, float], name: str) -> None:
        self.name = name
        self.memo: dict[Instr, float] = {}
        self._repeat_bits = 8 * int(hardware["repeat_bytes"])
        self._limit = int(hardware["repeat_limit"])
        self._barrier = hardware["barrier_cycles"]
        self.rows: dict[str, list[PriceRow]] = {}
        for row in rows:
            parsed = _parse_row(row, sets)
            for op in row.words("ops"):
                self.rows.setdefault(op, []).append(parsed)
        self._check_parts(rows)

    def _check_parts(self, rows: Sequence[Row]) -> None:
        for row in rows:
            for op in row.words("ops"):
                self._walk_parts(op, row, (op,))

    def _walk_parts(self, op: str, row: Row, above: tuple[str, ...]) -> None:
        for found in self.rows[op]:
            for part in found.form.parts if isinstance(found.form, Sum) else ():
                if part not in self.rows:
                    raise row.place.fault(f"{op} is priced by {part}, which has no price")
                if part in above:
                    raise row.place.fault(f"{op} is priced by itself: {' -> '.join([*above, part])}")
                self._walk_parts(part, row, (*above, part))

    def find(self, instr: Instr) -> PriceRow | None:
        """The row that prices ``instr``."""
        return next((row for row in self.rows.get(instr.op, ()) if row.fits(instr)), None)

    def cycles(self, instr: Instr) -> float:
        """The price of ``instr``; raises TG022 when no row fits."""
        row = self.find(instr)
        if row is None:
            types = ", ".join(instr.dtypes)
            raise error("TG022", f"{self.name} has no price for {instr.op} on {types}")
        return self._value(row, instr)

    def _value(self, row: PriceRow, instr: Instr) -> float:
        if isinstance(row.form, Sum):
            parts = [self.cycles(instr._replace(op=part, attrs=())) for part in row.form.parts]
            return sum(parts) + self._barrier * (len(parts) - 1) + row.form.extra
        form: Form = row.form
        return form(self._work(row, instr))

    def _work(self, row: PriceRow, instr: Instr) -> Work:
        bits = DTYPES[row.data_dtype(instr)].bits
        if row.pair is not None or instr.op == "tcvt":
            bits = max(DTYPES[name].bits for name in instr.dtypes)
        bits = max(bits, 4)
        rows, cols = max(instr.rows, 1), max(instr.cols, 1)
        return Work(rows, cols, max(instr.phys_cols, cols), bits, self._repeat_bits // bits, self._limit)


def _parse_row(row: Row, sets: Sets) -> PriceRow:
    kind = FORMS[row.one_of("form", FORMS)]
    parameters = [field.name for field in fields(kind)]
    row.only(" ".join([_ROW_KEYS, *parameters]))
    values = {name: _figure(row, name) for name in parameters if name in row.values}
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.name not in values]
    if needed:
        raise row.place.fault(f"the form {row.text('form')!r} needs {', '.join(needed)}")
    form = kind(**values)
    _probe(form, row)
    pair = None
    if "from" in row.values or "to" in row.values:
        pair = (frozenset(sets.dtypes(row, "from", "any")), frozenset(sets.dtypes(row, "to", "any")))
    return PriceRow(
        form=form,
        dtypes=frozenset(sets.dtypes(row, "dtypes")) if "dtypes" in row.values else None,
        pair=pair,
        when=row.when(),
        of_source=row.one_of("of", ("source", "result"), "result") == "source",
        known=frozenset(sets.dtypes(row, "known")) if "known" in row.values else None,
        estimate=row.flag("estimate", False),
        source=row.text("source", ""),
        why=row.text("why", ""),
        differs=row.text("differs", ""),
    )


_PROBES = tuple(Work(r, c, p, 16, 128, 255) for r, c, p in ((1, 8, 16), (4, 256, 256), (3, 130, 160)))


def _probe(form: Any, row: Row) -> None:
    """Refuse parameters of the wrong arity and formulas that do not give a price."""
    if isinstance(form, Sum):
        return
    try:
        prices = [form(work) for work in _PROBES]
    except (TypeError, ValueError, IndexError, ZeroDivisionError) as problem:
        raise row.place.fault("the form's parameters do not fit it", reason=str(problem)) from None
    if not all(math.isfinite(value) and value >= 0 for value in prices):
        raise row.place.fault("the form's parameters do not give a price", reason=f"prices {prices}")


_TEXTS = {"layout": ("rows", "flat")}


def _figure(row: Row, name: str) -> Any:
    """A parameter of a form: a finite number, a word, or (nested) arrays of them as tuples."""
    value = row.values[name]
    if name in _TEXTS:
        return row.one_of(name, _TEXTS[name])
    if name == "parts":
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise row.place.fault("'parts' must be a list of mnemonics")
    frozen = _freeze(value)
    if frozen is None:
        raise row.place.fault(f"{name!r} must be a finite number or a list of them, not {value!r}")
    return frozen


def _freeze(value: Any) -> Any:
    if isinstance(value, list) and value:
        items = tuple(_freeze(item) for item in value)
        return None if None in items else items
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    return None


def cycles(target: Target, instr: Instr, model: str = "") -> float:
    """Core cycles of ``instr`` on ``target``; memoised.

    ``model`` names one of ``target.model_names`` (a published model as it stands) instead of the target's
    own price.  Raises TG022 when nothing prices the instruction and TG040 for an unknown model.
    """
    book = target.prices if not model else target.model(model)
    found = book.memo.get(instr)
    if found is None:
        found = book.memo[instr] = book.cycles(instr)
    return found


def price(target: Target, instr: Instr) -> Price:
    """The price of ``instr`` with its source; raises TG022 when nothing prices it."""
    value = cycles(target, instr)
    row = target.prices.find(instr)
    assert row is not None
    unknown = row.known is not None and row.data_dtype(instr) not in row.known
    return Price(value, row.estimate or unknown, row.source, row.why, row.differs)


def work_shape(types: list[TileType]) -> tuple[int, int, int]:
    """Return (valid rows, valid columns, physical columns) of the largest tile; vectors count as one row.

    A dynamic valid extent counts as the whole physical extent; leading dimensions are folded into the rows.
    """
    best = (0, 0, 0)
    for t in types:
        shape = [d if isinstance(d, int) else 1 for d in t.shape]
        valid = [v if isinstance(v, int) else d for v, d in zip(t.valid_shape, shape)]
        rows = 1
        for v in valid[:-1]:
            rows *= v
        found = (rows, valid[-1], shape[-1])
        if found[0] * found[1] > best[0] * best[1]:
            best = found
    rows, cols, phys = best
    if cols == 1 and rows > 1 and phys == 1:
        return 1, rows, rows
    return max(rows, 1), max(cols, 1), max(phys, 1)
