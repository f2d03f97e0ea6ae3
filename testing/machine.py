"""Executes emitted assembly on bytes: what loads, views, instructions, loops and stores do to memory.

Local storage starts as random bytes, and instructions touch valid regions only, so whatever reads padding or
storage that was overwritten gives other results than the language's interpreter. Arithmetic is the declared
meaning of the operation with that mnemonic; addressing, masks, aliases and control flow are done here, from the
assembly alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..codegen.emit_forms import PADS
from ..codegen.pto import api as pto
from ..codegen.pto.base import segment_sizes
from ..codegen.pto.elements import ELEMENT_NAMES, PACKED_PAIRS, element_bytes, spell
from ..codegen.pto.types import PtrType, TileBufType
from ..ir import packing
from ..ir.convert import convert
from ..ir.dtypes import BOOL, INDEX, DType, parse_dtype
from ..ir.lanes import number
from ..ir.op import OPS, Env
from ..ir.ops._math import scalar_like
from ..ir.ops.memory import pad_element
from ..ir.tilearray import Arr
from ..ir.types import scalar, tile

#: Operations that other ones of the same mnemonic come before: a fill, and quotients whose scalar stands first.
_SECOND = ("tile.full", "tile.rdivs")
BY_MNEMONIC = {decl.pto: decl for decl in OPS.values() if decl.pto and decl.name not in _SECOND}
#: What an instruction means where its first operand is the scalar.
_SCALAR_FIRST = {"tdivs": OPS["tile.rdivs"]}
_PADS = {code: word for word, code in PADS.items()}
_CMP = ("eq", "ne", "lt", "le", "gt", "ge")


def dtype_of(attr: Any) -> DType:
    """Return the dtype of an element or register type."""
    text = ELEMENT_NAMES.get(attr) or str(attr)
    return INDEX if text == "index" else BOOL if text == "i1" else parse_dtype(text)


@dataclass
class Pointer:
    """A place in a tensor: its bytes, the offset in assembler elements, the element type."""

    data: Arr
    offset: int
    element: Any


@dataclass
class View:
    pointer: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass
class Tile:
    """Local bytes seen as a tile; strides in bytes, ``valid`` changes in place with set_validshape."""

    data: Arr
    offset: int
    strides: tuple[int, int]
    type: TileBufType
    valid: list[int]

    def window(self, rows: int, cols: int) -> Arr:
        """Return the bytes of the leading rectangle as [rows, cols, element bytes], writable."""
        size = element_bytes(self.type.element)
        assert rows <= self.type.shape[0] and cols <= self.type.shape[1], "valid region outside the tile"
        last = self.offset + (rows - 1) * self.strides[0] + (cols - 1) * self.strides[1] + size
        assert not rows or not cols or last <= len(self.data), "tile reaches outside its storage"
        shape, strides = (rows, cols, size), (*self.strides, 1)
        return np.lib.stride_tricks.as_strided(self.data[self.offset :], shape, strides)

    def read(self) -> Arr:
        """Return the valid region as an array of the dtype's storage."""
        raw = np.ascontiguousarray(self.window(*self.valid))
        return from_bytes(raw, self.type.element)

    def write(self, values: Arr) -> None:
        rows, cols = self.valid
        raw = to_bytes(values, self.type.element)
        assert raw.shape[:2] == (rows, cols), f"result {raw.shape[:2]} for a valid region {(rows, cols)}"
        self.window(rows, cols)[...] = raw


def from_bytes(raw: Arr, attr: Any) -> Arr:
    """Turn [rows, cols, bytes] into elements."""
    dtype = dtype_of(attr)
    if spell(attr) in PACKED_PAIRS:
        return packing.unpack_nibbles(raw[..., 0], dtype, 2 * raw.shape[1])
    return raw.view(dtype.storage)[..., 0]


def to_bytes(values: Arr, attr: Any) -> Arr:
    dtype = dtype_of(attr)
    if spell(attr) in PACKED_PAIRS:
        return packing.pack_nibbles(values, dtype)[..., None]
    cast = np.ascontiguousarray(values.astype(dtype.storage, copy=False))
    return cast.view(np.uint8).reshape(*values.shape, -1)


def register_of(raw: Arr, attr: Any) -> Any:
    """Return the number that the bytes of one element are in a scalar register."""
    dtype = dtype_of(attr)
    return number(raw.view(dtype.storage), dtype)


