"""Which window parameters of a function are signals: named by a notify, a wait or a collective, also through calls."""

from __future__ import annotations

from .op import OPS
from .program import Function, Op, Program, Value, walk
from .types import TensorType, Type

#: Signal operands by operation; those of the collectives are called ``signal`` or ``recv_counts``.
_BY_NAME = ("signal", "recv_counts")
_NOTIFIED = {"pld.system.notify": "target"}


def signal_names(program: Program | Function, f: Function) -> frozenset[str]:
    """Return the names of the parameters of ``f`` whose cells are notified or waited for."""
    functions = {f.name: f} if isinstance(program, Function) else {g.name: g for g in program.functions}
    return _signals(f, functions, ())


def _signals(f: Function, functions: dict[str, Function], outer: tuple[str, ...]) -> frozenset[str]:
    roots = {p.value.name: p.value.name for p in f.params}
    found: set[str] = set()
    for s in walk(f.body):
        if not isinstance(s, Op):
            continue
        for v in s.results:
            # A later version of a window, or a view of it, is still that window.
            source = next((o.name for o in s.operands if isinstance(o, Value) and _is_window(o.type)), None)
            if _is_window(v.type) and source in roots:
                roots[v.name] = roots[source]
        found |= {roots[o.name] for o in _signal_operands(s, functions, outer + (f.name,)) if o.name in roots}
    return frozenset(found)


def _is_window(t: Type) -> bool:
    return isinstance(t, TensorType) and t.is_window


def _signal_operands(s: Op, functions: dict[str, Function], outer: tuple[str, ...]) -> list[Value]:
    if s.name == "call":
        callee = functions.get(str(s.attrs.get("callee")))
        if callee is None or callee.name in outer:
            return []
        names = _signals(callee, functions, outer)
        pairs = zip(callee.params, s.operands)
        return [o for p, o in pairs if p.value.name in names and isinstance(o, Value)]
    decl = OPS.get(s.name)
    if decl is None or not s.name.startswith("pld."):
        return []
    wanted = (*_BY_NAME, _NOTIFIED.get(s.name, ""))
    pairs_ = zip(decl.operand_params, s.operands)
    return [o for p, o in pairs_ if p.name in wanted and isinstance(o, Value)]
