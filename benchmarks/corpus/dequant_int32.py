# INT32 accumulators scaled by row and column, narrowed.
import pypto.language as pl


@pl.program
class DequantInt32:
    @pl.function(type=pl.FunctionType.InCore)
    def dequant_int32(
        self,
        acc: pl.Tensor[[16, 256], pl.INT32],
        ws: pl.Tensor[[1, 256], pl.FP32],
        xs: pl.Tensor[[16, 1], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 256], pl.BF16]],
    ) -> pl.Tensor[[16, 256], pl.BF16]:
        acc_t = pl.load(acc, [0, 0], [16, 256])
        ws_t = pl.load(ws, [0, 0], [1, 256])
        xs_t = pl.load(xs, [0, 0], [16, 1])
        f = pl.cast(acc_t, target_type=pl.FP32, mode="none")
        w = pl.col_expand_mul(f, ws_t)
        y_t = pl.cast(pl.row_expand_mul(w, xs_t), target_type=pl.BF16, mode="rint")
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
