"""Which names a statement assigns, reads first and leaves alive, to turn reassigned names into SSA.

Everything is computed once per compound statement and kept by node, so that the cost stays linear.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

Names = dict[str, None]
"""A set of names in order of first occurrence."""

_COMPOUND = (ast.For, ast.While, ast.If, ast.With)


class Dataflow:
    """Assigned, upward-exposed and live names of one function's statements."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self._function = function
        self._assigned: dict[ast.stmt, Names] = {}
        self._exposed: dict[ast.stmt, Names] = {}
        self._live: dict[ast.stmt, set[str]] | None = None
        self._universe: Names = {}

    # -- assigned names ----------------------------------------------------------------------------------

    def assigned(self, statements: Iterable[ast.stmt]) -> Names:
        """Return the names that the statements (and those inside them) may assign."""
        out: Names = {}
        for s in statements:
            self._add_assigned(s, out)
        return out

    def _add_assigned(self, s: ast.stmt, out: Names) -> None:
        cls = s.__class__
        if cls is ast.Assign:
            for t in s.targets:  # type: ignore[attr-defined]
                _add_target(t, out)
        elif cls is ast.AnnAssign or cls is ast.AugAssign:
            _add_target(s.target, out)  # type: ignore[attr-defined]
        elif cls in _COMPOUND:
            out.update(self._of_compound(s))

    def _of_compound(self, s: ast.stmt) -> Names:
        found = self._assigned.get(s)
        if found is None:
            found = {}
            match s:
                case ast.For(target=target):
                    _add_target(target, found)
                case ast.With(items=items):
                    for item in items:
                        if item.optional_vars is not None:
                            _add_target(item.optional_vars, found)
            for block in blocks(s):
                found.update(self.assigned(block))
            self._assigned[s] = found
        return found

    # -- upward-exposed uses -----------------------------------------------------------------------------

    def exposed(self, statements: list[ast.stmt]) -> Names:
        """Return the names the statements may read before they assign them."""
        out: dict[str, None] = {}
        killed: set[str] = set()
        for s in statements:
            for name in self._exposed_by(s):
                if name not in killed:
                    out[name] = None
            killed.update(_kills(s))
        return out

    def _exposed_by(self, s: ast.stmt) -> Names:
        if s.__class__ not in _COMPOUND:
            return reads(s)
        found = self._exposed.get(s)
        if found is None:
            found = {}
            for expression in _header(s):
                found.update(reads(expression))
            bound = set(_bound_by_header(s))
            for block in blocks(s):
                found.update((n, None) for n in self.exposed(block) if n not in bound)
            self._exposed[s] = found
        return found

    # -- liveness ----------------------------------------------------------------------------------------

    def live_after(self, s: ast.stmt) -> set[str]:
        """Return the names that may still be read after a compound statement."""
        if self._live is None:
            self._live = {}
            for inner in self._function.body:
                if inner.__class__ in _COMPOUND:
                    self._universe.update(self._of_compound(inner))
            self._walk(self._function.body, set())
        return self._live.get(s, set())

    def live_in_loop(self, s: ast.For | ast.While) -> set[str]:
        """Return the names whose value at the end of a round may be read: in the next round or afterwards."""
        live = self.live_after(s) | set(self.exposed(s.body))
        return live | set(reads(s.test)) if isinstance(s, ast.While) else live

    def _walk(self, statements: list[ast.stmt], live: set[str]) -> None:
        """Go backwards from the end of a block, where ``live`` names are alive; ``live`` is used up."""
        assert self._live is not None
        for s in reversed(statements):
            if s.__class__ in _COMPOUND:
                self._live[s] = {n for n in self._of_compound(s) if n in live}
                for block in blocks(s):
                    inner = set(live)
                    if isinstance(s, ast.For | ast.While):
                        inner.update(self.exposed(s.body))
                        if isinstance(s, ast.While):
                            inner.update(reads(s.test))
                    self._walk(block, inner)
            live.difference_update(_kills(s))
            live.update(n for n in self._exposed_by(s) if n in self._universe)


def blocks(s: ast.stmt) -> list[list[ast.stmt]]:
    """Return the statement lists nested directly in a compound statement."""
    if isinstance(s, ast.If):
        return [s.body, s.orelse]
    return [s.body] if isinstance(s, ast.For | ast.While | ast.With) else []


