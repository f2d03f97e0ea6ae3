"""Structured expansions: operations that become several others before any e-graph is built.

A table from operation name to recipe. A recipe appends plain operations, the last of which define the
results; intermediate names are the first result's name, ``__``, what the value is,
``_tmp_v`` and a number. Nothing a recipe makes is in the table, so expanding twice changes nothing, and a program
without such operations is returned as it is.

Casts with a narrowed result that no instruction does are cut into the cast and the narrowing.

The collectives and transfers of kernels (:mod:`tilegg.rules.collectives`) become structured control flow, and their
result is the window itself. Those of host functions and of a chip's orchestration are left as they are, except that
an open mode is decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from ..ir.diagnostics import Diagnostic, TileggError, error
from ..ir.distributed_checks import Limits, limit_problems
from ..ir.levels import INCORE, level_of
from ..ir.op import OPS
from ..ir.program import (
    Block,
    Carried,
    For,
    Function,
    If,
    Op,
    Operand,
    Program,
    Return,
    Scope,
    Statement,
    Value,
    Verbatim,
    While,
    Yield,
    defined,
    flat_operands,
    walk,
)
from ..ir.types import OpaqueType, ScalarType, TileType
from ..rules.target import Target
from .expand_tiles import Emitter, Recipe, expand_scatter_update, expand_tquant_mx, positions_fit, stored_only
from .names import names_of
from .narrowed_casts import split, splits


@dataclass(frozen=True)
class Expansion:
    """A recipe, and the instruction a target must have for it."""

    recipe: Recipe
    needs: str
    fits: Callable[[Op], bool] = lambda op: True


#: How the names begin of what :mod:`tilegg.rules.collectives` has recipes for; it is imported by programs with such.
_DISTRIBUTED = "pld."
#: Operation name -> expansion. Adding one is a recipe and a line here.
EXPANSIONS: dict[str, Expansion] = {
    "tile.tquant_mx": Expansion(expand_tquant_mx, "tquant.mx"),
    "tile.scatter_update": Expansion(expand_scatter_update, "tscatter", positions_fit),
}


def expand(program: Program, target: Target | None = None, remarks: list[Diagnostic] | None = None) -> Program:
    """Return the program with every expansion applied; the same object when there is none to apply.

    ``remarks`` takes what the recipes have to say about their choices. Raises TG022 at an operation whose instruction
    the target lacks, or that adds atomically what its stores cannot, and TG008, TG050 or TG053 at a collective in a
    form that is not supported.
    """
    if target is not None:
        beyond = limit_problems(program, limits_of(target))
        if beyond:
            raise TileggError(*beyond)
    functions = tuple(_function(f, target, remarks) for f in program.functions)
    if all(a is b for a, b in zip(functions, program.functions)):
        return program
    return replace(program, functions=functions)


def limits_of(target: Target) -> Limits:
    """Return what a target has for distributed operations."""
    cores, adds = target.hardware["vector_cores"].value, target.capabilities["bf16_atomic_add"].value
    return Limits(target.name, int(cores), bool(adds))


def _function(f: Function, target: Target | None, remarks: list[Diagnostic] | None) -> Function:
    kernel = level_of(f) == INCORE
    ops = [s for s in walk(f.body) if isinstance(s, Op)]
    found = [s for s in ops if _applies(s)]
    structured = [s for s in ops if _structured(s)] if kernel else []
    scope = _scalars(f)
    open_modes = not kernel and any(map(_is_open, ops))
    if not found and not structured and not open_modes and not any(splits(s, target, scope) for s in ops):
        return f
    for op in found:
        _require(op, target)
    work = _Expansion(f, target, names_of(f), kernel and bool(structured), remarks)
    return replace(f, body=work.block(f.body))


def _applies(op: Op) -> bool:
    """Return whether an operation has an expansion and operands of known types."""
    return op.name in EXPANSIONS and bool(op.results) and all(
        o is None or isinstance(getattr(o, "type", None), TileType) for o in op.operands
    ) and EXPANSIONS[op.name].fits(op)  # fmt: skip


def _structured(op: Op) -> bool:
    """Return whether an operation has a structured recipe and operands of known types."""
    if not op.name.startswith(_DISTRIBUTED):
        return False
    from ..rules.collectives import RECIPES

    return op.name in RECIPES and not any(
        isinstance(o, Verbatim) or isinstance(getattr(o, "type", None), OpaqueType) for o in flat_operands(op.operands)
    )


def _is_open(op: Op) -> bool:
    """Return whether an operation's mode is open where the runtime does the operation."""
    if not op.name.startswith(_DISTRIBUTED):
        return False
    from ..rules.collectives.host import is_auto

    return is_auto(op)


