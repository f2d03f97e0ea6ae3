"""Targets as data: hardware figures, native casts, legality, scratch tiles and prices.

Everything that differs between targets stands in ``rules/targets/<name>.toml`` and its parts; no code names a
target.  Adding a target means adding a file there, or passing the path of one to :func:`load_target`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..ir.diagnostics import TileggError, error
from ..ir.dtypes import DType
from .cost import Instr, PriceBook
from .target_data import (
    Contents,
    Place,
    RawTarget,
    Row,
    Sets,
    contents,
    overlay,
    package_files,
    read_raw,
    read_toml,
    to_rows,
)
from .target_parse import casts, check_hardware, facts, numbers, ops
from .target_types import CastEdge, Fact, Legality, OpInfo, ScratchPlan, When

__all__ = [
    "CastEdge", "Fact", "Legality", "OpInfo", "ScratchPlan", "Target", "load_target", "target_names",
]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Target:
    """A target: everything the optimiser needs to know about the machine and its assembler."""

    name: str
    title: str
    aliases: tuple[str, ...]
    path: Path
    sources: Mapping[str, str]
    hardware: Mapping[str, Fact]
    capabilities: Mapping[str, Fact]
    casts: dict[tuple[str, str], CastEdge]
    ops: Mapping[str, OpInfo]
    _raw: RawTarget = field(repr=False)
    _models: dict[str, PriceBook] = field(default_factory=dict, repr=False)
    _taken: tuple[str, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"Target({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reloaded, (str(self.path), self._taken)

    def with_assembler(self, mnemonics: Iterable[str]) -> Target:
        """Return the target as it would be if its assembler took these instructions wherever the hardware does."""
        taken = {m: replace(self.ops[m], assembler=True, asm=self.ops[m].isa) for m in mnemonics if m in self.ops}
        every = (*self._taken, *taken)
        return replace(self, ops={**self.ops, **taken}, _models=dict(self._models), _taken=every)

    # -- figures ---------------------------------------------------------------------------------------

    def figure(self, name: str) -> float:
        """A hardware figure by name, such as ``"ub_bytes"``; raises TG040 when the target has none."""
        fact = self.hardware.get(name)
        if fact is None or isinstance(fact.value, str):
            known = ", ".join(self.hardware)
            place = Place(self.path, "hardware")
            raise place.fault(f"{self.name} states no figure {name!r}", hint=f"known figures: {known}")
        return fact.value

    def has(self, capability: str) -> bool:
        """True when the target states the capability as true."""
        fact = self.capabilities.get(capability)
        return fact is not None and fact.value is True

    @property
    def arch(self) -> str:
        """The assembler's name of the architecture (``pto.target_arch``, ``--pto-arch``)."""
        return str(self.capabilities["assembler_arch"].value)

    @property
    def ub_usable_bytes(self) -> int:
        """Bytes of local memory for tiles, reserved parts subtracted."""
        return int(self.figure("ub_bytes") - self.figure("ub_reserved_bytes"))

    # -- casts -----------------------------------------------------------------------------------------

    def cast(self, src: str, dst: str) -> CastEdge | None:
        """The native conversion from ``src`` to ``dst``, if there is one."""
        return self.casts.get((src, dst))

    def effective_mode(self, src: str, dst: str, mode: str) -> str:
        """The round mode the hardware applies when ``mode`` is asked for; raises TG020 for other pairs."""
        edge = self.casts.get((src, dst))
        if edge is None:
            raise error("TG020", f"{self.name} has no native cast from {src} to {dst}")
        return edge.effective_mode(mode)

    # -- operations ------------------------------------------------------------------------------------

    def legal(self, op: str, dtype: str | DType, **detail: object) -> Legality:
        """Whether ``op`` may be emitted on ``dtype`` (the sources' for compares, casts and dequantisation).

        ``detail`` refines the question: ``cmp="lt"``, ``dst="INT8"`` for ``tcvt``.  A missing detail counts
        as allowed, the reason then states the condition.
        """
        name = dtype if isinstance(dtype, str) else dtype.name
        info = self.ops.get(op)
        if info is None:
            close = difflib.get_close_matches(op, self.ops, 1)
            return Legality(False, f"{self.name} has no operation {op}" + (f"; {close[0]}?" if close else ""))
        if not info.assembler:
            return Legality(False, f"the instruction set of {self.name} has {op}, the assembler has not")
        if info.casts:
            return self._legal_cast(name, detail)
        condition = ""
        for refusal in info.refusals:
            if refusal.dtypes is not None and name not in refusal.dtypes:
                continue
            verdict = _matches(refusal.when, detail)
            if verdict:
                return Legality(False, refusal.reason, refusal.hint)
            if verdict is None:
                words = " ".join(f"{key} in {' '.join(sorted(values))}" for key, values in refusal.when)
                condition = f"not with {words}: {refusal.reason}"
        if name not in info.asm or name not in info.isa:
            return Legality(False, _refused(self.name, info, name))
        return Legality(True, condition)

    def way_out(self, op: str, dtype: str | DType, **detail: object) -> str:
        """Return what to write where ``op`` is refused: as the refusal says, or another algorithm; "" for nothing."""
        from ..ir.mx import ALGORITHMS

        name = dtype if isinstance(dtype, str) else dtype.name
        if hint := self.legal(op, name, **detail).hint:
            return hint
        for word in ALGORITHMS if "scale_alg" in detail else ():
            if self.legal(op, name, **{**detail, "scale_alg": word}).ok:
                return f'write scale_alg="{word}", which {op} takes on {name} here'
        return ""

    def _legal_cast(self, src: str, detail: Mapping[str, object]) -> Legality:
        dst = detail.get("dst")
        edges = [e for e in self.casts.values() if e.src == src and (dst is None or e.dst == _name(dst))]
        if not edges:
            to = f" to {_name(dst)}" if dst is not None else ""
            return Legality(False, f"{self.name} has no native cast from {src}{to}")
        return next((Legality(True) for e in edges if e.assembler), Legality(False, edges[0].refusal))

    def scratch(self, instr: Instr) -> ScratchPlan | None:
        """The scratch tile ``instr`` takes, or ``None``."""
        if instr.op == "tcvt":
            edge = self.casts.get((instr.dtypes[0], instr.dtypes[-1]))
            rules = edge.scratch if edge else ()
        else:
            info = self.ops.get(instr.op)
            rules = info.scratch if info else ()
        block = int(self.figure("block_bytes"))
        return next((plan for rule in rules if (plan := rule.plan(instr, block))), None)

    def fills_blocks(self, cols: int, bits: int) -> bool:
        """Whether a row of so many elements is a whole number of blocks, so that no gap follows it in local memory."""
        return cols * bits % (8 * int(self.figure("block_bytes"))) == 0

    def inplace(self, op: str) -> Legality:
        """Whether the result may use a source's storage."""
        info = self.ops.get(op)
        return Legality(not (info and info.inplace), info.inplace if info else "")

    # -- prices ----------------------------------------------------------------------------------------

    @cached_property
    def prices(self) -> PriceBook:
        """The price rows in use, read on first access; see :func:`tilegg.rules.cost.cycles`."""
        return self._book(self._price_rows, self.name)

    @cached_property
    def _price_rows(self) -> list[Row]:
        return self._raw.price_rows()

    def _book(self, rows: list[Row], name: str) -> PriceBook:
        return PriceBook(rows, Sets(self._raw.tables.get("sets")), numbers(self.hardware), name)

    @cached_property
    def _model_rows(self) -> dict[str, list[Row]]:
        path = self._raw.models
        if path is None:
            return {}
        models = read_toml(path).get("model", {})
        return {name: to_rows(f"model.{name}", rows, path) for name, rows in models.items()}

    @property
    def model_names(self) -> tuple[str, ...]:
        """The published cost models that the target's files carry for comparison."""
        return tuple(self._model_rows)

    def model(self, name: str) -> PriceBook:
        """A published model's prices: its own rows, then the target's rows that come from it.

        Raises TG040 for an unknown name.
        """
        if name not in self._model_rows:
            known = ", ".join(self.model_names) or "none"
            raise error("TG040", f"{self.name} has no cost model {name!r}", hint=f"known models: {known}")
        if name not in self._models:
            own = self._model_rows[name]
            covered = {op for row in own for op in row.words("ops")}
            shared = [row for row in self._price_rows if row.text("source", "") == name]
            shared = [row for row in shared if not covered & set(row.words("ops"))]
            self._models[name] = self._book(own + shared, f"{self.name} model {name}")
        return self._models[name]


