"""Structured expansions: operations that become several others before any e-graph is built.

A table from operation name to recipe. A recipe appends plain operations, the last of which define the
results; intermediate names are the first result's name, ``__``, what the value is,
``_tmp_v`` and a number. Nothing a recipe makes is in the table, so expanding twice changes nothing, and a program
without such operations is returned as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..ir import mx
from ..ir.diagnostics import error
from ..ir.dtypes import FP8E4M3FN, FP8E8M0, UINT8, DType
from ..ir.infer import result_types, stored_attrs
from ..ir.op import OPS
from ..ir.ops.mx import groups_of, zz_workspace
from ..ir.program import (
    Block,
    For,
    Function,
    If,
    Op,
    Program,
    Scope,
    Statement,
    Value,
    While,
    defined,
    index,
    walk,
)
from ..ir.types import TileType, Type
from ..rules.target import Target


@dataclass
class Emitter:
    """Appends the operations of one expansion."""

    op: Op
    taken: set[str]
    out: list[Op] = field(default_factory=list)

    def fresh(self, what: str) -> str:
        """Return a new name for an intermediate value."""
        stem = f"{self.op.results[0].name}__{what}_tmp"
        version = 0
        while f"{stem}_v{version}" in self.taken:
            version += 1
        self.taken.add(f"{stem}_v{version}")
        return f"{stem}_v{version}"

    def emit(self, name: str, what: str | Value | Sequence[str | Value], /, **given: Any) -> Any:
        """Append an operation by parameter names and return its value, or values.

        ``what`` names the result (or each of them); a :class:`Value` is given as it is, as the result itself.
        """
        decl = OPS[name]
        operands = tuple(given.pop(p.name, None) for p in decl.operand_params)
        attrs = stored_attrs(decl, given)
        types = result_types(decl, operands, attrs, self.op.span)
        assert types is not None
        wanted = (what,) if isinstance(what, str | Value) else tuple(what)
        results = tuple(self._result(w, t) for w, t in zip(wanted, types, strict=True))
        self.out.append(Op(name, operands, attrs, results, self.op.span))
        return results[0] if isinstance(what, str | Value) else results

    def _result(self, what: str | Value, t: Type) -> Value:
        return what if isinstance(what, Value) else Value(self.fresh(what), t)


Recipe = Callable[[Emitter, Op], None]


def expand_tquant_mx(e: Emitter, op: Op) -> None:
    """Block-scaled quantisation as the raw instruction, the move of its exponents to ZZ order, and views.

    ``group_axis=0`` transposes the source first, and its scales are the ZZ tile under swapped dimensions.
    """
    data, scale = op.results
    source: Any = op.operands[0]
    axis: int = op.attrs["group_axis"]
    chosen = {k: v for k, v in op.attrs.items() if k in ("dtype", "scale_alg")}
    if axis == 0:
        source = e.emit("tile.transpose", "src_kn", tile=source, axis1=0, axis2=1)
    rows, cols = source.type.shape
    groups = tuple(map(index, groups_of(rows, cols, axis)))
    maximum, scaling = (
        e.emit("tile.create", what, shape=groups, dtype=source.type.dtype, target_memory="Vec")
        for what in ("max", "scaling")
    )
    dtype: DType = op.attrs.get("dtype", FP8E4M3FN)
    raw, exponents = e.emit(
        "tile.tquant_mx_raw", (data if dtype is not FP8E4M3FN else "dst", "exp"),
        src=source, max=maximum, scaling=scaling, group_axis=axis, **chosen,
    )  # fmt: skip
    if dtype is FP8E4M3FN:
        e.emit("tile.reinterpret_view", data, data=raw, dtype=dtype)
    room = (index(1), index(zz_workspace(rows, cols // mx.GROUP, axis)))
    tmp = e.emit("tile.create", "x2zz", shape=room, dtype=UINT8, target_memory="Vec")
    shape = {"dst_rows": rows, "dst_cols": cols // mx.GROUP} if axis == 1 else {}
    boxed = e.emit("tile.tmov_x2zz", "exp_zz", src=exponents, tmp=tmp, group_axis=axis, **shape)
    if axis == 1:
        e.emit("tile.reinterpret_view", scale, data=boxed, dtype=FP8E8M0)
        return
    turned = e.emit("tile.reinterpret_view", "scale_zz", data=boxed, dtype=FP8E8M0)
    e.emit("tile.transpose_view", scale, tile=turned)


@dataclass(frozen=True)
class Expansion:
    """A recipe, and the instruction a target must have for it."""

    recipe: Recipe
    needs: str


#: Operation name -> expansion. Adding one is a recipe and a line here.
EXPANSIONS: dict[str, Expansion] = {
    "tile.tquant_mx": Expansion(expand_tquant_mx, "tquant.mx"),
}


def expand(program: Program, target: Target | None = None) -> Program:
    """Return the program with every expansion applied; the same object when there is none to apply.

    Raises TG022 at an operation whose instruction the target lacks.
    """
    functions = tuple(_function(f, target) for f in program.functions)
    if all(a is b for a, b in zip(functions, program.functions)):
        return program
    return replace(program, functions=functions)


def _function(f: Function, target: Target | None) -> Function:
    found = [s for s in walk(f.body) if isinstance(s, Op) and _applies(s)]
    if not found:
        return f
    for op in found:
        _require(op, target)
    taken = {p.value.name for p in f.params} | {r.name for s in walk(f.body) for r in defined(s)}
    taken |= {c.arg.name for s in walk(f.body) if isinstance(s, For | While) for c in s.carried}
    taken |= {s.var.name for s in walk(f.body) if isinstance(s, For)}
    return replace(f, body=_block(f.body, taken))


def _applies(op: Op) -> bool:
    """Return whether an operation has an expansion and operands of known types."""
    return op.name in EXPANSIONS and bool(op.results) and all(
        o is None or isinstance(getattr(o, "type", None), TileType) for o in op.operands
    )  # fmt: skip


def _require(op: Op, target: Target | None) -> None:
    source = op.operands[0]
    if target is None or not isinstance(source, Value) or not isinstance(source.type, TileType):
        return
    words = {k: str(v) for k, v in {**OPS[op.name].defaults, **op.attrs}.items() if k in ("group_axis", "scale_alg")}
    verdict = target.legal(EXPANSIONS[op.name].needs, source.type.dtype, **words)
    if not verdict.ok:
        raise error(
            "TG022", f"{op.name}: {verdict.reason}", op.span,
            hint=f"lower for a target that has pto.{EXPANSIONS[op.name].needs}",
        )  # fmt: skip


def expand_op(op: Op, taken: set[str]) -> list[Op]:
    """Return the operations that take an operation's place; ``taken`` are the names in use, and grows."""
    e = Emitter(op, taken)
    EXPANSIONS[op.name].recipe(e, op)
    return e.out


def _block(block: Block, taken: set[str]) -> Block:
    out: list[Statement] = []
    for s in block.statements:
        match s:
            case Op() if _applies(s):
                out += expand_op(s, taken)
            case For() | Scope():
                out.append(replace(s, body=_block(s.body, taken)))
            case While():
                out.append(replace(s, head=_block(s.head, taken), body=_block(s.body, taken)))
            case If():
                out.append(replace(s, then=_block(s.then, taken), orelse=_block(s.orelse, taken)))
            case _:
                out.append(s)
    return Block(tuple(out))
