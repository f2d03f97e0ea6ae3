# ruff: noqa: E501  (dumps have long lines)
"""Kernels in the field's syntax: hand-written ones and ones as compilers dump them."""

SOFTMAX = '''
"""Row-wise softmax."""
import pypto.language as pl

ROWS, COLS = 64, 64
TILE = 16
SHAPE = [TILE, 64]


@pl.program
class Softmax:
    @pl.function(type=pl.FunctionType.InCore)
    def softmax(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        tmp = pl.create_tile(SHAPE, dtype=pl.FP32, target_memory=pl.MemorySpace.Vec)
        for i in pl.range(64 // TILE):
            t = pl.load(x, [i * TILE, 0], SHAPE)
            m = pl.row_max(t, tmp)
            e = pl.exp(pl.row_expand_sub(t, m))
            s: pl.Tile[[16, 1], pl.FP32] = pl.row_sum(e, tmp)
            out = pl.store(pl.row_expand_div(e, s), [i * TILE, 0], out)
        return out
'''.replace("ROWS, COLS = 64, 64\n", "ROWS = 64\n")

RMSNORM = """
import pypto.language as ir

EPS = 1e-6
INV = 1.0 / 64

@ir.function(type=ir.FunctionType.InCore)
def rmsnorm(x: ir.Tensor[[16, 64], ir.BF16], w: ir.Tensor[[1, 64], ir.BF16], out: ir.Out[ir.Tensor[[16, 64], ir.BF16]]):
    a = ir.cast(ir.load(x, [0, 0], [16, 64]), ir.FP32)
    g = ir.cast(ir.load(w, [0, 0], [1, 64]), target_type=ir.FP32)
    tmp = ir.tile.create([16, 64], ir.FP32)
    sq = ir.row_sum(a * a, tmp)
    r = ir.rsqrt(sq * INV + EPS)
    y = ir.col_expand_mul(ir.row_expand_mul(a, r), g)
    out[:] = ir.cast(y, ir.BF16, mode="rint")
    return out
"""

QUANT = """
import pypto.language as pl

@pl.program
class Quant:
    @pl.function(type=pl.FunctionType.InCore)
    def act_quant(
        self,
        x: pl.Tensor[[16, 256], pl.BF16],
        q: pl.Out[pl.Tensor[[16, 256], pl.INT8]],
        scale: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
    ):
        t = pl.tile.cast(pl.tile.load(x, [0, 0], [16, 256]), target_type=pl.FP32)
        tmp = pl.tile.create([16, 256], pl.FP32)
        amax = pl.maximum(pl.row_max(pl.abs(t), tmp), 1e-4)
        s = pl.tile.divs(amax, 127.0)
        i = pl.cast(pl.row_expand_div(t, s), pl.INT32, mode=1)
        h = pl.cast(i, target_type=pl.FP16, mode="round")
        q = pl.store(pl.cast(h, pl.INT8, mode="trunc", saturation_mode="off"), [0, 0], q)
        scale = pl.store(s, [0, 0], scale)
        return q, scale

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 256], pl.BF16],
        q: pl.Out[pl.Tensor[[16, 256], pl.INT8]],
        scale: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            both = self.act_quant(x, scale=scale, q=q)
        return both[0], both[1]
"""

ROPE = """
import pypto.language as pl

SEQ = pl.dynamic("SEQ")

@pl.function(type=pl.FunctionType.AIV)
def rope_index(
    pos: pl.Tensor[[SEQ, 64], pl.INT32],
    n: pl.Scalar[pl.INDEX],
    out: pl.Out[pl.Tensor[[SEQ, 64], pl.INT32]],
) -> pl.Tensor[[SEQ, 64], pl.INT32]:
    half = 32
    for b in pl.parallel(n):
        row = b * 8
        valid = pl.min(n - row, 8)
        if valid > 0:
            p = pl.load(pos, [row, 0], [8, 64], valid_shape=[valid, 64])
            f = pl.cast(p, pl.FP32, mode="none") * 0.5
            d = pl.cast(pl.cast(f, pl.INT32, mode="trunc"), pl.FP32)
            idx = pl.cast(d + f, pl.INT32)
            out = pl.store(idx, [row, 0], out)
        else:
            half = half + 1
    return out
"""

DUMP = """\
# pypto.program: Quant
# after pass: ConvertToSSA
import pypto.language as pl

@pl.program
class Quant:
    @pl.function(type=pl.FunctionType.AIV, level=pl.Level.CHIP_DIE, role=pl.Role.SubWorker)
    def kernel__aiv(x__ssa_v0: pl.Tensor[[16, 64], pl.INT32], out__ssa_v0: pl.Out[pl.Tensor[[16, 64], pl.FP16]]) -> pl.Tensor[[16, 64], pl.FP16]:
        t__tile: pl.Tile[[16, 64], pl.INT32, pl.Mem.Vec] = pl.tile.load(x__ssa_v0, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)
        h__cast_fp32_tmp_v0: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.cast(t__tile, target_type=pl.FP32, mode='round')
        h__tile: pl.Tile[[16, 64], pl.FP16, pl.Mem.Vec, pl.TileView(valid_shape=[8, 64])] = pl.tile.cast(h__cast_fp32_tmp_v0, target_type=pl.FP16, mode=2)
        pld.system.notify(signal_0, peer_0, [0, 0], pl.const(1, pl.INT32), op=0)
        r__ssa_v0: pl.Tensor[[16, 64], pl.FP16] = pl.tile.store(h__tile, [0, 0], out__ssa_v0)
        return r__ssa_v0
"""

LATE = """\
import pypto.language as pl

@pl.program
class Late:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[16, 64], pl.FP32, pl.MemRef("mem_ddr_0", pl.const(0, pl.INT64), 4096)], out: pl.Out[pl.Tensor[[16, 64], pl.FP32, pl.MemRef("mem_ddr_1", pl.const(0, pl.INT64), 4096)]]) -> pl.Tensor[[16, 64], pl.FP32]:
        mem_vec_3: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 4096)
        a: pl.Tile[[16, 64], pl.FP32, pl.MemRef(mem_vec_3, pl.const(0, pl.INT64), 4096), pl.Mem.Vec] = pl.tile.load(x, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)
        b: pl.Tile[[16, 64], pl.FP32, pl.MemRef(mem_vec_3, pl.const(0, pl.INT64), 4096), pl.Mem.Vec] = pl.tile.exp(a)
        r: pl.Tensor[[16, 64], pl.FP32, pl.MemRef("mem_ddr_1", pl.const(0, pl.INT64), 4096)] = pl.tile.store(b, [0, 0], out)
        return r
"""

KERNELS = {
    "softmax": SOFTMAX,
    "rmsnorm": RMSNORM,
    "quant": QUANT,
    "rope": ROPE,
    "late": LATE,
}


def incore(body, params="x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX]"):
    """The text of one in-core function with the given body lines."""
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    return f"import pypto.language as pl\n@pl.function\ndef kernel({params}):\n{lines}\n"
