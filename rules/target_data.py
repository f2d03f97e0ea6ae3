"""Reading target files: TOML tables and rows that remember where they stand.

A target is ``<name>.toml``, optionally with ``<name>.casts.toml`` beside it, and with ``<name>.cost.toml``
and ``<name>.models.toml``, which are read on demand.  ``extends = "other"`` in ``[target]`` starts from
another target: tables are overlaid key by key; an own row takes the place of those that would fit as well.
Every problem is a TG040 diagnostic with file and line; a file that cannot be read is TG013.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..ir.diagnostics import Span, TileggError, error
from ..ir.dtypes import DTYPES

TABLES = ("target", "sources", "hardware", "capabilities", "sets")
ROW_TABLES = ("cast", "op", "cost")
#: The dtypes that the word ``any`` stands for: those of tile elements.
ANY = tuple(d.name for d in DTYPES.values() if d.pto and d.kind in ("int", "uint", "float"))
MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")


@dataclass(frozen=True, slots=True)
class Place:
    """The ``index``-th ``[table]`` or ``[[table]]`` of a target file; its line is looked up when needed."""

    path: Path
    table: str
    index: int = 0

    def fault(self, message: str, reason: str = "", hint: str = "") -> TileggError:
        """A TG040 error at this place, to be raised by the caller."""
        return _fault_at(self.path, self.line, message, reason, hint)

    @property
    def line(self) -> int:
        """The 1-based line of the table's header, 1 when it is written in another way."""
        header = re.compile(rf"\s*\[+\s*{re.escape(self.table)}\s*\]")
        try:
            text = self.path.read_text(encoding="utf-8")
        except OSError:
            return 1
        lines = [number for number, line in enumerate(text.splitlines(), 1) if header.match(line)]
        return lines[self.index] if self.index < len(lines) else 1


def _fault_at(path: Path, line: int, message: str, reason: str = "", hint: str = "") -> TileggError:
    span = Span(str(path), line, 1, line + 1, 1)
    return error("TG040", message, span, reason=reason, hint=hint)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: its values with typed access, and its place for error messages."""

    values: dict[str, Any]
    place: Place
    what: str

    def only(self, allowed: str) -> None:
        """Refuse keys other than the words of ``allowed``."""
        known = allowed.split()
        for key in self.values:
            if key not in known:
                raise self.place.fault(f"unknown key {key!r} in a {self.what}", hint=f"known keys: {', '.join(known)}")

    def text(self, key: str, default: str | None = None) -> str:
        """A string; required when there is no default."""
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self._kind(key, "a string")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """A truth value."""
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self._kind(key, "true or false")
        return value

    def one_of(self, key: str, choices: Iterable[str], default: str | None = None) -> str:
        """A string out of ``choices``."""
        value, known = self.text(key, default), list(choices)
        if value not in known:
            raise self.place.fault(f"{key} is {value!r}", hint=f"known values: {', '.join(known)}")
        return value

    def words(self, key: str, default: str | None = None) -> tuple[str, ...]:
        """The words of a string, in order."""
        return tuple(self.text(key, default).split())

    def rows(self, key: str) -> list[Row]:
        """An array of inline tables as rows (empty when absent)."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._kind(key, "an array of tables")
        return [Row(item, self.place, f"{key} row") for item in value]

    def when(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """The ``when`` table: attribute names, each with the values for which the row holds."""
        table = self.values.get("when", {})
        if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
            raise self._kind("when", "a table of strings")
        return tuple((name, frozenset(text.split())) for name, text in table.items())

    def _get(self, key: str, default: Any) -> Any:
        value = self.values.get(key, default)
        if value is None:
            raise self.place.fault(f"a {self.what} has no {key!r}")
        return value

    def _kind(self, key: str, wanted: str) -> TileggError:
        found = type(self.values[key]).__name__
        return self.place.fault(f"{key!r} in a {self.what} must be {wanted}, not {found}")


@dataclass(slots=True)
class RawTarget:
    """The joined tables and rows of a target's files, not yet interpreted.

    Price rows are read when asked for: they are the bulk of the text and not every use needs them.
    """

    path: Path
    tables: dict[str, Row] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in ROW_TABLES})
    models: Path | None = None
    base: RawTarget | None = None

    def files(self) -> list[Path]:
        """The absolute paths of all files that the target is or would be read from, its base's included."""
        path = self.path.absolute()
        own = [path, *(path.with_name(f"{path.stem}.{part}.toml") for part in ("casts", "models", "cost"))]
        return own + (self.base.files() if self.base is not None else [])

    def price_rows(self) -> list[Row]:
        """The ``[[cost]]`` rows in the order they are tried: the own ones, then those of the base."""
        own = list(self.rows["cost"])
        beside = self.path.with_name(f"{self.path.stem}.cost.toml")
        if beside.is_file():
            data = read_toml(beside)
            _only_tables(beside, data, ("cost",))
            own += to_rows("cost", data["cost"], beside)
        if self.base is None:
            return own
        # The first row that fits is taken, so an own row stands before the base's and leaves its others in force.
        return own + self.base.price_rows()


