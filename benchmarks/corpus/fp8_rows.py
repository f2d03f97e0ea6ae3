# Rows scaled to FP8 by their largest magnitude.
import pypto.language as pl


@pl.program
class Fp8Rows:
    @pl.function(type=pl.FunctionType.InCore)
    def fp8_rows(
        self,
        x: pl.Tensor[[16, 128], pl.BF16],
        q: pl.Out[pl.Tensor[[16, 128], pl.FP8E4M3FN]],
        scale: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[16, 128], pl.FP8E4M3FN], pl.Tensor[[16, 1], pl.FP32]]:
        x_t = pl.load(x, [0, 0], [16, 128])
        xf = pl.cast(x_t, target_type=pl.FP32)
        tmp = pl.tile.create([16, 128], pl.FP32)
        amax = pl.maximum(pl.row_max(pl.abs(xf), tmp), 1e-4)
        scale_t = pl.mul(amax, 0.002232142857142857)
        scaled = pl.row_expand_div(xf, scale_t)
        bounded = pl.maximum(pl.minimum(scaled, 448.0), -448.0)
        q_t = pl.cast(bounded, target_type=pl.FP8E4M3FN, mode="rint")
        q_out = pl.store(q_t, [0, 0], q)
        scale_out = pl.store(scale_t, [0, 0], scale)
        return q_out, scale_out
