# Row-wise gather indices of cosines: base of the row plus half the column.
import pypto.language as pl


@pl.program
class RopeTable:
    @pl.function(type=pl.FunctionType.InCore)
    def rope_table(
        self,
        index: pl.Out[pl.Tensor[[8, 64], pl.INT32]],
    ) -> pl.Tensor[[8, 64], pl.INT32]:
        j = pl.tile.ci(0, [1, 64], dtype=pl.INT32)
        half = pl.mul(pl.cast(j, target_type=pl.FP32), 0.5)
        pair = pl.cast(half, target_type=pl.INT32, mode="trunc")
        pair_f = pl.cast(pair, target_type=pl.FP32)
        zeros = pl.tile.full([8, 64], pl.FP32, 0.0)
        spread = pl.col_expand(zeros, pair_f)
        rows = pl.cast(pl.tile.ci(0, [1, 8], dtype=pl.INT32), target_type=pl.FP32)
        base = pl.reshape(pl.mul(rows, 32.0), [8, 1])
        flat = pl.row_expand_add(spread, base)
        index_t = pl.cast(flat, target_type=pl.INT32)
        index_out = pl.store(index_t, [0, 0], index)
        return index_out
