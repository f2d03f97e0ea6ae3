"""Which window parameters of a function are signals: named by a notify, a wait or a collective, also through calls."""

from __future__ import annotations

from collections.abc import Iterator

from .op import OPS
from .program import (
    Block,
    For,
    Function,
    If,
    Jump,
    Op,
    Operand,
    Program,
    Scope,
    Value,
    While,
    Yield,
    inner_blocks,
    walk,
)
from .types import TensorType, Type

#: Signal operands by operation; those of the collectives are called ``signal`` or ``recv_counts``.
_BY_NAME = ("signal", "recv_counts")
_NOTIFIED = {"pld.system.notify": "target"}


def signal_names(program: Program | Function, f: Function) -> frozenset[str]:
    """Return the names of the parameters of ``f`` whose cells are notified or waited for."""
    functions = {f.name: f} if isinstance(program, Function) else {g.name: g for g in program.functions}
    return _signals(f, functions, ())


def _signals(f: Function, functions: dict[str, Function], outer: tuple[str, ...]) -> frozenset[str]:
    roots = _roots(f)
    found: frozenset[str] = frozenset()
    for s in walk(f.body):
        if isinstance(s, Op):
            for o in _signal_operands(s, functions, (*outer, f.name)):
                found |= roots.get(o.name, frozenset())
    return found


def _roots(f: Function) -> dict[str, frozenset[str]]:
    """Return the parameters that each window of a function may be: versions, views, loop values, branch results."""
    steps = [(v.name, o.name) for v, o in _same_windows(f.body)]
    roots = {p.value.name: frozenset((p.value.name,)) for p in f.params}
    changed = True
    while changed:
        # What a loop yields is known only after its body: repeated until nothing is added.
        changed = False
        for name, source in steps:
            known = roots.get(name, frozenset())
            more = known | roots.get(source, frozenset())
            if more != known:
                roots[name], changed = more, True
    return roots


def _same_windows(body: Block) -> Iterator[tuple[Value, Value]]:
    """Yield the windows that are, or may be, an earlier one, each with that one."""
    for s in walk(body):
        pairs: list[tuple[Value, Operand]] = []
        if isinstance(s, Op):
            # A later version of a window, or a view of it, is still that window.
            source = next((o for o in s.operands if isinstance(o, Value) and _is_window(o.type)), None)
            pairs += [(v, source) for v in s.results]
        elif isinstance(s, For | While | If):
            carried = s.carried if isinstance(s, For | While) else ()
            pairs += [(c.arg, c.init) for c in carried]
            pairs += zip(s.results, (c.arg for c in carried))
            for y in (y for block in inner_blocks(s) for y in _yields(block, not isinstance(s, If))):
                pairs += zip(s.results, y.operands)
                pairs += zip((c.arg for c in carried), y.operands)
        yield from ((v, o) for v, o in pairs if isinstance(o, Value) and _is_window(v.type))


def _yields(block: Block, jumping: bool, plain: bool = True) -> Iterator[Yield]:
    """Yield what a block gives to the statement around it.

    ``jumping``: that is a loop, to which a yield right before a jump gives, also inside branches.
    """
    statements = block.statements
    for s, after in zip(statements, (*statements[1:], None)):
        if isinstance(s, Yield):
            if jumping if isinstance(after, Jump) else plain:
                yield s
        elif isinstance(s, Scope):
            yield from _yields(s.body, jumping, plain)
        elif isinstance(s, If) and jumping:
            for inner in inner_blocks(s):
                yield from _yields(inner, jumping, plain=False)


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
