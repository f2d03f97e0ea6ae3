"""Execution domains: which statements run in SIMT threads, and whether each operation may stand where it stands.

A function is SIMT code when it is marked ``type=pl.FunctionType.SimtEntry`` or called from SIMT code; a
``with pl.section_simt(x, y, z):`` block is SIMT code inside an ordinary function. Everything else is ordinary. Which
section a function belongs to follows only from operations that prove it and from explicit sections, never from plain
scalar arithmetic, packed types or target intrinsics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .diagnostics import Diagnostic
from .literals import misfit
from .op import OPS
from .placement import CUBE, SHARED, VECTOR, core_of
from .program import Block, Function, Op, Program, Scope, Value, inner_blocks
from .simt import section_grid
from .types import OpaqueType, PtrType, ScalarType, TensorType, Type

ORDINARY, SIMT = "ordinary", "simt"
#: Names without a declaration that may stand anywhere: structure of the language.
_STRUCTURE = frozenset({"call", "tuple.get"})
_SECTIONS = {"pl.section_vector": "vector", "pl.section_cube": "cube", "pl.section_simt": "simt"}


def is_entry(f: Function) -> bool:
    """Return whether a function is marked as the entry of SIMT threads."""
    return f.attrs.get("type", "").endswith("SimtEntry")


def contexts(program: Program) -> dict[str, frozenset[str]]:
    """Return per function in which domains it runs: its mark, or those of the places that call it."""
    found: dict[str, set[str]] = {f.name: set() for f in program.functions}
    sites = [(f.name, s, inside) for f in program.functions for s, inside in _operations(f.body, "")]
    called = {str(s.attrs.get("callee")) for _, s, _ in sites if s.name == "call"}
    for f in program.functions:
        if is_entry(f):
            found[f.name].add(SIMT)
        elif f.name not in called:
            found[f.name].add(ORDINARY)
    entries = {f.name for f in program.functions if is_entry(f)}
    changed = True
    while changed:
        changed = False
        for caller, s, inside in sites:
            callee = str(s.attrs.get("callee"))
            if s.name != "call" or callee not in found or callee in entries:
                continue
            before = len(found[callee])
            found[callee] |= {inside} if inside else found[caller]
            changed |= len(found[callee]) > before
    return {name: frozenset(where) for name, where in found.items()}


def _operations(block: Block, inside: str) -> Iterator[tuple[Op, str]]:
    """Yield every operation with ``"simt"`` where a SIMT section is around it in the function."""
    for s in block.statements:
        if isinstance(s, Op):
            yield s, inside
            continue
        within = SIMT if isinstance(s, Scope) and section_grid(s.header) is not None else inside
        for inner in inner_blocks(s):
            yield from _operations(inner, within)


def domain_problems(program: Program) -> list[Diagnostic]:
    """Return operations that stand in a domain where they cannot run (TG055, TG056, TG057)."""
    if not any(_concerned(f) for f in program.functions):
        return []
    where = contexts(program)
    found: list[Diagnostic] = []
    for f in program.functions:
        found += _function(program, f, where)
    return found


def _concerned(f: Function) -> bool:
    if is_entry(f):
        return True
    for s, inside in _operations(f.body, ""):
        decl = OPS.get(s.name)
        if inside or (decl is not None and decl.scalar is not None and decl.scalar.domain != "anywhere"):
            return True
    return any(section_grid(s.header) is not None for s in _scopes(f.body))


def _scopes(block: Block) -> Iterator[Scope]:
    for s in block.statements:
        if isinstance(s, Scope):
            yield s
        for inner in inner_blocks(s):
            yield from _scopes(inner)


def _function(program: Program, f: Function, where: dict[str, frozenset[str]]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    runs = where[f.name]
    if len(runs) > 1:
        hint = "make two functions of it"
        reason = "SIMT code and ordinary code both call it"
        if any(_bound(s) for s, _ in _operations(f.body, "")):
            found.append(Diagnostic("TG057", f"{f.name} runs as SIMT code and as ordinary code", f.span, reason, hint))
            return found
    for s, inside in _operations(f.body, ""):
        for domain in [inside] if inside else sorted(runs):
            found += _placed(program, s, domain)
        if s.name == "pto.simt_launch":
            found += _launch(program, s)
    for scope in _scopes(f.body):
        sizes = section_grid(scope.header)
        if sizes is not None and not (1 <= len(sizes) <= 3 and all(map(_is_size, sizes))):
            hint = "with pl.section_simt(32, 1, 1): has up to three positive numbers or names"
            found.append(Diagnostic("TG006", f"{f.name}: {scope.header[:60]} has no sizes", scope.span, "", hint))
    if SIMT in runs:
        for scope in _scopes(f.body):
            if _kind(scope.header) is not None:
                why = "SIMT threads are running already"
                found.append(Diagnostic("TG056", f"a section opens inside of {f.name}", scope.span, why))
        found += _parameters(f)
    return found


def _is_size(text: str) -> bool:
    return int(text) > 0 if text.isdigit() else text.isidentifier()


def _bound(s: Op) -> bool:
    decl = OPS.get(s.name)
    return decl is None or decl.scalar is None or decl.scalar.domain != "anywhere"


def _placed(program: Program, s: Op, domain: str) -> list[Diagnostic]:
    decl = OPS.get(s.name)
    record = decl.scalar if decl is not None else None
    if domain == ORDINARY:
        if record is not None and record.domain == "simt":
            hint = "put it into a function of type=pl.FunctionType.SimtEntry, or into with pl.section_simt(x, y, z):"
            return [Diagnostic("TG055", f"{s.name} stands in ordinary code", s.span, "it needs SIMT threads", hint)]
        callee = next((f for f in program.functions if f.name == s.attrs.get("callee")), None)
        if s.name == "call" and callee is not None and is_entry(callee):
            hint = f'pl.pto.simt_launch("{callee.name}", [x, y, z], ...)'
            return [Diagnostic("TG055", f"{callee.name} is called from ordinary code", s.span, "it is SIMT code", hint)]
        return []
    if s.name in _STRUCTURE or (record is not None and record.domain != "ordinary"):
        return []
    hint = _ASK.get(s.name, "do it before or after the threads, and hand over pointers and scalars")
    return [Diagnostic("TG056", f"{s.name} stands in SIMT code", s.span, "threads work on scalars and pointers", hint)]


#: What threads ask instead.
_ASK = {"tile.get_block_idx": "pl.pto.get_block_idx_x()", "tile.get_block_num": "pl.pto.get_grid_dim_x()"}


def _launch(program: Program, s: Op) -> list[Diagnostic]:
    name = str(s.attrs.get("callee"))
    callee = next((f for f in program.functions if f.name == name), None)
    if callee is None or not is_entry(callee):
        what = "is no function of the program" if callee is None else "is not marked type=pl.FunctionType.SimtEntry"
        return [Diagnostic("TG055", f"pto.simt_launch: {name} {what}", s.span)]
    given = [o for o in s.operands[1:] if o is not None]
    if len(given) != len(callee.params):
        what = f"{name} takes {len(callee.params)} arguments, got {len(given)}"
        return [Diagnostic("TG005", f"pto.simt_launch: {what}", s.span)]
    found = []
    for p, o in zip(callee.params, given):
        t = getattr(o, "type", None)
        if isinstance(t, ScalarType | PtrType | TensorType) and not _fits(t, p.value.type):
            what = f"{p.value.name} of {name} is a {p.value.type}, got a {t}"
            found.append(Diagnostic("TG006", f"pto.simt_launch: {what}", s.span))
        elif isinstance(p.value.type, ScalarType) and (odd := misfit(o, p.value.type.dtype)):
            found.append(Diagnostic("TG011", f"pto.simt_launch: {p.value.name} of {name}: {odd[0]}", s.span, odd[1]))
    return found


def _fits(given: Type, wanted: Type) -> bool:
    if isinstance(given, TensorType) and isinstance(wanted, PtrType):
        return wanted == PtrType(given.dtype, "gm")
    if isinstance(given, ScalarType) and isinstance(wanted, ScalarType):
        return given.dtype is wanted.dtype or given.dtype.kind == "index"
    return given == wanted


def _parameters(f: Function) -> list[Diagnostic]:
    found = []
    for p in f.params:
        if not isinstance(p.value.type, ScalarType | PtrType | OpaqueType):
            message = f"{f.name}: SIMT code cannot take {p.value.name}, a {p.value.type}"
            found.append(Diagnostic("TG056", message, f.span, "threads work on scalars and pointers"))
    return found


# -- sections -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """What proves a section kind: an operation or a section's header, and where."""

    kind: str
    what: str
    line: int


