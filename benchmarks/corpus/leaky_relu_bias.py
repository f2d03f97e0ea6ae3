# Bias and leaky ReLU of an accumulator.
import pypto.language as pl


@pl.program
class LeakyReluBias:
    @pl.function(type=pl.FunctionType.InCore)
    def leaky_relu_bias(
        self,
        acc: pl.Tensor[[16, 64], pl.FP32],
        bias: pl.Tensor[[1, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
    ) -> pl.Tensor[[16, 64], pl.BF16]:
        acc_t = pl.load(acc, [0, 0], [16, 64])
        bias_t = pl.load(bias, [0, 0], [1, 64])
        b = pl.col_expand(acc_t, bias_t)
        s = pl.add(acc_t, b)
        small = pl.mul(s, 0.01)
        y_t = pl.cast(pl.maximum(s, small), target_type=pl.BF16, mode="rint")
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
