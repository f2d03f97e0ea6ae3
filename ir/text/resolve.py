"""Which operation a call names: full, unified and customary short spellings, and near misses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache

from ..op import OPS, UNIFIED, Kind, OpDecl, OpParam
from .source import did_you_mean


@dataclass(frozen=True)
class Slot:
    """Where an argument goes: an operand's index, or an attribute (index -1)."""

    param: OpParam
    index: int


@dataclass(frozen=True)
class Plan:
    """A declared operation, prepared for binding arguments and for printing."""

    decl: OpDecl
    slots: tuple[Slot, ...]
    positional: int
    by_name: dict[str, Slot]
    operands: int
    required: tuple[Slot, ...]
    #: So many leading arguments hold every required one.
    enough: int
    #: Names of the slots.
    names: tuple[str, ...]

    @property
    def first(self) -> Kind:
        """The kind of the first parameter."""
        return self.slots[0].param.kind


@cache
def plan(name: str) -> Plan:
    """Return the plan of a declared operation."""
    decl = OPS[name]
    at = {p.name: i for i, p in enumerate(decl.operand_params)}
    slots = tuple(Slot(p, at.get(p.name, -1)) for p in decl.params)
    return Plan(
        decl,
        slots,
        sum(not s.param.keyword_only for s in slots),
        {s.param.name: s for s in slots},
        len(at),
        tuple(s for s in slots if s.param.required),
        max((i + 1 for i, s in enumerate(slots) if s.param.required), default=0),
        tuple(s.param.name for s in slots),
    )


@dataclass(frozen=True)
class Target:
    """What a dotted name resolves to: declared candidates (none: not an operation that is known)."""

    text: str
    plans: tuple[Plan, ...]
    unified: bool = False
    hint: str = ""
    namespaced: bool = field(default=False)

    @cached_property
    def leading(self) -> int:
        """So many of the first two parameters are operands in every candidate."""
        for i in range(2):
            if not all(len(p.slots) > i and p.slots[i].index >= 0 for p in self.plans):
                return i
        return 2


#: Short spellings whose full name differs by more than the namespace.
_SHORT = {
    "create_tile": ("tile.create",),
    "create_tensor": ("tensor.create",),
    "arange": ("tensor.ci", "tile.ci"),
}
#: Distributed operations whose tile form, with explicit staging tiles, has no short spelling.
_STAGED = ("put", "get")
_NAMESPACES = ("tile", "tensor", "system", "array", "prefetch")


def resolve(text: str, hints: bool = True) -> Target:
    """Return what a call of ``text`` (``pl.tile.add``, ``pl.add``) means.

    A unified spelling gives all candidates, to be chosen by operand kinds. With ``hints``, near misses are named.
    """
    return _resolve(text, hints, len(OPS))


@lru_cache(maxsize=4096)
def _resolve(text: str, hints: bool, declared: int) -> Target:
    """Resolve a name among the operations that are declared so far."""
    prefix, _, rest = text.partition(".")
    name = rest if prefix == "pl" else text
    if name in OPS:
        return Target(text, (plan(name),), namespaced=True)
    space, _, short = name.rpartition(".")
    if prefix == "pl" and not space:
        found = [d.name for d in UNIFIED.get(short, [])] or [
            n for n in (f"tile.{short}", f"tensor.{short}", f"scalar.{short}", *_SHORT.get(short, ())) if n in OPS
        ]
        if found:
            # On two scalars the unified spelling is plain arithmetic.
            found += [n for n in (f"scalar.{short}",) if n in OPS and n not in found]
            return Target(text, tuple(plan(n) for n in found), unified=True)
        return Target(text, (), hint=did_you_mean(short, [*UNIFIED, *_SHORT], "pl.") if hints else "")
    if prefix == "pld" and space == "pld":
        found = [n for n in (f"pld.{s}.{short}" for s in (*_NAMESPACES, "system")) if n in OPS]
        if short in _STAGED:
            found = [f"pld.tensor.{short}"]
        if found:
            return Target(text, tuple(plan(n) for n in found), unified=len(found) > 1)
    known = [n.rpartition(".")[2] for n in OPS if n.startswith(space + ".")]
    dotted = text[: len(text) - len(short)]
    hint = did_you_mean(short, known, dotted) if hints else ""
    namespaced = prefix in ("pl", "pld") and (space in _NAMESPACES or space.startswith("pld."))
    return Target(text, (), hint=hint, namespaced=namespaced)