def _name(dtype: object) -> str:
    return dtype.name if isinstance(dtype, DType) else str(dtype)


def _matches(when: When, detail: Mapping[str, object]) -> bool | None:
    """True when the details fall under ``when``, False when not, None when one is not given."""
    verdict: bool | None = True
    for key, words in when:
        if key not in detail:
            verdict = None
        elif str(detail[key]).lower() not in words:
            return False
    return verdict


def _refused(target: str, info: OpInfo, dtype: str) -> str:
    lists = (("assembler", info.asm), ("instruction set", info.isa))
    who = [f"the {name}" for name, takes in lists if dtype not in takes]
    takes = " ".join(info.takes)
    verb = "do" if len(who) > 1 else "does"
    text = f"{' and '.join(who)} of {target} {verb} not take {info.name} on {dtype}"
    return f"{text}; it takes {takes}" if takes else f"{text}, nor on any other dtype: {info.note or info.kind}"


# -- loading -------------------------------------------------------------------------------------------


def target_names() -> tuple[str, ...]:
    """The names of the targets that come with the package, sorted."""
    return tuple(package_files())


def load_target(name: str) -> Target:
    """Load a target by name, by alias (any letter case) or by the path of a ``.toml`` file.

    Cached: one target stands for a name, and for a path as long as none of the files behind it changes.
    Raises TG040 for an unknown name or a malformed file (with its line) and TG013 for an unreadable one.
    """
    if not _is_path(name):
        return _named(name)
    path = Path(os.path.abspath(name))
    return _named(path.stem) if package_files().get(path.stem) == path else _at(path, name)


