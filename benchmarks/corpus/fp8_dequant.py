# FP8 rows widened, scaled and narrowed to BF16.
import pypto.language as pl


@pl.program
class Fp8Dequant:
    @pl.function(type=pl.FunctionType.InCore)
    def fp8_dequant(
        self,
        x: pl.Tensor[[16, 128], pl.FP8E4M3FN],
        xs: pl.Tensor[[16, 1], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 128], pl.BF16]],
    ) -> pl.Tensor[[16, 128], pl.BF16]:
        x_t = pl.load(x, [0, 0], [16, 128])
        xs_t = pl.load(xs, [0, 0], [16, 1])
        xf = pl.cast(x_t, target_type=pl.FP32)
        y_t = pl.cast(pl.row_expand_mul(xf, xs_t), target_type=pl.BF16, mode="rint")
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
