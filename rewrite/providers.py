"""Computed fact rows: what rules ask about literals, small integers and windows of tiles.

A provider is a function from what is known about a region (its operations, and e-graph rows where they have grown)
to rows of its table. Tables of literals are closed here: a literal that a row gives is a literal for further rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..ir.dtypes import FP32, INDEX, INT32, DType
from ..ir.op import OPS, Kind
from ..ir.program import Const, Op, Value
from ..ir.types import ScalarType, TileType, static
from ..rules.computed import COMPUTED
from ..rules.cost import Instr
from ..rules.facts import CIRCUMVENTED, ROOTED, SELDOM
from ..rules.rule import Rule
from ..rules.target import Target
from ..rules.terms import DTYPE_CODES, child_params, constructor, signature
from .egglog_text import terms_of
from .encode import Rows, class_of_values, decls_by_constructor, shape_code, type_from
from .region import Region
from .steps import literal_text
from .windows import Window, column_rows, column_window

#: Closure over computed literals: more steps would only follow chains that no kernel has.
_STEPS = 2
_MOST_LITERALS = 24


def literal_rows(region: Region, rules: Iterable[Rule]) -> list[str]:
    """Return the rows of the computed tables that ``rules`` ask for, for the region's literals."""
    tables: dict[str, frozenset[str]] = {}
    for r in rules:
        for name, asking in _asks(r).items():
            tables[name] = tables.get(name, frozenset()) | asking
    if not tables:
        return []
    met: dict[tuple[Const, DType], set[str]] = {}
    for op in region.ops:
        # What a comparison compares has the dtype that its number is for; the result is a mask.
        t = op.operands[0].type if op.name == "tile.cmps" else op.result.type  # type: ignore[union-attr]
        if isinstance(t, TileType | ScalarType):
            for o in op.operands:
                if _is_number(o):
                    met.setdefault((o, t.dtype), set()).add(op.name)  # type: ignore[arg-type]
    written = list(met)[:_MOST_LITERALS]
    known = [*region.leaves, *(op.result for op in region.ops)]
    dtypes = list(dict.fromkeys(t.dtype for t in map(_type, known) if t is not None))
    rows: dict[str, None] = {}
    for step in range(_STEPS):
        found = list(met)[: 2 * _MOST_LITERALS]
        for name, asking in tables.items():
            table = COMPUTED[name]
            pairs = _inputs(found if table.inputs == 1 else written, table.inputs)
            # Of the many pairs of dtypes, those of literals that the rules can meet as they are written.
            near = [m for m in found if met[m] & asking]
            for inputs, *kinds in _anywhere(near, dtypes) if table.everywhere else pairs:
                row, given = _row(name, inputs, tuple(kinds))
                if given is not None:
                    rows[row] = None
                    if step == 0:
                        for g in given:
                            met.setdefault((g, _meets(g, kinds[-1])), set())
        if len(met) == len(found):
            break
    return list(rows)


def _meets(given: Const, asked: DType) -> DType:
    """Return the dtype of the tiles that a given literal is for: whole numbers do not meet tiles of floats."""
    return INT32 if given.dtype is INDEX and asked.is_float else asked


def _asks(rule: Rule) -> dict[str, frozenset[str]]:
    """Return the tables that a rule asks for, each with the operations that meet the literals it is asked about."""
    known: dict[str, frozenset[str]] | None = rule.__dict__.get("_asks")
    if known is None:
        known = {}
        for c in rule.when:
            if c.relation in COMPUTED and not COMPUTED[c.relation].folds:
                literals = c.args[: COMPUTED[c.relation].inputs]
                known[c.relation] = frozenset(t.op for t in terms_of(rule.lhs) if set(literals) & set(t.children))
        object.__setattr__(rule, "_asks", known)
    return known


#: Rows by table, literals and dtypes, as text: 0.0 and -0.0, or 1 and 1.0, are equal as numbers.
_known: dict[tuple[object, ...], tuple[str, tuple[Const, ...] | None]] = {}
_MOST_KNOWN = 20_000