def _require(op: Op, target: Target | None) -> None:
    source = op.operands[0]
    if target is None or not isinstance(source, Value) or not isinstance(source.type, TileType):
        return
    words = {k: str(v) for k, v in {**OPS[op.name].defaults, **op.attrs}.items() if k in ("group_axis", "scale_alg")}
    needs, dtype = EXPANSIONS[op.name].needs, source.type.dtype
    verdict = target.legal(needs, dtype, **words)
    if not verdict.ok:
        hint = target.way_out(needs, dtype, **words) or f"lower for a target that has pto.{needs}"
        raise error("TG022", f"{op.name}: {verdict.reason}", op.span, hint=hint)


def expand_op(op: Op, taken: set[str], stored: frozenset[str] = frozenset()) -> list[Op]:
    """Return the operations that take an operation's place; ``taken`` are the names in use, and grows.

    ``stored``: tiles that are stored and not used otherwise, whose types may get another layout.
    """
    e = Emitter(op, taken, stored)
    EXPANSIONS[op.name].recipe(e, op)
    return e.out


class _Expansion:
    """The expansion of one function: names in use, and what stands for the results of structured recipes."""

    def __init__(
        self, f: Function, target: Target | None, taken: set[str], structured: bool, remarks: list[Diagnostic] | None
    ) -> None:
        self.taken, self.structured, self.remarks = taken, structured, remarks
        self.target, self.scope, self.kernel = target, _scalars(f), level_of(f) == INCORE
        self.replaced: dict[str, Operand] = {}
        self.body = f.body
        if structured:
            from ..rules.collectives import Context
            from ..rules.collectives.reuse import Reuse

            self.context = Context(target, self.scope)
            self.reuse = Reuse(f)

    @cached_property
    def stored(self) -> frozenset[str]:
        """Tiles that are stored only; without a target the steps are the recipe's own, whatever assemblers can do."""
        return frozenset() if self.target is None else stored_only(self.body)

    def block(self, block: Block) -> Block:
        out: list[Statement] = []
        for s in block.statements:
            match s:
                case Op() if _applies(s):
                    out += self._expanded(s)
                case Op() if splits(s, self.target, self.scope):
                    out += split(self._op(s), self.taken, self.scope)
                case Op() if not self.kernel and _is_open(s):
                    out.append(self._with_mode(self._op(s)))
                case Op() if self.structured and _structured(s):
                    out += self._replaced(s)
                case _:
                    out.append(self._kept(s))
        return Block(tuple(out))

    def _expanded(self, s: Op) -> list[Op]:
        made = expand_op(self._op(s), self.taken, self.stored)
        given = {r.name: r.type for r in s.results}
        for r in [r for op in made for r in op.results]:
            if r.name in given and r.type != given[r.name]:
                self.replaced[r.name] = r
        return made

    def _with_mode(self, s: Op) -> Op:
        from ..rules.collectives.host import host_mode

        made, why = host_mode(s, self.target)
        if self.remarks is not None:
            self.remarks.append(Diagnostic("TG054", f"{s.name} mode='auto' takes {why}", s.span, severity="remark"))
        return made

    def _replaced(self, s: Op) -> list[Statement]:
        from ..rules.collectives import RECIPES, Steps

        op = self._op(s)
        context = replace(self.context, before=self.reuse.before(s), after=self.reuse.after(s))
        steps = Steps(op, self.taken, context)
        result = RECIPES[s.name](steps, op)
        for r in s.results:
            self.replaced[r.name] = result
        if self.remarks is not None:
            self.remarks += steps.remarks
        return steps.statements()

    def _kept(self, s: Statement) -> Statement:
        match s:
            case Op():
                return self._op(s)
            case For():
                start, stop, step = map(self._operand, s.bounds)
                return replace(
                    s, bounds=(start, stop, step), carried=self._carried(s.carried), body=self.block(s.body)
                )
            case While():
                carried, head = self._carried(s.carried), self.block(s.head)
                return replace(s, carried=carried, head=head, cond=self._operand(s.cond), body=self.block(s.body))
            case If():
                cond = self._operand(s.cond)
                return replace(s, cond=cond, then=self.block(s.then), orelse=self.block(s.orelse))
            case Scope():
                return replace(s, body=self.block(s.body))
            case Yield() | Return():
                return replace(s, operands=tuple(map(self._operand, s.operands)))
            case _:
                return s

    def _op(self, s: Op) -> Op:
        return replace(s, operands=tuple(map(self._operand, s.operands))) if self.replaced else s

    def _operand(self, o: Operand) -> Operand:
        if isinstance(o, tuple):
            return tuple(map(self._operand, o))
        return self.replaced.get(o.name, o) if isinstance(o, Value) else o

    def _carried(self, carried: tuple[Carried, ...]) -> tuple[Carried, ...]:
        return tuple(Carried(c.arg, self._operand(c.init)) for c in carried)


def _scalars(f: Function) -> dict[str, Value]:
    """Return the function's scalar values by name, for extents that are given by name."""
    values = [p.value for p in f.params]
    for s in walk(f.body):
        values += defined(s)
        if isinstance(s, For):
            values.append(s.var)
    return {v.name: v for v in values if isinstance(v.type, ScalarType)}
