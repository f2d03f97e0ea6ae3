"""Names that stand for numbers in programs, and whether sizes given by name are among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from .diagnostics import error
from .program import Function, Program, walk
from .types import ScalarType, TupleType

_NAME = re.compile(r"[A-Za-z_]\w*")
#: Names that an error lists at most.
_SHOWN = 20


def require_sizes(given: Iterable[str] | Mapping[str, int], programs: Iterable[Program | Function], what: str) -> None:
    """Raise TG030 for a name that no program has as a size; ``what`` is how sizes are given (``--dim``)."""
    names = list(given)
    known = sorted(set().union(*map(size_names, programs))) if names else []
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            listed = ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
            hint = f"did you mean {close[0]}?" if close else f"sizes with a name: {listed or 'none'}"
            raise error("TG030", f"{what} {name[:60]}: the program has no size of this name", hint=hint)


def size_names(program: Program | Function) -> set[str]:
    """Return the names that stand for numbers in a program: dynamic dimensions, names in types, integer parameters."""
    functions = (program,) if isinstance(program, Function) else program.functions
    found: set[str] = set() if isinstance(program, Function) else set(program.dynamic)
    for f in functions:
        for p in f.params:
            if isinstance(p.value.type, ScalarType) and p.value.type.dtype.is_int:
                found.add(p.value.name)
        types = [*(p.value.type for p in f.params), *f.results]
        types += [r.type for s in walk(f.body) for r in getattr(s, "results", ())]
        for t in types:
            found.update(_names_in(t))
    return found


def _names_in(t: Any) -> Iterator[str]:
    if isinstance(t, TupleType):
        for item in t.items:
            yield from _names_in(item)
    for dim in (*getattr(t, "shape", ()), *getattr(t, "valid_shape", ())):
        if isinstance(dim, str):
            yield from _NAME.findall(dim)