def _row(
    name: str, inputs: tuple[Const, ...], kinds: tuple[DType, ...]
) -> tuple[str, tuple[Const, ...] | None]:
    """Return the row of a table for some literals as text, and what it gives (``None``: there is no row)."""
    function = COMPUTED[name].function
    key = (name, *map(literal_text, inputs), function, *kinds)
    found = _known.get(key)
    if found is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        given = function(*inputs, *kinds)
        codes = [str(DTYPE_CODES[d.name]) for d in kinds]
        row = f"({' '.join([*map(str, key[: 1 + len(inputs)]), *codes, *map(literal_text, given or ())])})"
        found = _known[key] = (row, given)
    return found


def _anywhere(met: list[tuple[Const, DType]], dtypes: list[DType]) -> Iterator[tuple[tuple[Const, ...], DType, DType]]:
    """Every literal with the one dtype it meets and every other one in the region."""
    yield from (((c,), d, own) for c, own in met for d in dtypes if d is not own)


def _type(v: Value) -> TileType | None:
    return v.type if isinstance(v.type, TileType) else None


def _is_number(o: object) -> bool:
    return isinstance(o, Const) and o.dtype.kind != "bool"


def _inputs(met: list[tuple[Const, DType]], count: int) -> Iterator[tuple[tuple[Const, ...], DType]]:
    if count == 1:
        yield from (((c,), d) for c, d in met)
        return
    yield from (((a, b), d) for a, d in met for b, other in met if d is other)


# -- windows -----------------------------------------------------------------------------------------------

#: Operations that rules move from windows to the whole tile.
_MOVED = frozenset(
    f"tile.{n}"
    for n in (
        "cast", "neg", "exp", "abs", "muls", "adds", "add", "sub", "mul",
        *(f"{side}_expand_{n}" for side in ("row", "col") for n in ("add", "sub", "mul", "div")),
    )
)  # fmt: skip


def has_windows(region: Region) -> bool:
    """Tell whether several windows of one tile are read, and something is computed from them."""
    names = [op.operands[0].name for op in region.ops if op.name == "tile.slice"]  # type: ignore[union-attr]
    return len(set(names)) < len(names) and any(op.name in _MOVED for op in region.ops)


WINDOW_TABLES = frozenset({"val", "Lit"} | {constructor(n) for n in _MOVED | {"tile.slice"}})


def window_rows(region: Region, rows: Rows, kept: dict[int, str] | None = None) -> list[str]:
    """Return the rows of ``windows`` and its like: fully valid tiles of which the e-graph reads several windows.

    ``kept``: see :class:`Names`.
    """
    slices = rows.get("tile_slice", [])
    seen: dict[int, set[tuple[int, ...]]] = {}
    for row in slices:
        seen.setdefault(row[-2], set()).add(row[1:-2])
    several = {c for c, found in seen.items() if len(found) > 1}
    texts = Names(region, rows, kept)
    out: list[str] = []
    columns: dict[str, list[Window]] = {}
    for c in sorted(several, key=lambda c: texts.of(c) or ""):
        name, t = texts.of(c), texts.type_of(c)
        if name is not None and t is not None and t.valid is None:
            out.append(f"(windows {name} {DTYPE_CODES[t.dtype.name]} {shape_code(t)})")
            columns[name] = [w for args in sorted(seen[c]) if (w := column_window(t, *args)) is not None]
    return out + column_rows(columns)


class Names:
    """Text for the classes of an e-graph: the program's values, and terms of them for classes that rules made.

    ``kept`` holds the terms by class and is added to: a class with several is named the same way at every look.
    """

    def __init__(self, region: Region, rows: Rows, kept: dict[int, str] | None = None) -> None:
        self._kept = {} if kept is None else kept
        values = [*region.leaves, *(op.result for op in region.ops)]
        self._text: dict[int, str] = {}
        self._type: dict[int, TileType] = {}
        for i, c in class_of_values(rows).items():
            self._text.setdefault(c, f"(val {i})")
            t = values[i].type
            if isinstance(t, TileType):
                self._type.setdefault(c, t)
        self._open = {row[-1]: (name, row) for name in sorted(rows) for row in rows[name] if name in _decls()}
        for kind, bits, c in rows.get("Lit", []):
            self._text.setdefault(c, f"(Lit {kind} {bits})")

    def of(self, c: int, depth: int = 8) -> str | None:
        """Return the text of a class, ``None`` where it would be deep."""
        if c not in self._text and c in self._kept:
            self._text[c] = self._kept[c]
        if c not in self._text and c in self._open and depth:
            name, row = self._open[c]
            count = len(signature(_decls()[name]))
            children = [self.of(k, depth - 1) for k in row[count:-1]]
            if None not in children:
                text = f"({name} {' '.join([*map(str, row[:count]), *children])})"  # type: ignore[list-item]
                self._text[c] = self._kept[c] = text
        return self._text.get(c)

    def type_of(self, c: int) -> TileType | None:
        """Return the type of a class that holds tiles."""
        if c not in self._type and c in self._open:
            _, row = self._open[c]
            t = type_from(row[0], row[1])
            if isinstance(t, TileType):
                self._type[c] = t
        return self._type.get(c)


