# Two residual streams mixed with the layer's output, four rows of coefficients.
import pypto.language as pl


@pl.program
class HcPost:
    @pl.function(type=pl.FunctionType.InCore)
    def hc_post(
        self,
        x: pl.Tensor[[8, 64], pl.BF16],
        r0: pl.Tensor[[8, 64], pl.BF16],
        r1: pl.Tensor[[8, 64], pl.BF16],
        p: pl.Tensor[[8, 1], pl.FP32],
        c0: pl.Tensor[[8, 1], pl.FP32],
        c1: pl.Tensor[[8, 1], pl.FP32],
        y: pl.Out[pl.Tensor[[8, 64], pl.BF16]],
    ) -> pl.Tensor[[8, 64], pl.BF16]:
        x_t = pl.load(x, [0, 0], [8, 64])
        r0_t = pl.load(r0, [0, 0], [8, 64])
        r1_t = pl.load(r1, [0, 0], [8, 64])
        p_t = pl.load(p, [0, 0], [8, 1])
        c0_t = pl.load(c0, [0, 0], [8, 1])
        c1_t = pl.load(c1, [0, 0], [8, 1])
        xf = pl.cast(x_t, target_type=pl.FP32)
        a = pl.row_expand_mul(xf, p_t)
        b = pl.row_expand_mul(pl.cast(r0_t, target_type=pl.FP32), c0_t)
        c = pl.row_expand_mul(pl.cast(r1_t, target_type=pl.FP32), c1_t)
        y_t = pl.cast(pl.add(a, pl.add(b, c)), target_type=pl.BF16, mode="rint")
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
