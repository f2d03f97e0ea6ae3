"""The machine with gather, scatter, sorting and quantisation instructions, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen.pto.base import segment_sizes
from ..ir import mx
from ..ir.convert import encode
from ..ir.dtypes import FP4, FP8E4M3FN, INT8, UINT8
from ..ir.tilearray import Arr
from .machine import Machine, Tile, dtype_of

_GROUPS = {"P0101": (2, 0), "P1010": (2, 1), "P0001": (4, 0), "P0010": (4, 1), "P0100": (4, 2), "P1000": (4, 3)}
_COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
            "ge": np.greater_equal}  # fmt: skip


def flat(tile: Tile) -> Arr:
    """All elements of a tile's storage, row by row, writable."""
    storage = dtype_of(tile.type.element).storage
    count = tile.type.shape[0] * tile.type.shape[1]
    assert tile.strides == (tile.type.shape[1] * storage.itemsize, storage.itemsize), "positions in a strided window"
    return tile.data[tile.offset :][: count * storage.itemsize].view(storage)


def sorted_pairs(values: Arr, index: Arr) -> list[tuple[float, int]]:
    return sorted(zip(values.tolist(), index.tolist()), key=lambda p: (-p[0], p[1]))


class VocabularyMachine(Machine):
    """See the module."""

    def arith_constant(self, op: Any, values: list[Any]) -> Any:
        return None if hasattr(op.properties["value"], "get_values") else super().arith_constant(op, values)

    def pto_tgather(self, op: Any, values: list[Any]) -> None:
        _, _, counts, by_index, tmp, _ = segment_sizes(op)
        src, dst, *rest = values
        if by_index:
            index = rest[0]
            if tmp:
                same = rest[1].valid == index.valid and rest[1].type.element == index.type.element
                assert same, "the scratch tile is not like the indices"
            dst.write(np.vectorize(lambda i: flat(src)[i], otypes=[flat(src).dtype])(index.read()))
        elif counts:
            count, _, value = rest
            hits = _COMPARE[op.properties["cmpMode"].data](src.read(), value)
            found = np.zeros(dst.valid, np.int32)
            for row, line in enumerate(hits):
                at = np.flatnonzero(line)[: dst.valid[1]]
                found[row, : len(at)] = at + op.properties["offset"].value.data
            dst.write(found)
            count.write(hits.sum(axis=1)[None, :])
        else:
            step, first = _GROUPS[op.properties["maskPattern"].data]
            picked = np.ascontiguousarray(src.read()[:, first::step])
            dst.write(picked.view(dtype_of(dst.type.element).storage))

    def pto_tgatherb(self, op: Any, values: list[Any]) -> None:
        src, offsets, dst = values
        start = src.data[src.offset :]
        blocks = [[start[o : o + 32] for o in row] for row in offsets.read().tolist()]
        raw = np.array(blocks, np.uint8).reshape(len(blocks), -1)
        dst.write(raw.view(dtype_of(dst.type.element).storage))

    def pto_tscatter(self, op: Any, values: list[Any]) -> None:
        if "maskPattern" in op.properties:
            src, dst = values
            step, first = _GROUPS[op.properties["maskPattern"].data]
            out = np.zeros(dst.valid, dtype_of(dst.type.element).storage)
            out[:, first::step] = src.read()
            dst.write(out)
            return
        src, dst, index = values
        for i, v in zip(index.read().reshape(-1), src.read().reshape(-1)):
            flat(dst)[i] = v

    def pto_tsort32(self, op: Any, values: list[Any]) -> None:
        names = dict(zip(op.layout().names, values))
        src, index, dst = names["src"], names["idx"], names["dst"]
        assert "tmp" in names or src.valid[1] % 32 == 0, "a ragged end without a scratch tile"
        lines = []
        for v, i in zip(src.read(), index.read()):
            pairs: list[tuple[float, int]] = []
            for s in range(0, len(v), 32):
                pairs += sorted_pairs(v[s : s + 32], i[s : s + 32])
            lines.append(self.packed(pairs, v.dtype))
        dst.write(np.array(lines))

    @staticmethod
    def packed(pairs: list[tuple[float, int]], storage: np.dtype[Any]) -> Arr:
        """Pairs as 8 bytes each: the value, filled up to 4 bytes, then the index."""
        raw = b"".join(
            np.array([v], storage).tobytes().ljust(4, b"\0") + int(i).to_bytes(4, "little") for v, i in pairs
        )
        return np.frombuffer(raw, storage)

    @staticmethod
    def unpacked(line: Arr) -> list[tuple[float, int]]:
        words = np.ascontiguousarray(line).view(np.uint8).reshape(-1, 8)
        size = line.dtype.itemsize
        return [(w[:size].copy().view(line.dtype)[0].item(), int.from_bytes(w[4:].tobytes(), "little")) for w in words]

    def pto_tmrgsort(self, op: Any, values: list[Any]) -> None:
        srcs, block, *_ = segment_sizes(op)
        if block:
            src, length, dst = values
            line = src.read()[0]
            runs = [line[s : s + 4 * length] for s in range(0, len(line), 4 * length)]
        else:
            dst = values[srcs]
            runs = [np.concatenate([v.read()[0] for v in values[:srcs]])]
        out = []
        for run in runs:
            pairs = self.unpacked(run)
            out.append(self.packed(sorted(pairs, key=lambda p: (-p[0], p[1])), run.dtype))
        dst.write(np.concatenate(out)[None, :])

    def pto_mgather(self, op: Any, values: list[Any]) -> None:
        table, index, dst = values[:3]
        raw = self.elements(table)
        if op.properties["coalesce"].data == "elem":
            dst.window(*dst.valid)[...] = raw.reshape(-1, raw.shape[-1])[index.read()]
            return
        rows = raw.reshape(-1, *raw.shape[-2:])[index.read().reshape(-1)]
        dst.window(*dst.valid)[...] = rows

    def pto_mscatter(self, op: Any, values: list[Any]) -> None:
        src, index, table = values
        raw = self.elements(table)
        places = raw.reshape(-1, raw.shape[-1])
        assert np.shares_memory(raw, places), "elements are scattered to dense tensors only"
        places[index.read().reshape(-1)] = src.window(*src.valid).reshape(-1, raw.shape[-1])

    def pto_tconcatidx(self, op: Any, values: list[Any]) -> None:
        first, second, one, two, dst = values
        size = first.read().itemsize
        out = np.zeros(dst.valid, first.read().dtype)
        for r in range(dst.valid[0]):
            a, b = int(one.read()[r, 0]) // size, int(two.read()[r, 0]) // size
            out[r, :a], out[r, a : a + b] = first.read()[r, :a], second.read()[r, :b]
        dst.write(out)

    def pto_tquant(self, op: Any, values: list[Any]) -> None:
        names = dict(zip(op.layout().names, values))
        scaled = names["src"].read() * names["fp"].read()
        dtype = INT8
        if "offset" in names:
            scaled, dtype = scaled + names["offset"].read(), UINT8
        names["dst"].write(encode(scaled.astype(np.float64), dtype, "rint", True))

    def pto_tquant_mx(self, op: Any, values: list[Any]) -> None:
        src, dst, exponents, maximum, scaling = values
        axis = int(op.properties["grpAxis"].data[-1])
        kind = {"MXFP8": FP8E4M3FN, "MXFP4_E2M1": FP4}[op.properties["quant_type"].data]
        how = op.properties["quantScaleAlg"].data if "quantScaleAlg" in op.properties else "ocp"
        found = mx.quantise(src.read(), dtype_of(src.type.element), kind, axis, how)
        for workspace in (maximum, scaling):
            same = workspace.valid == exponents.valid and workspace.type.element == src.type.element
            assert same, "a workspace is not like the exponents"
            workspace.data[...] = self.random.integers(0, 256, len(workspace.data), dtype=np.uint8)
        codes = found.codes.view(np.int8) if kind is FP8E4M3FN else found.codes
        dst.write(codes)
        exponents.write(found.scales.reshape(exponents.valid))

    def pto_tmov(self, op: Any, values: list[Any]) -> None:
        if segment_sizes(op)[2] == 0:
            self.instruction(op, "tmov", values)
            return
        src, dst, tmp = values
        axis = int(op.properties["grpAxis"].data[-1])
        rows, cols = dst.valid
        assert len(tmp.data) >= (64 + -(-rows // 16) * cols if axis == 1 else 32), "the scratch tile is too small"
        dst.write(src.read().T if axis == 0 else src.read().reshape(rows, cols))
