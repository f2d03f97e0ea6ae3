"""The names in use in a function."""

from __future__ import annotations

from ..ir.program import For, Function, While, defined, walk


def names_of(f: Function) -> set[str]:
    """Return the names of parameters, results, loop variables and carried values."""
    names = {p.value.name for p in f.params}
    for s in walk(f.body):
        names.update(r.name for r in defined(s))
        if isinstance(s, For):
            names.add(s.var.name)
        if isinstance(s, For | While):
            names.update(c.arg.name for c in s.carried)
    return names