def _kind(header: str) -> str | None:
    return next((kind for prefix, kind in _SECTIONS.items() if header.startswith(prefix + "(")), None)


def section_evidence(f: Function) -> tuple[Evidence, ...]:
    """Return what proves that the function has vector, cube or SIMT sections; empty when nothing does.

    Proofs are explicit sections, the mark of a SIMT entry, operations recorded as proving SIMT (queries, collectives,
    synchronisation, state), and tile operations, which run on the core that holds their tiles.
    """
    found: list[Evidence] = []
    if is_entry(f):
        found.append(Evidence(SIMT, "SimtEntry", f.span.line if f.span else 0))
    for scope in _scopes(f.body):
        kind = _kind(scope.header)
        if kind is not None:
            found.append(Evidence(kind, scope.header, scope.span.line if scope.span else 0))
    for s, _ in _operations(f.body, ""):
        decl, line = OPS.get(s.name), s.span.line if s.span else 0
        if decl is None:
            continue
        if decl.scalar is not None:
            if decl.scalar.section:
                found.append(Evidence(decl.scalar.section, s.name, line))
            continue
        operands = [o for o in (*s.operands, *s.results) if isinstance(o, Value)]
        core = core_of(decl, operands)
        if core != SHARED:
            found.append(Evidence({VECTOR: "vector", CUBE: "cube"}[core], s.name, line))
    return tuple(found)


def sections(f: Function) -> tuple[str, ...]:
    """Return the section kinds that are proved, sorted; empty where the function fits into any."""
    return tuple(sorted({e.kind for e in section_evidence(f)}))
