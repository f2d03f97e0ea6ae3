"""Subscripts: ``t[0]`` of a tuple, and slices, reads and writes of tensors and tiles."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ..diagnostics import error
from ..infer import merge_types, type_of
from ..op import OPS
from ..program import Const, Op, Operand, Value, Verbatim, index
from ..types import OpaqueType, ScalarType, TensorType, TileType, TupleType, Type
from .calls import Calls


@dataclass(frozen=True)
class Region:
    """A subscript over all dimensions: offsets, sizes, and which dimensions a scalar index removes."""

    offsets: tuple[Operand, ...]
    sizes: tuple[Operand, ...]
    dropped: tuple[int, ...]


@dataclass
class Subscripts(Calls):
    """Reads subscripts as values and as assignment targets."""

    def subscript(self, node: Any, name: str | None, written: Type | None) -> Operand:
        """Return the operand of ``x[...]``; raises TG002, TG006 or TG008."""
        base = self.value(node.value)
        if isinstance(base, tuple):
            return self._item(base, node)
        t = type_of(base)
        if isinstance(t, TupleType):
            return self._project(base, t, node, name, written)
        if isinstance(t, OpaqueType):
            operands = (base, *self._indices(node))
            span = self.span(node)
            return self.finish("getitem", operands, {}, merge_types(None, written, span), name, span)
        if not isinstance(t, TensorType | TileType):
            raise error("TG006", f"a {t} has no elements", self.span(node))
        region = self.region(node, t)
        space = "tile" if isinstance(t, TileType) else "tensor"
        if len(region.dropped) == len(t.shape):
            return self.emit(f"{space}.read", (base, region.offsets), {}, node, name, written)
        if not region.dropped:
            return self.emit(f"{space}.slice", _slice_of(space, base, region), {}, node, name, written)
        return self._dropping(space, base, region, node, name, written)

    def _dropping(
        self, space: str, base: Operand, region: Region, node: Any, name: str | None, written: Type | None
    ) -> Operand:
        """A slice that removes dimensions: a slice, then a reshape."""
        full = self.emit(f"{space}.slice", _slice_of(space, base, region), {}, node, None, None)
        kept = tuple(s for i, s in enumerate(region.sizes) if i not in region.dropped)
        shape = (index(1), *kept) if space == "tile" and len(kept) < 2 else kept
        return self.emit(f"{space}.reshape", (full, shape), {}, node, name, written)

    def _item(self, items: tuple[Operand, ...], node: ast.Subscript) -> Operand:
        at = self._position(node)
        if not -len(items) <= at < len(items):
            raise error("TG008", f"index {at} of {len(items)} values", self.span(node))
        return items[at]

    def _position(self, node: ast.Subscript) -> int:
        at = self.literal_of(node.slice)
        if not isinstance(at, int) or isinstance(at, bool):
            raise error("TG006", "the index of a tuple is an integer", self.span(node))
        return at

    def _project(
        self, base: Operand, t: TupleType, node: ast.Subscript, name: str | None, written: Type | None
    ) -> Operand:
        at = self._position(node)
        if not 0 <= at < len(t.items):
            raise error("TG008", f"index {at} of {len(t.items)} values", self.span(node))
        span = self.span(node)
        return self.finish("getitem", (base, index(at)), {}, merge_types(t.items[at], written, span), name, span)

    def _indices(self, node: ast.Subscript) -> list[Operand]:
        """Return the indices into a value of unknown type: scalars, and slices as text."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return [
            Verbatim(self.module.text(p, self.renames_in(p))) if isinstance(p, ast.Slice) else self.scalar(p)
            for p in parts
        ]

    # -- regions -----------------------------------------------------------------------------------------

    def region(self, node: ast.Subscript, t: TensorType | TileType) -> Region:
        """Return what ``[i:j, k]`` covers; missing indices take the whole dimension."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) > len(t.shape):
            message = f"{len(parts)} indices for {len(t.shape)} dimensions"
            raise error("TG008", message, self.span(node))
        offsets: list[Operand] = []
        sizes: list[Operand] = []
        dropped: list[int] = []
        for axis, size in enumerate(t.shape):
            whole: Operand = index(size) if isinstance(size, int) else self.size_value(size, node)
            part = parts[axis] if axis < len(parts) else None
            if isinstance(part, ast.Slice):
                offset, extent = self._slice(part, whole)
            elif part is None:
                offset, extent = index(0), whole
            else:
                offset, extent = self.integer(part), index(1)
                dropped.append(axis)
            offsets.append(offset)
            sizes.append(extent)
        return Region(tuple(offsets), tuple(sizes), tuple(dropped))

    def size_value(self, size: str, node: ast.AST) -> Operand:
        """Return the value of a dynamic dimension."""
        found = self.sizes.get(size)
        if found is not None:
            return found
        if size.isidentifier():
            if isinstance(self.names.get(size), Value) or size not in self.module.dynamic_names:
                raise error("TG009", f"the size {size} has no value here", self.span(node))
            return Value(size, index(0).type)
        # The expression is over value names; read it with those as its names.
        expression = ast.parse(size, mode="eval").body
        outer = self.names
        self.names = {**{d: Value(d, index(0).type) for d in self.module.dynamic_names}, **self.sizes}
        try:
            return self.scalar(_located(expression, node))
        finally:
            self.names = outer

    def _slice(self, part: ast.Slice, whole: Operand) -> tuple[Operand, Operand]:
        if part.step is not None:
            raise error("TG002", "a slice has no step", self.span(part))
        lower = self.integer(part.lower) if part.lower is not None else index(0)
        if part.upper is None:
            return lower, self._difference(whole, lower, part)
        # i : i + n has n elements, whatever i is.
        upper = part.upper
        if isinstance(upper, ast.BinOp) and isinstance(upper.op, ast.Add) and part.lower is not None:
            for same, size in ((upper.left, upper.right), (upper.right, upper.left)):
                if ast.dump(same) == ast.dump(part.lower):
                    return lower, self.integer(size)
        return lower, self._difference(self.integer(upper), lower, part)

    def _difference(self, upper: Operand, lower: Operand, node: ast.AST) -> Operand:
        if isinstance(lower, Const) and lower.value == 0:
            return upper
        if isinstance(lower, Const) and isinstance(upper, Const):
            return index(int(upper.value) - int(lower.value))
        return self.emit("scalar.sub", (upper, lower), {}, node, None, None)

    # -- writes ------------------------------------------------------------------------------------------

    def store(self, target: ast.Subscript, value: Operand, node: ast.stmt) -> None:
        """Read ``x[...] = value``: the name gets a new version, written through to the tensor or tile."""
        if not isinstance(target.value, ast.Name):
            hint = "slice into a name first"
            raise error("TG002", "only x[...] = v can be assigned", self.span(target), hint=hint)
        name = target.value.id
        base = self.lookup(target.value)
        t, tv = type_of(base), type_of(value)
        if isinstance(t, OpaqueType):
            self.out.append(Op("setitem", (base, value, *self._indices(target)), {}, (), self.span(node)))
            return
        if not isinstance(t, TensorType | TileType):
            raise error("TG006", f"a {t} cannot be written into", self.span(target))
        region = self.region(target, t)
        if isinstance(tv, ScalarType):
            if len(region.dropped) != len(t.shape):
                raise error("TG006", "a scalar is written to one element", self.span(target),
                            hint="give an index for every dimension")  # fmt: skip
            space = "tile" if isinstance(t, TileType) else "tensor"
            self.emit(f"{space}.write", (base, region.offsets, value), {}, node, name, None)
            return
        if isinstance(t, TensorType) and isinstance(tv, TileType):
            self._check_extent(region, tv, target)
            self.emit("tile.store", (value, region.offsets, base, None), {}, node, name, None)
            return
        if not isinstance(tv, TensorType | TileType | OpaqueType):
            raise error("TG006", f"a {tv or 'list'} cannot be written there", self.span(node))
        full = f"{'tile' if isinstance(t, TileType) else 'tensor'}.assemble"
        if not isinstance(tv, OpaqueType):
            self._check_extent(region, tv, target)
        self.emit(full if full in OPS else f"pl.{full}", (base, value, region.offsets), {}, node, name, t)

    def _check_extent(self, region: Region, t: TensorType | TileType, node: ast.AST) -> None:
        kept = [s for i, s in enumerate(region.sizes) if i not in region.dropped]
        have = list(t.shape)
        while len(have) > len(kept) and have[0] == 1:
            have = have[1:]
        sizes = [int(s.value) if isinstance(s, Const) else None for s in kept]
        fits = len(have) == len(sizes) and all(s is None or isinstance(h, str) or h == s for h, s in zip(have, sizes))
        if not fits:
            message = f"{t} does not have the extent of the subscript"
            raise error("TG008", message, self.span(node), hint="slice exactly the part that is written")


def _located(tree: ast.expr, node: ast.AST) -> ast.expr:
    """Give every node of a new tree the place of ``node``."""
    for part in ast.walk(tree):
        ast.copy_location(part, node)
    return tree


def _slice_of(space: str, base: Operand, region: Region) -> tuple[Operand, ...]:
    """Return the operands of a slice; one of a tensor could also drop axes."""
    operands = (base, region.sizes, region.offsets, None)
    return operands if space == "tile" else (*operands, None)