@lru_cache(maxsize=64)
def _named(name: str) -> Target:
    return _build(_find(name, ()))


#: Users' targets by absolute path, each with the contents of its files when they were read.
_users: dict[Path, tuple[Contents, Target]] = {}
_KEPT = 64


def _at(path: Path, name: str) -> Target:
    known = _users.get(path)
    if known is not None and known[0] == contents(known[0]):
        return known[1]
    raw = _find(name, ())
    target = _build(raw)
    # A user's file is checked whole, so that a fault shows at once and not at the first price.
    _ = target.prices
    if len(_users) >= _KEPT:
        _users.clear()
    _users[path] = (contents(raw.files()), target)
    return target


def _reloaded(path: str, taken: tuple[str, ...]) -> Target:
    target = load_target(path)
    return target.with_assembler(taken) if taken else target


def _is_path(name: str) -> bool:
    return name.endswith(".toml") or os.sep in name


def _find(name: str, above: tuple[str, ...]) -> RawTarget:
    """The raw target for a name, alias or path, with its base laid under."""
    if _is_path(name):
        raw = read_raw(Path(name))
    else:
        raw = read_raw(_package_path(name))
    base = raw.tables["target"].text("extends", "")
    if not base:
        return raw
    chain = (*above, str(raw.path))
    beside = raw.path.parent / base
    wanted = str(beside) if base.endswith(".toml") else base
    if wanted in chain or base == raw.path.stem or len(chain) > 8:
        raise raw.tables["target"].place.fault(f"the target extends itself through {base!r}")
    try:
        return overlay(_find(wanted, chain), raw)
    except TileggError as problem:
        first = problem.diagnostics[0]
        if first.span is not None:
            raise
        place = raw.tables["target"].place
        raise place.fault(f"extends = {base!r}: {first.message}", first.reason, first.hint) from None


def _package_path(name: str) -> Path:
    files, wanted = package_files(), name.lower()
    if wanted in files:
        return files[wanted]
    aliases: dict[str, Path] = {}
    for path in files.values():
        for alias in read_toml(path).get("target", {}).get("aliases", ()):
            aliases[str(alias).lower()] = path
    if wanted in aliases:
        return aliases[wanted]
    known = [*files, *aliases]
    close = difflib.get_close_matches(wanted, known, 1)
    hint = f"known targets: {', '.join(known)}; or the path of a .toml file"
    raise error("TG040", f"unknown target {name!r}", reason=f"{close[0]}?" if close else "", hint=hint)


def _build(raw: RawTarget) -> Target:
    table = raw.tables["target"]
    table.only("name title aliases extends")
    aliases = table.values.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise table.place.fault("'aliases' must be a list of strings")
    sources = raw.tables.get("sources")
    hardware, capabilities = facts(raw, "hardware"), facts(raw, "capabilities")
    check_hardware(raw, hardware, capabilities)
    sets = Sets(raw.tables.get("sets"))
    name = table.text("name")
    return Target(
        name=name,
        title=table.text("title", name),
        aliases=tuple(aliases),
        path=raw.path.absolute(),
        sources=MappingProxyType({key: sources.text(key) for key in sources.values} if sources else {}),
        hardware=MappingProxyType(hardware),
        capabilities=MappingProxyType(capabilities),
        casts=casts(raw.rows["cast"], sets),
        ops=MappingProxyType(ops(raw.rows["op"], sets)),
        _raw=raw,
    )
