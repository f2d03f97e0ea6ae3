"""Small programs for the emission tests: one for every tile operation, dtype and target that fit together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilegg.extract.instructions import fixed_words, work_dtype
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import DTYPES, FP32, INDEX, INT32, UINT8, DType
from tilegg.ir.infer import result_types, stored_attrs
from tilegg.ir.op import OPS, Kind, OpDecl
from tilegg.ir.program import Block, Const, Function, Op, Param, Program, Return, Value, index
from tilegg.ir.types import TileType, tensor, tile
from tilegg.rules.target import Target, load_target

SHAPE = (16, 64)
TARGETS = ("a2a3", "a5")
#: Operations that are not a computation on loaded tiles.
_OTHER = frozenset(
    {"tile.load", "tile.store", "tile.create", "tile.full", "tile.ci", "tile.cast", "tile.sel", "tile.sels"}
    # Random indices lead outside the data; not in the assembler of one of the targets.
    | {"tile.gatherb", "tile.concat_idx", "tile.random", "tile.gather", "tile.scatter", "tile.sort32"}
    # Checked in test_emit_vocabulary, on operands that fit them.
    | {f"tile.mrgsort{form}" for form in ("", "_format1", "_format2")}
)


class Builder:
    """Builds one function whose tiles come from tensor parameters and go to tensor parameters."""

    def __init__(self) -> None:
        self.params: list[Param] = []
        self.statements: list[Any] = []
        self.returned: list[Value] = []

    def load(self, shape: tuple[int, ...], dtype: DType) -> Value:
        """Load a whole new tensor parameter."""
        name = f"x{len(self.params)}"
        source = Value(name, tensor(shape, dtype))
        self.params.append(Param(source))
        zeros, sizes = tuple(index(0) for _ in shape), tuple(map(index, shape))
        return self.op("tile.load", (source, zeros, sizes, None))

    def op(self, name: str, operands: tuple[Any, ...], **attrs: Any) -> Value:
        decl = OPS[name]
        types = result_types(decl, operands, attrs)
        assert types is not None
        results = tuple(Value(f"v{len(self.statements)}_{i}", t) for i, t in enumerate(types))
        self.statements.append(Op(name, operands, stored_attrs(decl, attrs), results))
        return results[0]

    def store(self, value: Value) -> None:
        """Store a tile into a new output tensor of its valid shape."""
        t = value.type
        assert isinstance(t, TileType)
        out = Value(f"out{len(self.params)}", tensor(t.valid_shape, t.dtype))
        self.params.append(Param(out, "Out"))
        self.returned.append(self.op("tile.store", (value, tuple(index(0) for _ in t.shape), out, None)))

    def program(self) -> Program:
        results = tuple(v.type for v in self.returned)
        body = Block((*self.statements, Return(tuple(self.returned))))
        return Program("P", (Function("kernel", tuple(self.params), results, body),))


def operation_programs(target_name: str) -> Iterator[tuple[str, Program]]:
    """Yield (name, program) for every operation on every dtype the target takes it on."""
    target = load_target(target_name)
    for decl in OPS.values():
        if not decl.name.startswith("tile.") or decl.pto is None or decl.name in _OTHER:
            continue
        for dtype in DTYPES.values():
            if dtype.pto and _legal(target, decl, dtype):
                made = _operation(decl, dtype)
                if made is not None:
                    yield f"{decl.name.removeprefix('tile.')}_{dtype.short}", made
    yield from _selections(target)
    yield from _fills(target)


def _legal(target: Target, decl: OpDecl, dtype: DType) -> bool:
    assert decl.pto is not None
    if decl.pto not in target.ops:
        return dtype in (FP32, INT32)
    return bool(target.legal(decl.pto, work_dtype(decl, dtype.name), cmp="eq", **dict(fixed_words(decl))))


def _operation(decl: OpDecl, dtype: DType) -> Program | None:
    b = Builder()
    operands: list[Any] = []
    for p in decl.operand_params:
        if p.kind in (Kind.TILE, Kind.ARRAY):
            shape = {"row_vec": (SHAPE[0], 1), "col_vec": (1, SHAPE[1])}.get(p.name, SHAPE)
            operands.append(b.load(shape, dtype))
        elif p.kind is Kind.SCALAR:
            operands.append(index(8) if "valid" in p.name else Const(1.5 if dtype.is_float else 3, dtype))
        elif p.kind is Kind.DIMS:
            given = {"shape": (index(32), index(32)), "indices": (index(1), index(2))}.get(p.name)
            operands.append(given if p.required else None)
        else:
            operands.append(None)
    attrs = {"axis1": 0, "axis2": 1, "target_memory": "Vec", "dtype": _same_width(dtype)}
    chosen = {p.name: attrs[p.name] for p in decl.attr_params if p.name in attrs}
    if decl.name == "tile.slice":
        # Of packed pairs a row has one block only.
        operands[1:3] = [(index(8), index(32)), (index(8), index(32 if dtype.values_per_byte == 1 else 0))]
    if decl.name == "tile.write":
        operands[-1] = Const(1, dtype)
    try:
        result = b.op(decl.name, tuple(operands), **chosen)
    except (TileggError, KeyError):
        # Operands of another kind; such operations have kernels of their own in the tests.
        return None
    if not isinstance(result.type, TileType) or decl.composite:
        return None
    b.store(result)
    return b.program()


def _same_width(dtype: DType) -> DType:
    others = [d for d in DTYPES.values() if d.pto and d.bits == dtype.bits and d is not dtype and d.kind == "int"]
    return others[0] if others else dtype


def _selections(target: Target) -> Iterator[tuple[str, Program]]:
    for dtype in DTYPES.values():
        for name in ("sel", "sels"):
            if not dtype.pto or not target.legal(f"t{name}", dtype):
                continue
            b = Builder()
            mask = b.load((SHAPE[0], 32), UINT8)
            mask = b.op("tile.set_validshape", (mask, index(SHAPE[0]), index(8)))
            x = b.load(SHAPE, dtype)
            if name == "sel":
                b.store(b.op("tile.sel", (mask, x, b.load(SHAPE, dtype), None)))
            else:
                b.store(b.op("tile.sels", (mask, x, None, Const(1, dtype))))
            yield f"{name}_{dtype.short}", b.program()


def _fills(target: Target) -> Iterator[tuple[str, Program]]:
    shape = tuple(map(index, SHAPE))
    for dtype in DTYPES.values():
        if dtype.pto and target.legal("texpands", dtype):
            b = Builder()
            b.store(b.op("tile.full", (shape, Const(2, dtype)), dtype=dtype))
            yield f"full_{dtype.short}", b.program()


def cast_programs(target_name: str, shape: tuple[int, int] = SHAPE) -> Iterator[tuple[str, Program]]:
    """Yield a program for every native conversion the assembler has, in each round mode it honours."""
    for (src, dst), edge in load_target(target_name).casts.items():
        if not edge.assembler or not DTYPES[src].pto or not DTYPES[dst].pto:
            continue
        for mode in edge.modes or ("none",):
            for saturation in ("on", "off") if not DTYPES[dst].is_float and mode in ("rint", "none") else (None,):
                b = Builder()
                x = b.load(shape, DTYPES[src])
                attrs = {"target_type": DTYPES[dst], "mode": mode, "saturation_mode": saturation}
                b.store(b.op("tile.cast", (x, None), **attrs))
                suffix = f"_{saturation}" if saturation else ""
                yield f"cast_{src}_{dst}_{mode}{suffix}".lower(), b.program()


__all__ = ["INDEX", "SHAPE", "TARGETS", "Builder", "cast_programs", "operation_programs", "tile"]
