"""The shapes of price formulas: from rows, columns and element width to core cycles.

Each form is a dataclass whose fields are the parameters of a ``[[cost]]`` row in a target file, called with a
:class:`Work`.  A *repeat* (older architecture) or *register* (newer one) is ``repeat_bytes`` of elements; a
row of fewer elements than that still takes one.  All figures are core cycles.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .formula import ceil_div

Pair = tuple[float, float]


class Work(NamedTuple):
    """What an instruction runs over: valid rows and columns, physical columns, element bits, lanes.

    ``lanes`` is the number of elements per repeat or register, by the widest element for conversions.
    """

    rows: int
    cols: int
    phys: int
    bits: int
    lanes: int
    limit: int

    @property
    def flat(self) -> bool:
        """True when the elements are contiguous: whole rows, or one row."""
        return self.cols == self.phys or self.rows == 1


@dataclass(frozen=True, slots=True)
class Repeat:
    """``head + slope * repeats + tail``: one vector instruction of the repeat machine.

    ``layout = "rows"``: rows narrower than a repeat take one masked repeat each and ``masked`` extra cycles
    (``half`` is the slope of a repeat at most half filled).  ``layout = "flat"``: contiguous tiles run
    through, a ragged end costs ``ragged``.  ``count``: extra of the counted mode, entered by wide ragged rows
    and by more repeats than the limit.  ``column``: extra for each column of repeats.
    """

    head: float
    slope: float
    tail: float
    layout: str = "rows"
    masked: float = 0
    ragged: float = 0
    count: float = 0
    half: float = 0
    column: float = 0

    def __call__(self, work: Work) -> float:
        rows, cols, lanes = work.rows, work.cols, work.lanes
        slope, extra = self.slope, self.column
        wide_ragged = cols > lanes and cols % lanes != 0
        if cols < lanes and (self.layout == "rows" or not work.flat):
            repeats, extra = rows, extra + self.masked
            slope = self.half if self.half and 2 * cols <= lanes else slope
        elif work.flat:
            repeats = ceil_div(rows * cols, lanes)
            extra += self.ragged if rows * cols % lanes else 0
            extra += self.count if wide_ragged or repeats > work.limit else 0
        else:
            repeats = rows * ceil_div(cols, lanes)
            extra += self.masked if cols % lanes else 0
        if self.column and rows > 1 and cols > lanes:
            extra += self.column * (ceil_div(cols, lanes) - 1)
        return self.head + slope * repeats + self.tail + extra


@dataclass(frozen=True, slots=True)
class Convert:
    """A conversion: one instruction per row for the full repeats, one for the tail columns of all rows.

    ``control`` once, ``masked`` where there are tail columns.  ``restart``: the instructions of the rows do
    not overlap; each pays head and tail again, and this many cycles of set-up.
    """

    head: float
    slope: float
    tail: float
    control: float = 0
    masked: float = 0
    restart: float = 0

    def __call__(self, work: Work) -> float:
        full, rest = divmod(work.cols, work.lanes)
        tail_columns = self.masked if rest else 0
        if not self.restart:
            repeats = work.rows * (full + (1 if rest else 0))
            return self.control + self.head + self.slope * repeats + self.tail + tail_columns
        start = self.head + self.tail + self.restart
        total = self.control + tail_columns
        total += work.rows * (start + self.slope * full) if full else 0
        return total + (start + self.slope * work.rows if rest else 0)


@dataclass(frozen=True, slots=True)
class Rows:
    """``fixed`` plus a price per row: ``row`` for the first repeat, ``chunk`` for each further one.

    Columns that do not fill the last repeat add ``row_tail`` to each row (wider than one repeat) and
    ``fixed_tail`` once; ``fixed_chunk`` is paid once for each further repeat. ``lanes`` overrides the width.
    """

    fixed: float
    row: float = 0
    chunk: float = 0
    row_tail: float = 0
    fixed_chunk: float = 0
    fixed_tail: float = 0
    lanes: int = 0

    def __call__(self, work: Work) -> float:
        lanes = self.lanes or work.lanes
        more = ceil_div(work.cols, lanes) - 1
        ragged = work.cols % lanes != 0
        per_row = self.row + self.chunk * more + (self.row_tail if ragged and more else 0)
        fixed = self.fixed + self.fixed_chunk * more + (self.fixed_tail if ragged else 0)
        return fixed + work.rows * per_row


@dataclass(frozen=True, slots=True)
class Loop:
    """A register loop: ``flat = [per register, start]`` over contiguous tiles.

    Strided tiles run one loop per row: the first row costs ``first`` (default ``flat``) over its registers,
    every further one what the points ``strided = [[registers per row, cycles], ...]`` say, interpolated.
    With one register per row the loops collapse into one (``single``, default ``flat``).  ``odd``: the flat
    price of an odd number of registers.  ``lanes`` and ``row_lanes`` override the elements per step.
    """

    flat: Pair
    strided: tuple[Pair, ...] = ()
    first: Pair | None = None
    single: Pair | None = None
    odd: Pair | None = None
    lanes: int = 0
    row_lanes: int = 0

    def __call__(self, work: Work) -> float:
        lanes = self.lanes or work.lanes
        if work.flat:
            return self._flat(ceil_div(work.rows * work.cols, lanes))
        inner = ceil_div(work.cols, self.row_lanes or lanes)
        if inner == 1:
            return _line(self.single, work.rows) if self.single else self._flat(work.rows)
        first = _line(self.first, inner) if self.first else self._flat(inner)
        return first + (work.rows - 1) * self._further_row(inner)

    def _flat(self, registers: int) -> float:
        return _line(self.odd if self.odd and registers % 2 else self.flat, registers)

    def _further_row(self, inner: int) -> float:
        if not self.strided:
            # A loop's start, or its throughput where that is slower.
            return max(inner + 5.0, self.flat[0] * inner)
        return _interpolate(self.strided, inner)


@dataclass(frozen=True, slots=True)
class Regression:
    """A published regression: ``flat = [p0, p1]``, ``strided = [p0, p1, p2]``, rounded, at least 0."""

    flat: Pair
    strided: tuple[float, float, float]
    odd: Pair | None = None
    lanes: int = 0
    row_lanes: int = 0

    def __call__(self, work: Work) -> float:
        lanes = self.lanes or work.lanes
        if work.flat:
            registers = ceil_div(work.rows * work.cols, lanes)
            figures = self.odd if self.odd and registers % 2 else self.flat
            return max(0, round(_line(figures, registers)))
        inner = ceil_div(work.cols, self.row_lanes or lanes)
        slope, per_row, fixed = self.strided
        return max(0, round((slope * inner + per_row) * work.rows + fixed))


@dataclass(frozen=True, slots=True)
class Columns:
    """A published regression by width: ``table = [[columns, cycles per element, bias], ...]``.

    The row of the widest listed width not above the tile's is used; -1 stands for any width.
    """

    table: tuple[tuple[float, float, float], ...]

    def __call__(self, work: Work) -> float:
        place = bisect_right([row[0] for row in self.table], work.cols) - 1
        _, slope, bias = self.table[max(place, 0)]
        return round(slope * work.rows * work.cols + bias)


@dataclass(frozen=True, slots=True)
class Bytes:
    """A transfer: ``fixed + bytes / per_cycle``, at least ``least``; ``whole`` drops the fraction."""

    per_cycle: float
    fixed: float = 0
    least: float = 0
    whole: bool = False

    def __call__(self, work: Work) -> float:
        cycles = self.fixed + work.rows * ceil_div(work.cols * work.bits, 8) / self.per_cycle
        return max(self.least, float(int(cycles)) if self.whole else cycles)


@dataclass(frozen=True, slots=True)
class Element:
    """A scalar loop: ``fixed`` plus ``each`` element."""

    fixed: float
    each: float

    def __call__(self, work: Work) -> float:
        return self.fixed + self.each * work.rows * work.cols


@dataclass(frozen=True, slots=True)
class Sum:
    """A sequence of other operations over the same tile, a barrier between two, and ``extra`` cycles."""

    parts: tuple[str, ...]
    extra: float = 0


Form = Callable[[Work], float]
FORMS: dict[str, type] = {
    "repeat": Repeat,
    "convert": Convert,
    "rows": Rows,
    "loop": Loop,
    "regression": Regression,
    "columns": Columns,
    "bytes": Bytes,
    "element": Element,
    "sum": Sum,
}


def _line(figures: Pair, count: int) -> float:
    return figures[0] * count + figures[1]


def _interpolate(points: Sequence[Pair], at: int) -> float:
    """The points as a polyline: constant before the first, the last segment's slope after the last."""
    if len(points) == 1 or at <= points[0][0]:
        return points[0][1]
    right = min(bisect_right([x for x, _ in points], at), len(points) - 1)
    (x0, y0), (x1, y1) = points[right - 1], points[right]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