def reads(node: ast.AST) -> Names:
    """Return the names a simple statement or an expression reads."""
    out: Names = {}
    stack: list[ast.AST] = [node]
    while stack:
        n = stack.pop()
        if n.__class__ is ast.Name:
            if n.ctx.__class__ is not ast.Store:
                out[n.id] = None
        elif n.__class__ is ast.AnnAssign:
            # An annotation reads no values; names in its shape stand for sizes.
            stack.append(n.target)
            if n.value is not None:
                stack.append(n.value)
        elif n.__class__ is ast.AugAssign and isinstance(n.target, ast.Name):
            out[n.target.id] = None
            stack.append(n.value)
        else:
            stack.extend(ast.iter_child_nodes(n))
    return out


def _header(s: ast.stmt) -> list[ast.expr]:
    match s:
        case ast.For(iter=it):
            return [it]
        case ast.While(test=test) | ast.If(test=test):
            return [test]
        case ast.With(items=items):
            return [i.context_expr for i in items]
    return []


def _bound_by_header(s: ast.stmt) -> Names:
    out: Names = {}
    if isinstance(s, ast.For):
        _add_target(s.target, out)
    if isinstance(s, ast.With):
        for item in s.items:
            if item.optional_vars is not None:
                _add_target(item.optional_vars, out)
    return out


def _kills(s: ast.stmt) -> Names:
    """Return the names a statement certainly assigns (not those it writes through)."""
    out: Names = {}
    match s:
        case ast.Assign(targets=targets):
            for t in targets:
                _add_names(t, out)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            _add_names(target, out)
        case ast.For(iter=ast.Call(keywords=keywords), body=body) if any(k.arg == "init_values" for k in keywords):
            # The results of a loop in SSA form exist however often it runs.
            out.update(_yield_targets(body))
        case ast.With(body=body):
            out.update(_bound_by_header(s))
            for inner in body:
                out.update(_kills(inner))
        case ast.If(body=body, orelse=orelse) if orelse:
            first: Names = {}
            for inner in body:
                first.update(_kills(inner))
            second: Names = {}
            for inner in orelse:
                second.update(_kills(inner))
            out.update((n, None) for n in first if n in second)
    return out


def _yield_targets(body: list[ast.stmt]) -> Names:
    """Return the names the yield at the end of a body defines."""
    out: Names = {}
    for s in body:
        value = getattr(s, "value", None)
        if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "yield_":
            for t in s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else []:
                _add_names(t, out)
    return out


def _add_target(t: ast.expr, out: Names) -> None:
    """Add assigned names; ``x[...] = v`` makes a new version of ``x``."""
    while isinstance(t, ast.Subscript):
        t = t.value
    if isinstance(t, ast.Name):
        out[t.id] = None
    elif isinstance(t, ast.Tuple | ast.List):
        for item in t.elts:
            _add_target(item, out)


def _add_names(t: ast.expr, out: Names) -> None:
    if isinstance(t, ast.Name):
        out[t.id] = None
    elif isinstance(t, ast.Tuple | ast.List):
        for item in t.elts:
            _add_names(item, out)


def output_sources(flow: Dataflow, body: list[ast.stmt], names: list[str]) -> dict[str, Names]:
    """Return, for each name, the names its assignments in the body read, through other names of the body.

    Names that a yield defines are left out: those are results already.
    """
    if not names:
        return {}
    read: dict[str, Names] = {}
    _collect_reads(flow, body, read)
    yielded = _yield_targets(body)
    return {n: _closure(n, read) for n in names if n in read and n not in yielded}


def _collect_reads(flow: Dataflow, statements: list[ast.stmt], read: dict[str, Names]) -> None:
    for s in statements:
        value = getattr(s, "value", None)
        if isinstance(s, ast.Assign | ast.AnnAssign) and isinstance(value, ast.expr):
            for name in flow.assigned([s]):
                read.setdefault(name, {}).update(reads(value))
        if isinstance(s, ast.For):
            # The carried names stand for their initial values at first.
            for name in _bound_by_header(s):
                read.setdefault(name, {}).update(reads(s.iter))
        for block in blocks(s):
            _collect_reads(flow, block, read)


def _closure(name: str, read: dict[str, Names]) -> Names:
    out: Names = {}
    stack = [name]
    while stack:
        for n in read.get(stack.pop(), {}):
            if n not in out:
                out[n] = None
                stack.append(n)
    return out