def bytes_of(value: Any, attr: Any) -> Arr:
    """Return the bytes of one element that a scalar register is stored as."""
    return np.asarray([scalar_like(value, dtype_of(attr))]).view(np.uint8)


def added(raw: Arr, new: Arr, attr: Any) -> Arr:
    """Return the bytes of the sums of two arrays of elements, both as [..., element bytes]."""
    flat = [np.ascontiguousarray(a).reshape(1, -1, a.shape[-1]) for a in (raw, new)]
    total = from_bytes(flat[0], attr) + from_bytes(flat[1], attr)
    return to_bytes(total, attr).reshape(raw.shape)


@lru_cache(maxsize=16)
def parsed(text: str) -> Any:
    """Return the module of a text, which nobody changes."""
    return pto.parse_pto(text)


class Machine:
    """Runs functions of a module; tensors are byte arrays that are written in place."""

    def __init__(self, text: str, seed: int = 0) -> None:
        self.module = parsed(text)
        self.random = np.random.default_rng(seed)

    def run(self, name: str, args: dict[str, Any]) -> None:
        """Call a kernel; ``args`` by parameter name: byte arrays (or pointers) for pointers, numbers for the rest."""
        block = self.function(name).body.block
        env: dict[Any, Any] = {}
        for value in block.args:
            given = args[value.name_hint]
            if isinstance(value.type, PtrType) and not isinstance(given, Pointer):
                given = Pointer(given, 0, value.type.element)
            env[value] = given
        with np.errstate(all="ignore"):
            self.block(block, env)

    def function(self, name: str) -> Any:
        """Return a function of the module."""
        return next(op for op in self.module.body.block.ops if op.properties["sym_name"].data == name)

    def func_call(self, op: Any, values: list[Any]) -> None:
        name = op.properties["callee"].root_reference.data
        f = self.function(name)
        if not f.body.blocks:
            self.outside(name, values)
            return
        assert "pto.entry" not in f.attributes, "a launched kernel cannot be called"
        self.block(f.body.block, dict(zip(f.body.block.args, values, strict=True)))

    def outside(self, name: str, values: list[Any]) -> None:
        """A call of a function that is defined elsewhere."""
        raise AssertionError(f"nobody defines {name}")

    def block(self, block: Any, env: dict[Any, Any]) -> list[Any]:
        """Run a block; return what its terminator hands on."""
        for op in block.ops:
            if op.name in ("scf.yield", "func.return", "scf.condition"):
                return [env[o] for o in op.operands]
            self.step(op, env)
        return []

    def step(self, op: Any, env: dict[Any, Any]) -> None:
        kind, _, name = op.name.partition(".")
        method = getattr(self, f"{kind}_{name.replace('.', '_')}", None)
        values = [env[o] for o in op.operands]
        if method is not None:
            results = method(op, values, env) if kind == "scf" else method(op, values)
        elif kind == "arith":
            results = self.scalar(op, name, values)
        else:
            results = None
            self.instruction(op, name, values)
        if len(op.results) == 1:
            env[op.results[0]] = results
        else:
            env.update(zip(op.results, results or ()))

    # -- control flow ------------------------------------------------------------------------------------

    def scf_for(self, op: Any, values: list[Any], env: dict[Any, Any]) -> Any:
        start, stop, step, *carried = values
        block = op.regions[0].block
        for i in range(start, stop, step):
            env.update(zip(block.args, (i, *carried)))
            carried = self.block(block, env)
        return carried[0] if len(op.results) == 1 else carried

    def scf_if(self, op: Any, values: list[Any], env: dict[Any, Any]) -> Any:
        region = op.regions[0 if values[0] else 1]
        results = self.block(region.block, env) if region.blocks else []
        return results[0] if len(op.results) == 1 else results

    def scf_while(self, op: Any, values: list[Any], env: dict[Any, Any]) -> Any:
        carried = values
        head, body = (r.block for r in op.regions)
        while True:
            env.update(zip(head.args, carried))
            go, *carried = self.block(head, env)
            if not go:
                return carried[0] if len(op.results) == 1 else carried
            env.update(zip(body.args, carried))
            carried = self.block(body, env)

    # -- scalars -----------------------------------------------------------------------------------------

    def arith_constant(self, op: Any, values: list[Any]) -> Any:
        attr = op.properties["value"]
        number = attr.value.data
        return self.fit(number, op.results[0].type)

    def fit(self, value: Any, type_: Any) -> Any:
        """Round or wrap a number into a register type."""
        dtype = dtype_of(type_)
        if dtype is BOOL:
            return bool(value)
        if dtype is INDEX:
            return int(value)
        return number(scalar_like(value if dtype.is_float else int(value), dtype), dtype)

    def scalar(self, op: Any, name: str, values: list[Any]) -> Any:
        a, b, *_ = (*values, None)
        bits = getattr(getattr(op.operands[0].type, "width", None), "data", 64)
        mask = (1 << bits) - 1
        ua, ub = (v & mask if isinstance(v, int) else v for v in (a, b))
        if name in ("cmpi", "cmpf"):
            return self.compare(op, name, values, (ua, ub))
        table: dict[str, Any] = {
            "addi": lambda: a + b, "subi": lambda: a - b, "muli": lambda: a * b, "addf": lambda: a + b,
            "subf": lambda: a - b, "mulf": lambda: a * b, "divf": lambda: a / b if b else np.float64(a) / np.float64(b),
            "negf": lambda: -a, "divui": lambda: ua // ub, "remui": lambda: ua % ub, "floordivsi": lambda: a // b,
            "divsi": lambda: int(a / b) if abs(a) < 2**53 else a // b, "remsi": lambda: a - b * int(a / b),
            "andi": lambda: a & b, "ori": lambda: a | b, "xori": lambda: a ^ b, "shli": lambda: a << b,
            "shrsi": lambda: a >> b, "shrui": lambda: ua >> b, "maxsi": lambda: max(a, b), "minsi": lambda: min(a, b),
            "maxui": lambda: max(ua, ub), "minui": lambda: min(ua, ub), "maxnumf": lambda: max(a, b),
            "minnumf": lambda: min(a, b), "select": lambda: b if a else values[2], "index_cast": lambda: a,
            "extsi": lambda: a, "extui": lambda: ua, "trunci": lambda: a, "sitofp": lambda: a, "uitofp": lambda: ua,
            "extf": lambda: a, "truncf": lambda: a,
            "fptosi": lambda: int(a) if np.isfinite(a) and abs(a) < 2**63 else -(2**63),
        }  # fmt: skip
        return self.fit(table[name](), op.results[0].type)

    def compare(self, op: Any, name: str, values: list[Any], unsigned: tuple[Any, Any]) -> bool:
        code = op.properties["predicate"].value.data
        if name == "cmpf":
            a, b = values
            words = {1: a == b, 2: a > b, 3: a >= b, 4: a < b, 5: a <= b, 13: a != b, 14: a != a or b != b}
            return bool(words[code])
        a, b = values if code < 6 else unsigned
        how = code if code < 6 else code - 4
        return bool((a == b, a != b, a < b, a <= b, a > b, a >= b)[how])

    # -- global memory -----------------------------------------------------------------------------------

    def pto_make_tensor_view(self, op: Any, values: list[Any]) -> View:
        _, rank, _ = segment_sizes(op)
        return View(values[0], tuple(values[1 : 1 + rank]), tuple(values[1 + rank :]))

    def pto_partition_view(self, op: Any, values: list[Any]) -> View:
        view = values[0]
        _, rank, _ = segment_sizes(op)
        offsets, sizes = values[1 : 1 + rank], values[1 + rank :]
        for offset, size, extent in zip(offsets, sizes, view.shape):
            assert offset >= 0 and offset + size <= extent, "a partition reaches outside its view"
        start = view.pointer.offset + sum(o * s for o, s in zip(offsets, view.strides))
        return View(Pointer(view.pointer.data, start, view.pointer.element), tuple(sizes), view.strides)

    def fetch(self, view: View) -> Arr:
        """Return the bytes of a partition as [..., element bytes]."""
        return self.elements(view)

    def put(self, view: View, new: Arr, add: bool) -> None:
        """Write bytes [..., element bytes] to a partition, or add the elements they are."""
        raw = self.elements(view)
        raw[...] = added(raw, new, view.pointer.element) if add else new

    def elements(self, view: View) -> Arr:
        """Return the bytes of a partition as [..., element bytes], writable."""
        size = element_bytes(view.pointer.element)
        start = view.pointer.offset * size
        strides = (*(s * size for s in view.strides), 1)
        span = sum((n - 1) * s for n, s in zip(view.shape, view.strides)) + 1
        assert prod(view.shape) == 0 or start + span * size <= len(view.pointer.data), "outside the tensor"
        return np.lib.stride_tricks.as_strided(view.pointer.data[start:], (*view.shape, size), strides)

    def pto_tload(self, op: Any, values: list[Any]) -> None:
        view, tile_ = values
        raw = self.fetch(view)
        rows, cols = tile_.valid
        assert prod(raw.shape[:-1]) == rows * cols, "the tile's valid region is not the partition"
        assert raw.shape[-2] == cols, "the partition has other columns"
        tile_.window(rows, cols)[...] = raw.reshape(rows, cols, raw.shape[-1])

    def pto_tstore(self, op: Any, values: list[Any]) -> None:
        tile_, view = values[:2]
        rows, cols = tile_.valid
        assert prod(view.shape) == rows * cols and view.shape[-1] == cols, "the partition has another shape"
        new = np.ascontiguousarray(tile_.window(rows, cols))
        self.put(view, new.reshape(*view.shape, new.shape[-1]), "atomicType" in op.properties)

    def pto_load_scalar(self, op: Any, values: list[Any]) -> Any:
        at = Pointer(values[0].data, values[0].offset + values[1], values[0].element)
        return register_of(np.ascontiguousarray(self.fetch(View(at, (1,), (1,)))), at.element)

    def pto_store_scalar(self, op: Any, values: list[Any]) -> None:
        at = Pointer(values[0].data, values[0].offset + values[1], values[0].element)
        self.put(View(at, (1,), (1,)), bytes_of(values[2], at.element).reshape(1, -1), False)

    def pto_castptr(self, op: Any, values: list[Any]) -> Pointer:
        return Pointer(values[0].data, values[0].offset, op.results[0].type.element)

    def pto_addptr(self, op: Any, values: list[Any]) -> Pointer:
        return Pointer(values[0].data, values[0].offset + values[1], values[0].element)

    def pto_get_block_idx(self, op: Any, values: list[Any]) -> int:
        return 0

    # -- tiles -------------------------------------------------------------------------------------------

    def pto_alloc_tile(self, op: Any, values: list[Any]) -> Tile:
        type_ = op.results[0].type
        size = element_bytes(type_.element)
        data = self.random.integers(0, 256, type_.shape[0] * type_.shape[1] * size, dtype=np.uint8)
        given = iter(values)
        valid = [next(given) if v == pto.DYNAMIC else v for v in type_.valid]
        return Tile(data, 0, self.strides(type_), type_, valid)

    def strides(self, type_: TileBufType) -> tuple[int, int]:
        size = element_bytes(type_.element)
        rows, cols = type_.shape
        return (size, rows * size) if type_.data.blayout == "col_major" else (cols * size, size)

    def pto_treshape(self, op: Any, values: list[Any]) -> Tile:
        source, type_ = values[0], op.results[0].type
        assert source.strides == self.strides(source.type) or 1 in source.type.shape, "a reshape of a strided window"
        return Tile(source.data, source.offset, self.strides(type_), type_, list(type_.valid))

    def pto_bitcast(self, op: Any, values: list[Any]) -> Tile:
        source = values[0]
        return Tile(source.data, source.offset, source.strides, op.results[0].type, source.valid)

    def pto_subview(self, op: Any, values: list[Any]) -> Tile:
        source, row, col, *valid = values
        type_ = op.results[0].type
        offset = source.offset + row * source.strides[0] + col * source.strides[1]
        room = (source.type.shape[0] - row, source.type.shape[1] - col)
        assert min(row, col, *valid) >= 0, f"a window at {(row, col)} with a valid region {tuple(valid)}"
        assert valid[0] <= room[0] and valid[1] <= room[1], (
            f"a valid region {tuple(valid)} where the tile has room for {room}"
        )
        return Tile(source.data, offset, source.strides, type_, list(valid))

    def pto_set_validshape(self, op: Any, values: list[Any]) -> None:
        values[0].valid[:] = values[1:]

    def pto_tgetval(self, op: Any, values: list[Any]) -> Any:
        tile_, at = values
        size = element_bytes(tile_.type.element)
        return register_of(tile_.data[tile_.offset + at * size :][:size], tile_.type.element)

    def pto_tsetval(self, op: Any, values: list[Any]) -> None:
        tile_, at, value = values
        size = element_bytes(tile_.type.element)
        tile_.data[tile_.offset + at * size :][:size] = bytes_of(value, tile_.type.element)

    # -- instructions ------------------------------------------------------------------------------------

    def instruction(self, op: Any, name: str, values: list[Any]) -> None:
        lay = op.layout() if hasattr(op, "layout") else None
        names = lay.names if lay else ("src", "dst")
        args = dict(zip(names, values))
        for key, value in args.items():
            if isinstance(value, Tile) and key == "tmp":
                value.data[...] = self.random.integers(0, 256, len(value.data), dtype=np.uint8)
        dst = args["dst"]
        found = self.result(op, name, args, dst)
        if isinstance(found, tuple):
            for key, part in zip(("dst", "dstIdx"), found):
                args[key].write(part)
        else:
            dst.write(found)

    def result(self, op: Any, name: str, args: dict[str, Any], dst: Tile) -> Arr:
        """Return the elements an instruction puts into the destination's valid region."""
        ins = [args[n] for n in args if n not in ("dst", "dstIdx", "tmp")]
        if name == "taxpy":
            ins = [dst, *ins]
        data = [v.read() if isinstance(v, Tile) else v for v in ins]
        dtype = dtype_of(dst.type.element)
        props = {k: getattr(v, "data", v) for k, v in op.properties.items()}
        match name:
            case "tmov" | "tcolexpand" | "trowexpand":
                shape = from_bytes(dst.window(*dst.valid), dst.type.element).shape
                return np.broadcast_to(data[0], shape)
            case "tcvt":
                saturate = {"ON": True, "OFF": False, None: None}[props.get("sat_mode")]
                source = dtype_of(args["src"].type.element)
                return convert(data[0], source, dtype, props["rmode"].lower(), saturate)
            case "tcmp" | "tcmps":
                how = _CMP.index(props["cmpMode"])
                packed = self.meaning(name, data, ins, dtype, cmp_type=how)
                return packed[:, : dst.valid[1]]
            case "tsel" | "tsels":
                bits = packing.unpack_mask(np.ascontiguousarray(data[0]), data[1].shape[1])
                return np.where(bits, data[1], data[2] if name == "tsel" else scalar_like(data[2], dtype))
            case "texpands":
                return np.full(dst.valid, scalar_like(data[0], dtype))
            case "ttri":
                upper = bool(props["upperOrLower"].value.data)
                triangle: Arr = BY_MNEMONIC[name].meaning(data[0], dst.valid, None, dtype, upper)
                return triangle
            case "thistogram":
                return self.meaning(name, data, ins, dtype, byte=props["byte"].value.data)
            case "tci":
                step = -1 if "descending" in props else 1
                return (data[0] + step * np.arange(dst.valid[1])).reshape(1, -1).astype(dtype.storage)
            case "tfillpad":
                return self.padded(args["src"], dst, dtype)
            case "ttrans":
                turned: Arr = data[0].T
                return turned
            case "tconcat":
                joined: Arr = np.concatenate(data, axis=1)
                return joined
        return self.meaning(name, data, ins, dtype)

    def padded(self, src: Tile, dst: Tile, dtype: DType) -> Arr:
        out = np.full(dst.valid, pad_element(_PADS[dst.type.data.pad], dtype))
        out[: src.valid[0], : src.valid[1]] = src.read()
        return out

    def meaning(self, name: str, data: list[Any], ins: list[Any], dtype: DType, **attrs: Any) -> Arr:
        decl = BY_MNEMONIC[name]
        if name in _SCALAR_FIRST and not isinstance(ins[0], Tile):
            decl, data, ins = _SCALAR_FIRST[name], data[::-1], ins[::-1]
        types = tuple(
            tile(d.shape, dtype_of(v.type.element)) if isinstance(v, Tile) else scalar(dtype)
            for v, d in zip(ins, data)
        )
        if decl.wants_env:
            attrs["env"] = Env(types, tile((1, 1), dtype))
        given = iter(data)
        kinds = [p for p in decl.operand_params if p.kind.value != "scratch tile"]
        named = {p.name: next(given) for p in kinds}
        found: Arr = decl.meaning(**named, **attrs)
        return found
