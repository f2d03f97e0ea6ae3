# Dequantise an INT32 matmul accumulator: per-row and per-column scales, BF16 result.
import pypto.language as pl


@pl.program
class DequantBf16:
    @pl.function(type=pl.FunctionType.InCore)
    def dequant(
        self,
        acc: pl.Tensor[[16, 512], pl.INT32],
        row_scale: pl.Tensor[[16, 1], pl.FP32],
        col_scale: pl.Tensor[[1, 512], pl.FP32],
        bias: pl.Tensor[[1, 512], pl.BF16],
        out: pl.Out[pl.Tensor[[16, 512], pl.BF16]],
    ) -> pl.Tensor[[16, 512], pl.BF16]:
        a: pl.Tile[[16, 512], pl.INT32] = pl.tile.load(acc, [0, 0], [16, 512])
        rs: pl.Tile[[16, 1], pl.FP32] = pl.tile.load(row_scale, [0, 0], [16, 1])
        cs: pl.Tile[[1, 512], pl.FP32] = pl.tile.load(col_scale, [0, 0], [1, 512])
        b: pl.Tile[[1, 512], pl.BF16] = pl.tile.load(bias, [0, 0], [1, 512])
        af: pl.Tile[[16, 512], pl.FP32] = pl.tile.cast(a, target_type=pl.FP32, mode="none")
        by_row: pl.Tile[[16, 512], pl.FP32] = pl.tile.row_expand_mul(af, rs)
        by_col: pl.Tile[[16, 512], pl.FP32] = pl.tile.col_expand_mul(by_row, cs)
        bf: pl.Tile[[1, 512], pl.FP32] = pl.tile.cast(b, target_type=pl.FP32)
        biased: pl.Tile[[16, 512], pl.FP32] = pl.tile.col_expand_add(by_col, bf)
        # The narrowed value is widened once more for the residual stream, then narrowed again.
        narrow: pl.Tile[[16, 512], pl.BF16] = pl.tile.cast(biased, target_type=pl.BF16, mode="rint")
        wide: pl.Tile[[16, 512], pl.FP32] = pl.tile.cast(narrow, target_type=pl.FP32)
        again: pl.Tile[[16, 512], pl.BF16] = pl.tile.cast(wide, target_type=pl.BF16, mode="rint")
        done: pl.Tensor[[16, 512], pl.BF16] = pl.tile.store(again, [0, 0], out)
        return done