_decls = decls_by_constructor


# -- what the target can do ------------------------------------------------------------------------------------


def lacking_rows(region: Region, target: Target | None) -> list[str]:
    """Return the rows of ``lacking``, where the region has operations and dtypes that rules know ways around.

    With them come the scalars that meet tiles there, and for each type of integers the first tile that has it: numbers
    are spread over that one, so that equal numbers are spread once.
    """
    if target is None or not any(_circumvented(op) for op in region.ops):
        return []
    met = (_type(v) for v in (*region.leaves, *(op.result for op in region.ops)))
    names = dict.fromkeys(t.dtype.name for t in met if t is not None and t.dtype.is_int)
    lacks = [f"(lacking {k} {DTYPE_CODES[name]})" for name in names for k in _lacked(target, name)]
    return [*lacks, *_arguments(region), *_first_tiles(region)] if lacks else []


def _first_tiles(region: Region) -> list[str]:
    """Return the ``typed`` rows of the first tile of each type of integers, in the order of the program."""
    texts = _texts(region)
    found: dict[str, str] = {}
    for op in region.ops:
        for v in (*_tiles(op), op.result):
            if (t := _type(v)) is not None and t.dtype.is_int:
                row = f"{DTYPE_CODES[t.dtype.name]} {shape_code(t)})"
                found.setdefault(row, f"(typed {texts[v.name]} {row}")
    return list(found.values())


def _circumvented(op: Op) -> bool:
    types = (_type(v) for v in (op.result, *op.operands) if isinstance(v, Value))
    return any(t is not None and t.dtype.name in CIRCUMVENTED.get(op.name, ()) for t in types)


def _arguments(region: Region) -> list[str]:
    """Return the rows of ``argument``: scalars that the program names, each with the dtype of the tiles they meet."""
    texts = _texts(region)
    rows: dict[str, None] = {}
    for op in region.ops:
        t = _type(op.operands[0]) if op.name in CIRCUMVENTED and isinstance(op.operands[0], Value) else None
        for o in op.operands[1:] if t is not None else ():
            if isinstance(o, Value) and isinstance(o.type, ScalarType):
                rows[f"(argument {texts[o.name]} {DTYPE_CODES[t.dtype.name]})"] = None  # type: ignore[union-attr]
    return list(rows)


def _lacked(target: Target, dtype: str) -> Iterator[int]:
    """Yield the numbers of the operations of ``CIRCUMVENTED`` that the target lacks on a dtype."""
    for k, (name, dtypes) in enumerate(CIRCUMVENTED.items()):
        if dtype in dtypes and not target.legal(OPS[name].pto or "", dtype).ok:
            yield k


def target_rows(region: Region, target: Target | None) -> list[str]:
    """Return the rows of what the target can do: ``offers``, ``rooted``, and what it lacks.

    Where a form of 1 / sqrt of higher precision exists, the ordinary one is an approximation.
    """
    if target is None:
        return []
    names = {op.name for op in region.ops}
    rows = _offered(target) if names & {"tile.mul", "tile.relu", "tile.maximums", "tile.sels"} else []
    rows += _rooted(target) if "tile.sqrt" in names else []
    return rows + (["(lacks_extrema)"] if names & _BEST.keys() and not target.has("float_scalar_extrema") else [])


def _offered(target: Target) -> list[str]:
    known = [target.ops.get(OPS[name].pto or "") for name in SELDOM]
    return [f"(offers {k})" for k, info in enumerate(known) if info is not None and info.assembler and info.asm]


