"""Loops and branches. Scalars travel as ``scf`` values; tiles stay in place, in one buffer each.

A tile that a loop carries, or a branch results in, is a buffer allotted before it: the initial value is copied in
unless its own storage can serve, and every round writes its result back, or produces it there outright when the
old value is no longer needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from xdsl.ir import Block as MlirBlock
from xdsl.ir import Region, SSAValue

from ..extract.inplace import may_overwrite, overwritten_at
from ..ir.dtypes import INDEX
from ..ir.op import OPS
from ..ir.program import Block, Carried, For, If, Op, Operand, Statement, Value, While, Yield
from ..ir.types import ScalarType, TensorType, TileType
from ..rewrite.region import uses
from .emit_scalars import condition, convert, scalar_operand
from .emit_scopes import Extent, scalar_type
from .emit_state import State, TileRef
from .pto import arith, scf
from .pto.build import PtoBuilder

Run = Callable[[Sequence[Statement]], None]
#: Loop kinds that run in order on one core.
SEQUENTIAL = ("range", "parallel", "unroll", "pipeline")
#: Operations whose results name their operand's storage.
_ALIASES = frozenset(
    {
        "tile.slice", "tile.reshape", "tile.reinterpret_view", "tile.set_validshape", "tile.assume", "tile.transpose",
        "tile.write", "tile.extract", "tile.assemble",
    }
)  # fmt: skip


class Flow:
    """Emits control flow; ``run`` emits the statements of a block."""

    def __init__(self, state: State, run: Run) -> None:
        self.state = state
        self.run = run
        self.counts = state.counts

    # -- carried values ----------------------------------------------------------------------------------

    def enter(self, carried: Sequence[Carried]) -> dict[str, TileRef]:
        """Allot the buffers of carried tiles and name carried tensors; return the buffers by argument."""
        state = self.state
        buffers: dict[str, TileRef] = {}
        for c in carried:
            t = c.arg.type
            if isinstance(t, TileType):
                buffers[c.arg.name] = state.tiles[c.arg.name] = self._buffer(c.arg, c.init)
            elif isinstance(t, TensorType):
                found = state.tensors.get(c.init.name) if isinstance(c.init, Value) else None
                if found is None:
                    state.fail(f"the loop carries {c.arg.name!r}, which is no tensor parameter")
                state.tensors[c.arg.name] = found
            elif not isinstance(t, ScalarType):
                state.fail(f"a loop cannot carry {t} in assembly")
        return buffers

    def _buffer(self, arg: Value, init: Operand) -> TileRef:
        state = self.state
        source = state.tile(init)
        assert isinstance(init, Value) and isinstance(arg.type, TileType)
        valid = state.valid_of(arg.type, state.plan[arg.name]) if not source.form.mask else source.valid
        own = not source.alias and source.home is state.frame and self.counts.get(init.name, 0) == 1
        if own and source.valid == valid and source.form.cols == state.plan[arg.name].cols:
            # Nothing else reads the initial value, so its storage is the buffer; it no longer is its alone.
            return TileRef(source.form, valid, source.value, source.upright, source.root, None)
        target = state.allot(state.plan[arg.name], valid, source.upright, arg.name)
        target.home = None
        state.copy(source, target)
        return target

    def leave(self, names: Sequence[Value], buffers: Sequence[TileRef | None], last: Yield | None) -> list[SSAValue]:
        """Write yielded tiles into their buffers; return the yielded scalars."""
        state = self.state
        if last is None or len(last.operands) < len(names):
            if names:
                state.fail("the block does not yield its results")
            return []
        moves: list[tuple[TileRef, TileRef]] = []
        scalars: list[SSAValue] = []
        for value, buffer, o in zip(names, buffers, last.operands):
            if buffer is not None:
                moves.append((state.tile(o), buffer))
            elif isinstance(value.type, TensorType):
                self._same_tensor(value, o)
            else:
                scalars.append(scalar_operand(state, o, value.type.dtype))  # type: ignore[union-attr]
        self._write_back(moves)
        return scalars

    def _same_tensor(self, value: Value, o: Operand) -> None:
        known, found = self.state.tensors.get(value.name), self.state.tensors.get(getattr(o, "name", ""))
        if known is not None and (found is None or found.root is not known.root):
            self.state.fail(f"{value.name!r} would become another tensor", "pointers are fixed in assembly")

    def _write_back(self, moves: list[tuple[TileRef, TileRef]]) -> None:
        """Copy all at once: a source that another copy overwrites is saved first."""
        state = self.state
        pending = [(a, b) for a, b in moves if not (a.root is b.root and _fits(a, b) and not a.alias)]
        written = {id(b.root) for _, b in pending}
        saved = []
        for source, target in pending:
            if id(source.root) in written:
                spare = state.allot(target.form, target.valid, target.upright, None)
                state.copy(source, spare)
                source = spare
            saved.append((source, target))
        for source, target in saved:
            state.copy(source, target)

    # -- producing in place ------------------------------------------------------------------------------

    def aim_loop(self, body: Block, carried: Sequence[Carried], buffers: dict[str, TileRef]) -> None:
        """Let the body produce yielded tiles in their buffers where the old value is dead by then."""
        last = _yield_of(body)
        if last is None or not buffers:
            return
        makers, reads = _makers(body), _reads(body)
        for c, o in zip(carried, last.operands):
            buffer = buffers.get(c.arg.name)
            if buffer is None or not isinstance(o, Value) or self.counts.get(o.name, 0) != 1:
                continue
            at = makers.get(o.name)
            if at is None or o.type != c.arg.type:
                continue
            readers = self._readers(body, c.arg.name, o.name, reads)
            if self._dead_by(body, at, readers):
                self.state.places[o.name] = buffer
                self._aim_overwritten(body, makers, at, buffer, partial(self._dead_by, body, readers=readers))

    def _aim_overwritten(
        self, block: Block, makers: Mapping[str, int], at: int, place: TileRef, free: Callable[[int], bool]
    ) -> None:
        """Let what an accumulation overwrites be made where the result is wanted, if that is ``free`` by then."""
        s = block.statements[at]
        assert isinstance(s, Op)
        decl = OPS[s.name]
        if not decl.inout:
            return
        o = s.operands[overwritten_at(decl)]
        if not isinstance(o, Value) or o.type != s.result.type or self.counts.get(o.name, 0) != 1:
            return
        made = makers.get(o.name)
        if made is not None and made < at and free(made):
            self.state.places[o.name] = place
            self._aim_overwritten(block, makers, made, place, free)

    def _readers(self, body: Block, arg: str, wanted: str, reads: dict[str, list[int]]) -> list[tuple[int, str]]:
        """Return which statements read a carried tile, by which name: itself, or what may go on in its storage.

        That are results of loops and of operations that overwrite it, but for the ``wanted`` one. A loop that goes on
        in it needs it until its end, and reads it by no name.
        """
        found: list[tuple[int, str]] = []
        for i in reads.get(arg, []):
            s = body.statements[i]
            inner = _carried_on(s, arg) if self.counts.get(arg) == 1 else None
            if inner is not None:
                found += [(i, ""), *self._readers(body, inner, wanted, reads)]
                continue
            found.append((i, arg))
            heir = _overwriting(s, arg)
            if heir is not None and heir != wanted:
                found += self._readers(body, heir, wanted, reads)
        return found

    def _dead_by(self, body: Block, at: int, readers: Sequence[tuple[int, str]]) -> bool:
        """Return whether no statement after the producer reads the old value, by itself or by another name."""
        for i, name in readers:
            s = body.statements[i]
            if i > at:
                return False
            if not name:
                continue
            if not isinstance(s, Op) or s.name in _ALIASES:
                return False
            if i == at and not may_overwrite(self.state.target, s, name):
                return False
        return True

    def aim_branch(self, block: Block, results: Sequence[Value], buffers: Sequence[TileRef | None]) -> None:
        """Let a branch produce its results in their buffers."""
        last = _yield_of(block)
        makers = _makers(block) if last is not None and any(buffers) else {}
        # A tile that is only created has no contents to be copied, whatever is valid of it.
        empty = {s.result.name for s in block.statements if isinstance(s, Op) and s.name == "tile.create"}
        for value, buffer, o in zip(results, buffers, last.operands if last else ()):
            if buffer is None or not isinstance(o, Value) or self.counts.get(o.name, 0) != 1:
                continue
            if o.name in empty or (o.name in makers and o.type == value.type):
                self.state.places[o.name] = buffer
                if o.name in makers:
                    self._aim_overwritten(block, makers, makers[o.name], buffer, lambda at: True)

    # -- statements --------------------------------------------------------------------------------------

    def loop(self, s: For) -> None:
        """``scf.for`` with the carried scalars as iteration arguments."""
        state = self.state
        if s.kind not in SEQUENTIAL:
            state.fail(f"a loop of kind {s.kind!r} does not belong into a kernel",
                       hint="the core's own share is pl.tile.get_block_idx()")  # fmt: skip
        start, stop, step = (state.offset(o) for o in s.bounds)
        if step == 0:
            state.fail("a loop with step 0 cannot be written as assembly", "scf.for counts upwards")
        down: tuple[Extent, int] | None = None
        if isinstance(step, int) and step < 0:
            down = start, step
            start, stop, step = 0, _rounds(state, start, stop, -step), 1
        carried = [c for c in s.carried if isinstance(c.arg.type, ScalarType)]
        buffers = self.enter(s.carried)
        inits = [scalar_operand(state, c.init, c.arg.type.dtype) for c in carried]  # type: ignore[union-attr]
        name = s.var.name if s.var.name.isascii() else "i"
        with state.b.loop(start, stop, step, inits, name) as loop:
            if (isinstance(start, int) and start >= 0) or (not isinstance(start, int) and state.is_natural(start)):
                state.natural.add(loop.index)
            self._count(s.var, loop.index, loop.body, down)
            for c, value in zip(carried, loop.carried):
                state.scalars[c.arg.name] = state.name(value, c.arg.name)
            loop.yields = self._round(s.carried, s.body, buffers, loop.body)
        self._results(s.carried, s.results, buffers, loop.results)

    def _count(self, var: Value, value: SSAValue, body: PtoBuilder, down: tuple[Extent, int] | None) -> None:
        """Name the loop variable; ``down`` gives start and step of a loop that counts downwards."""
        state = self.state
        dtype = var.type.dtype  # type: ignore[union-attr]
        with state.inside(body):
            if down is not None:
                value = state.index(state.add(down[0], state.mul(value, down[1])))
            state.scalars[var.name] = value if dtype.kind == "index" else convert(state, value, INDEX, dtype)

    def _round(
        self, carried: Sequence[Carried], body: Block, buffers: dict[str, TileRef], builder: PtoBuilder
    ) -> list[SSAValue]:
        state = self.state
        with state.inside(builder):
            for name, buffer in buffers.items():
                # A loop inside that alone reads the old value may go on in the same buffer.
                state.tiles[name] = replace(buffer, home=state.frame)
            self.aim_loop(body, carried, buffers)
            self.run(body.statements)
            args = [c.arg for c in carried]
            return self.leave(args, [buffers.get(a.name) for a in args], _yield_of(body))

    def _results(
        self, carried: Sequence[Carried], results: Sequence[Value], buffers: dict[str, TileRef],
        scalars: Sequence[SSAValue],
    ) -> None:  # fmt: skip
        state = self.state
        values = iter(scalars)
        for c, r in zip(carried, results):
            if isinstance(c.arg.type, TileType):
                state.tiles[r.name] = buffers[c.arg.name]
            elif isinstance(c.arg.type, TensorType):
                state.tensors[r.name] = state.tensors[c.arg.name]
            else:
                state.scalars[r.name] = state.name(next(values), r.name)

    def branch(self, s: If) -> None:
        """``scf.if`` with the scalar results as its own; tiles are left in buffers."""
        state = self.state
        buffers: list[TileRef | None] = []
        types = []
        for r in s.results:
            if isinstance(r.type, TileType):
                form = state.plan[r.name]
                made = state.allot(form, state.valid_of(r.type, form), False, r.name)
                made.home = None
                buffers.append(made)
            else:
                buffers.append(None)
                if isinstance(r.type, ScalarType):
                    types.append(scalar_type(r.type.dtype))
        when = condition(state, s.cond)
        with state.b.branch(when, types) as branch:
            branch.then_yields = self._arm(s, s.then, buffers, branch.then)
            branch.other_yields = self._arm(s, s.orelse, buffers, branch.other)
        values = iter(branch.results)
        for r, buffer in zip(s.results, buffers):
            if buffer is not None:
                state.tiles[r.name] = buffer
            elif isinstance(r.type, ScalarType):
                state.scalars[r.name] = state.name(next(values), r.name)

    def _arm(self, s: If, block: Block, buffers: Sequence[TileRef | None], builder: PtoBuilder) -> list[SSAValue]:
        state = self.state
        with state.inside(builder):
            self.aim_branch(block, s.results, buffers)
            self.run(block.statements)
            last = _yield_of(block)
            for r, o in zip(s.results, last.operands if last else ()):
                known = state.tensors.get(o.name) if isinstance(o, Value) else None
                if isinstance(r.type, TensorType) and known is not None:
                    state.tensors.setdefault(r.name, known)
            return self.leave(s.results, buffers, last)

    def while_loop(self, s: While) -> None:
        """``scf.while``: the head computes the condition from the carried scalars and passes them on."""
        state = self.state
        carried = [c for c in s.carried if isinstance(c.arg.type, ScalarType)]
        buffers = self.enter(s.carried)
        inits = [scalar_operand(state, c.init, c.arg.type.dtype) for c in carried]  # type: ignore[union-attr]
        types = [value.type for value in inits]
        head, body = MlirBlock(arg_types=types), MlirBlock(arg_types=types)
        outer = state.b
        with state.inside(PtoBuilder(head, outer.constants)):
            self._name(carried, head)
            self.run(s.head.statements)
            when = condition(state, s.cond)
            state.b.add(scf.ConditionOp.create(operands=[when, *head.args]))
        self._name(carried, body)
        yields = self._round(s.carried, s.body, buffers, PtoBuilder(body, outer.constants))
        body.add_op(scf.YieldOp.create(operands=yields))
        op = scf.WhileOp.create(operands=inits, result_types=types, regions=[Region(head), Region(body)])
        self._results(s.carried, s.results, buffers, outer.add(op).results)

    def _name(self, carried: Sequence[Carried], block: MlirBlock) -> None:
        for c, value in zip(carried, block.args):
            self.state.scalars[c.arg.name] = self.state.name(value, c.arg.name)


def _fits(source: TileRef, target: TileRef) -> bool:
    """Return whether two tiles have one physical shape and one valid shape."""
    same = (source.form.rows, source.form.cols) == (target.form.rows, target.form.cols)
    return same and source.valid == target.valid


def _rounds(state: State, start: Extent, stop: Extent, step: int) -> Extent:
    """Return how often a loop from ``start`` down to above ``stop`` runs."""
    if isinstance(start, int) and isinstance(stop, int):
        return max(0, -(-(start - stop) // step))
    span = state.add(state.add(start, state.mul(stop, -1)), step - 1)
    rounds = state.arith(arith.FloorDivSIOp, state.index(span), state.index(step))
    return state.arith(arith.MaxSIOp, rounds, state.index(0))


def _overwriting(s: Statement, name: str) -> str | None:
    """Return the result of an operation that overwrites the named value, None for other statements."""
    decl = OPS.get(s.name) if isinstance(s, Op) else None
    if decl is None or not decl.inout or not isinstance(s, Op) or not s.results:
        return None
    over = s.operands[overwritten_at(decl)]
    return s.result.name if isinstance(over, Value) and over.name == name else None


def _carried_on(s: Statement, name: str) -> str | None:
    """Return the result of a loop that carries the named value, None for other statements."""
    if isinstance(s, For | While):
        for c, r in zip(s.carried, s.results):
            if isinstance(c.init, Value) and c.init.name == name:
                return r.name
    return None


def _yield_of(block: Block) -> Yield | None:
    last = block.statements[-1] if block.statements else None
    return last if isinstance(last, Yield) else None


#: Operations that allot their result themselves.
_NO_PLACE = frozenset({"tile.fillpad", "tile.fillpad_expand", "tile.fillpad_inplace", "tile.create"})


def _makers(block: Block) -> dict[str, int]:
    """Return where each tile with storage of its own is made, of those at the block's top level."""
    return {
        r.name: i
        for i, s in enumerate(block.statements)
        if isinstance(s, Op) and s.name in OPS and s.name not in _ALIASES and s.name not in _NO_PLACE
        for r in s.results
    }


def _reads(block: Block) -> dict[str, list[int]]:
    """Return which statements read each name, nested ones counted as the statement around them."""
    found: dict[str, list[int]] = {}
    for i, s in enumerate(block.statements):
        for name in uses(s):
            found.setdefault(name, []).append(i)
    return found