#: What files hold, told apart by digests; ``None``: there is no such file.
Contents = dict[Path, bytes | None]


def contents(paths: Iterable[Path]) -> Contents:
    """What files hold now."""
    found: Contents = {}
    for path in paths:
        try:
            found[path] = sha256(path.read_bytes()).digest()
        except OSError:
            found[path] = None
    return found


@cache
def package_files() -> dict[str, Path]:
    """The main files of the targets that come with the package, by file stem, sorted."""
    folder = Path(os.path.abspath(__file__)).parent / "targets"
    return {path.stem: path for path in sorted(folder.glob("*.toml")) if "." not in path.stem}


def read_toml(path: Path) -> dict[str, Any]:
    """The parsed file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not UTF-8 text"
        raise error("TG013", f"cannot read the target file {path}", reason=reason) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        found = re.search(r"line (\d+)", str(problem))
        line = int(found[1]) if found else text.count("\n") + 1
        why = re.sub(r" \(at [^)]*\)$", "", str(problem))
        raise _fault_at(path, line, "the target file is not valid TOML", reason=why) from None
    except RecursionError:
        raise _fault_at(path, 1, "the target file is nested too deeply") from None


def read_raw(path: Path) -> RawTarget:
    """Read a target's main file and its casts, without its base."""
    raw = RawTarget(path)
    _add_file(raw, path)
    casts = path.with_name(f"{path.stem}.casts.toml")
    if casts.is_file():
        _add_file(raw, casts)
    models = path.with_name(f"{path.stem}.models.toml")
    # Read when asked for, perhaps from another working directory.
    raw.models = models.absolute() if models.is_file() else None
    if "target" not in raw.tables:
        raise _fault_at(path, 1, "the target file has no [target] table")
    return raw


def _only_tables(path: Path, data: dict[str, Any], allowed: Iterable[str]) -> None:
    known = list(allowed)
    for name in data:
        if name not in known:
            raise Place(path, name).fault(f"unknown table {name!r}", hint=f"known tables: {', '.join(known)}")


def _add_file(raw: RawTarget, path: Path) -> None:
    data = read_toml(path)
    _only_tables(path, data, (*TABLES, *ROW_TABLES))
    for name, value in data.items():
        if name in ROW_TABLES:
            raw.rows[name] += to_rows(name, value, path)
        elif isinstance(value, dict):
            known = raw.tables.get(name)
            merged = {**known.values, **value} if known else value
            raw.tables[name] = Row(merged, Place(path, name), f"[{name}] table")
        else:
            raise Place(path, name).fault(f"{name!r} must be a table, written [{name}]")


def to_rows(name: str, value: Any, path: Path) -> list[Row]:
    """The array of tables ``[[name]]`` as rows with their places."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Place(path, name).fault(f"{name!r} must be an array of tables, written [[{name}]]")
    return [Row(item, Place(path, name, index), f"[[{name}]] row") for index, item in enumerate(value)]


def overlay(base: RawTarget, own: RawTarget) -> RawTarget:
    """``own`` on top of ``base``; the identity (name, title, aliases) is always the own one."""
    merged = RawTarget(own.path, models=own.models or base.models, base=base)
    for name in TABLES:
        parts = [raw.tables[name] for raw in (base, own) if name in raw.tables]
        if name == "target":
            merged.tables[name] = own.tables[name]
        elif parts:
            values = {key: value for part in parts for key, value in part.values.items()}
            merged.tables[name] = Row(values, parts[-1].place, parts[-1].what)
    for name in ("op", "cast"):
        merged.rows[name] = base.rows[name] + own.rows[name]
    merged.rows["cost"] = own.rows["cost"]
    return merged


class Sets:
    """The dtype words of a target: names of dtypes, of sets of them, and ``any``."""

    def __init__(self, table: Row | None) -> None:
        self._sets: dict[str, tuple[str, ...]] = {}
        for name in table.values if table else ():
            assert table is not None
            self._sets[name] = tuple(word for word in table.words(name))
            for word in self._sets[name]:
                if word not in DTYPES:
                    raise table.place.fault(f"set {name!r} names the unknown dtype {word!r}")

    def dtypes(self, row: Row, key: str, default: str | None = None) -> tuple[str, ...]:
        """The dtypes that ``key`` of ``row`` lists, in the order of :data:`DTYPES`."""
        names: set[str] = set()
        for word in row.words(key, default):
            if word == "any":
                names.update(ANY)
            elif word in DTYPES:
                names.add(word)
            elif word in self._sets:
                names.update(self._sets[word])
            else:
                known = ", ".join([*self._sets, *DTYPES])
                raise row.place.fault(f"{key} names the unknown dtype {word!r}", hint=f"known words: {known}")
        return tuple(name for name in DTYPES if name in names)
