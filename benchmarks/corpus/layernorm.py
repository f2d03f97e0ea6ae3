# Layer normalisation with weight and bias.
import pypto.language as pl


@pl.program
class Layernorm:
    @pl.function(type=pl.FunctionType.InCore)
    def layernorm(
        self,
        x: pl.Tensor[[16, 256], pl.BF16],
        gamma: pl.Tensor[[1, 256], pl.FP32],
        beta: pl.Tensor[[1, 256], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 256], pl.BF16]],
    ) -> pl.Tensor[[16, 256], pl.BF16]:
        x_t = pl.load(x, [0, 0], [16, 256])
        gamma_t = pl.load(gamma, [0, 0], [1, 256])
        beta_t = pl.load(beta, [0, 0], [1, 256])
        xf = pl.cast(x_t, target_type=pl.FP32)
        tmp = pl.tile.create([16, 256], pl.FP32)
        mean = pl.div(pl.row_sum(xf, tmp), 256.0)
        centred = pl.row_expand_sub(xf, mean)
        sq = pl.mul(centred, centred)
        var = pl.div(pl.row_sum(sq, tmp), 256.0)
        root = pl.sqrt(pl.add(var, 1e-5))
        normed = pl.row_expand_div(centred, root)
        weighted = pl.col_expand_mul(normed, gamma_t)
        shifted = pl.col_expand_add(weighted, beta_t)
        y_t = pl.cast(shifted, target_type=pl.BF16, mode="rint")
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
