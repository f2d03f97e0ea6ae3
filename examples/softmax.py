# Row softmax of FP16 scores, as a compiler dump writes it (no self, positional operands, SSA names).
# pypto.program: Softmax


@pl.program
class Softmax:
    @pl.function(type=pl.FunctionType.InCore)
    def softmax(scores__ssa_v0: pl.Tensor[[16, 256], pl.FP16], out__ssa_v0: pl.Out[pl.Tensor[[16, 256], pl.FP16]]) -> pl.Tensor[[16, 256], pl.FP16]:
        s__ssa_v0: pl.Tile[[16, 256], pl.FP16, pl.Mem.Vec] = pl.tile.load(scores__ssa_v0, [0, 0], [16, 256], [16, 256], target_memory=pl.Mem.Vec)
        f__ssa_v0: pl.Tile[[16, 256], pl.FP32, pl.Mem.Vec] = pl.tile.cast(s__ssa_v0, pl.FP32, mode='round')
        t__ssa_v0: pl.Tile[[16, 256], pl.FP32, pl.Mem.Vec] = pl.tile.create([16, 256], pl.FP32, pl.Mem.Vec)
        m__ssa_v0: pl.Tile[[16, 1], pl.FP32, pl.Mem.Vec] = pl.tile.row_max(f__ssa_v0, t__ssa_v0)
        d__ssa_v0: pl.Tile[[16, 256], pl.FP32, pl.Mem.Vec] = pl.tile.row_expand_sub(f__ssa_v0, m__ssa_v0)
        e__ssa_v0: pl.Tile[[16, 256], pl.FP32, pl.Mem.Vec] = pl.tile.exp(d__ssa_v0)
        h__ssa_v0: pl.Tile[[16, 256], pl.FP16, pl.Mem.Vec] = pl.tile.cast(e__ssa_v0, pl.FP16, mode='rint')
        w__ssa_v0: pl.Tile[[16, 256], pl.FP32, pl.Mem.Vec] = pl.tile.cast(h__ssa_v0, pl.FP32, mode='round')
        z__ssa_v0: pl.Tile[[16, 1], pl.FP32, pl.Mem.Vec] = pl.tile.row_sum(w__ssa_v0, t__ssa_v0)
        y__ssa_v0: pl.Tile[[16, 256], pl.FP32, pl.Mem.Vec] = pl.tile.row_expand_div(w__ssa_v0, z__ssa_v0)
        return pl.tile.store(pl.tile.cast(y__ssa_v0, pl.FP16, mode='rint'), [0, 0], out__ssa_v0)