def _rooted(target: Target) -> list[str]:
    high = (("precision", "high"),)
    plans = {name: target.scratch(Instr("trsqrt", (name, name), 1, 64, 64, high)) for name in ROOTED}
    return [f"(rooted {DTYPE_CODES[name]})" for name, plan in plans.items() if plan is None]


# -- extrema read element by element -----------------------------------------------------------------------

_BEST = {"scalar.max": "max_of", "scalar.min": "min_of"}


def extrema_rows(region: Region) -> list[str]:
    """Return the rows of ``max_of`` and the like: FP32 extrema over every element of a column, each read by itself."""
    if not any(op.name == "tile.read" for op in region.ops):
        return []
    texts = _texts(region)
    made = {op.result.name: op for op in region.ops}
    rows: list[str] = []
    for op in region.ops:
        t = op.result.type
        found = _column(op, made) if op.name in _BEST and isinstance(t, ScalarType) and t.dtype is FP32 else None
        if found is not None:
            column, other = found
            one = shape_code(TileType((1, 1), FP32, None, column.type.memory))  # type: ignore[union-attr]
            words = [texts[op.result.name], texts[column.name], str(one)]
            if other is not None:
                words.insert(2, literal_text(other) if isinstance(other, Const) else texts[other.name])
            rows.append(f"({_BEST[op.name]}{'_and' * (other is not None)} {' '.join(words)})")
    return rows


def _column(best: Op, made: Mapping[str, Op]) -> tuple[Value, Value | Const | None] | None:
    """Return the column of which an extremum combines the reads of all elements, and the one further operand."""
    others: dict[Value | Const, None] = {}
    seen: dict[Value, set[tuple[object, ...]]] = {}
    stack = list(best.operands)
    while stack:
        o = stack.pop()
        source = made.get(o.name) if isinstance(o, Value) else None
        if source is not None and source.name == best.name:
            stack += source.operands
        elif source is not None and source.name == "tile.read" and _is_column(source.operands[0]):
            tile, at = source.operands[:2]
            place = tuple(c.value for c in at if isinstance(c, Const)) if isinstance(at, tuple) else ()
            seen.setdefault(tile, set()).add(place)  # type: ignore[arg-type]
        elif isinstance(o, Value | Const):
            others[o] = None
    if len(seen) != 1 or len(others) > 1:
        return None
    ((column, places),) = seen.items()
    rows = static(column.type.shape)  # type: ignore[union-attr]
    assert rows is not None
    return (column, next(iter(others), None)) if places == {(i, 0) for i in range(rows[0])} else None


def _is_column(o: object) -> bool:
    t = o.type if isinstance(o, Value) else None
    shape = static(t.shape) if isinstance(t, TileType) and t.valid is None else None
    return shape is not None and len(shape) == 2 and shape[1] == 1


# -- conversions of repeated values --------------------------------------------------------------------------

_EXPANDS = frozenset({"tile.row_expand", "tile.col_expand", "tile.row_expand_add", "tile.col_expand_add"})


def expand_rows(region: Region, counting: bool) -> Iterable[str]:
    """Return the ``typed`` rows of what repeats: the vectors and targets of expands in a region with casts.

    ``counting``: indices are computed; what is reshaped then gets rows as well.
    """
    if not any(op.name == "tile.cast" for op in region.ops):
        return []
    texts = _texts(region)
    rows: dict[str, None] = {}
    for op in region.ops:
        for o in _tiles(op) if op.name in _EXPANDS or (counting and op.name == "tile.reshape") else ():
            rows[f"(typed {texts[o.name]} {DTYPE_CODES[o.type.dtype.name]} {shape_code(o.type)})"] = None  # type: ignore[union-attr]
    return list(rows)


def _texts(region: Region) -> dict[str, str]:
    """Return the terms of the region's values by name."""
    return {v.name: f"(val {i})" for i, v in enumerate([*region.leaves, *(op.result for op in region.ops)])}


def _tiles(op: Op) -> list[Value]:
    params = OPS[op.name].operand_params
    found = [op.operands[i] for i in child_params(OPS[op.name]) if params[i].kind is Kind.TILE]
    return [o for o in found if isinstance(o, Value)]


