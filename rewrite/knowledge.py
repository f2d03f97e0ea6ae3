"""The forward analysis: which values each SSA value of a function can hold, computed on demand.

One transfer function stands beside each operation (``ir/ops``); this module only walks definitions. Loop
counters get the interval of their bounds, other loop-carried values everything their dtype holds; so do tiles that
something changes in place, whatever defines them.
"""

from __future__ import annotations

from typing import Any

from ..ir import valueset as vs
from ..ir.op import OPS, Kind
from ..ir.program import Block, Const, For, Function, If, Op, Operand, Scope, Statement, Value, While, Yield
from ..ir.types import TileType
from .amax import Definitions, scaled_bound
from .storage import changed

_SETS = (Kind.TILE, Kind.TENSOR, Kind.ARRAY, Kind.SCALAR, Kind.ANY)


class Knowledge:
    """Value sets of a function's values, computed when asked for; ``ops`` are the defining operations.

    ``narrowest``: the fewest bits that an element of a tile of the function has.
    """

    def __init__(self, function: Function) -> None:
        self._known: dict[str, vs.ValueSet] = {}
        self.ops = Definitions()
        self._branches: dict[str, tuple[Operand, Operand]] = {}
        for p in function.params:
            self._assume_dtype(p.value)
        self._define(function.body)
        types = [r.type for op in self.ops.values() for r in op.results]
        self.narrowest = min((t.dtype.bits for t in types if isinstance(t, TileType)), default=64)
        self.forget(changed(function))

    def forget(self, names: frozenset[str]) -> None:
        """Take values as changed in place: they hold anything of their dtype; call it before asking for facts."""
        self.ops.forget(names)
        for name in names:
            self._branches.pop(name, None)

    def _assume_dtype(self, value: Value) -> None:
        dtype = getattr(value.type, "dtype", None)
        if dtype is not None:
            self._known[value.name] = vs.of_dtype(dtype)

    def _define(self, block: Block) -> None:
        for s in block.statements:
            if isinstance(s, Op):
                for r in s.results:
                    self.ops[r.name] = s
            else:
                self._define_flow(s)

    def _define_flow(self, s: Statement) -> None:
        match s:
            case For():
                self._define_loop(s)
            case While():
                for value in (*(c.arg for c in s.carried), *s.results):
                    self._assume_dtype(value)
                self._define(s.head)
                self._define(s.body)
            case If():
                self._define(s.then)
                self._define(s.orelse)
                for i, r in enumerate(s.results):
                    self._branches[r.name] = (_yielded(s.then, i), _yielded(s.orelse, i))
            case Scope():
                self._define(s.body)

    def _define_loop(self, s: For) -> None:
        for value in (*(c.arg for c in s.carried), *s.results):
            self._assume_dtype(value)
        start, stop, step = s.bounds
        self._assume_dtype(s.var)
        if all(isinstance(b, Const) for b in (start, step)) and isinstance(stop, Const):
            first, last = int(start.value), int(stop.value)  # type: ignore[union-attr]
            self._known[s.var.name] = vs.interval(min(first, last), max(first, last - 1), 0)
        elif isinstance(start, Const) and isinstance(step, Const) and step.value > 0:
            most = self._known.get(s.var.name, vs.interval(0, 2**63 - 1, 0)).hi
            self._known[s.var.name] = vs.interval(int(start.value), most, 0)
        self._define(s.body)

    def of(self, operand: Operand) -> vs.ValueSet:
        """Return the value set of an operand (everything its dtype holds, where nothing is known)."""
        if isinstance(operand, Const):
            return vs.constant(operand.value, operand.dtype)
        if not isinstance(operand, Value):
            raise TypeError(f"no value set for {operand!r}")
        stack = [operand]
        while stack:
            top = stack[-1]
            if top.name in self._known:
                stack.pop()
                continue
            missing = [v for v in self._needs(top) if v.name not in self._known]
            # A value that needs itself cannot come from a valid program; the dtype is always true.
            if missing and len(stack) < 1_000_000:
                stack += missing
            else:
                self._known[top.name] = self._evaluate(top)
                stack.pop()
        return self._known[operand.name]

    def _needs(self, value: Value) -> list[Value]:
        if value.name in self._branches:
            return [o for o in self._branches[value.name] if isinstance(o, Value)]
        op = self.ops.get(value.name)
        if op is None or op.name not in OPS or not OPS[op.name].transfer:
            return []
        return [o for o in self._arguments(op) if isinstance(o, Value)]

    @staticmethod
    def _arguments(op: Op) -> list[Operand]:
        params = OPS[op.name].operand_params
        return [o for p, o in zip(params, op.operands) if p.kind in _SETS and o is not None]

    def _evaluate(self, value: Value) -> vs.ValueSet:
        dtype = getattr(value.type, "dtype", None)
        if dtype is None:
            return vs.ValueSet(0, 0, 0)
        if value.name in self._branches:
            then, orelse = (self._lookup(o) for o in self._branches[value.name])
            return vs.union(then, orelse, call=vs.Call("if", value.type, {}, {}))
        op = self.ops.get(value.name)
        decl = OPS.get(op.name) if op is not None else None
        found = vs.of_dtype(dtype)
        if op is None or decl is None:
            return found
        if decl.transfer:
            call = vs.Call(op.name, value.type, op.attrs, decl.defaults)
            found = decl.transfer[0](*map(self._lookup, self._arguments(op)), call=call)
        bound = scaled_bound(op, self.ops)
        return found if bound is None else _within(found, bound)

    def _lookup(self, o: Any) -> vs.ValueSet:
        return vs.constant(o.value, o.dtype) if isinstance(o, Const) else self._known[o.name]


def _within(values: vs.ValueSet, bound: tuple[float, bool]) -> vs.ValueSet:
    limit, finite = bound
    narrowed = vs.clamp(values, -limit, limit)
    return vs.ValueSet(
        narrowed.lo, narrowed.hi, values.grid, values.sig, True, not finite, values.negative_zero
    )


def _yielded(block: Block, i: int) -> Operand:
    last = block.statements[-1] if block.statements else None
    return last.operands[i] if isinstance(last, Yield) else None
