# GELU by its sigmoid approximation.
import pypto.language as pl


@pl.program
class GeluSigmoid:
    @pl.function(type=pl.FunctionType.InCore)
    def gelu_sigmoid(
        self,
        x: pl.Tensor[[16, 128], pl.BF16],
        y: pl.Out[pl.Tensor[[16, 128], pl.BF16]],
    ) -> pl.Tensor[[16, 128], pl.BF16]:
        x_t = pl.load(x, [0, 0], [16, 128])
        xf = pl.cast(x_t, target_type=pl.FP32)
        e = pl.exp(pl.mul(xf, -1.702))
        sig = pl.recip(pl.add(e, 1.0))
        y_t = pl.cast(pl.mul(xf, sig), target_type=pl.BF16)
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
