# The same with the row statistics as a row vector, 1 / sqrt in two steps.
import pypto.language as pl


@pl.program
class RmsnormFlat:
    @pl.function(type=pl.FunctionType.InCore)
    def rmsnorm_flat(
        self,
        x: pl.Tensor[[16, 256], pl.BF16],
        gamma: pl.Tensor[[1, 256], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 256], pl.BF16]],
    ) -> pl.Tensor[[16, 256], pl.BF16]:
        x_t = pl.load(x, [0, 0], [16, 256])
        gamma_t = pl.load(gamma, [0, 0], [1, 256])
        xf = pl.cast(x_t, target_type=pl.FP32)
        sq = pl.mul(xf, xf)
        tmp = pl.tile.create([16, 256], pl.FP32)
        total = pl.reshape(pl.row_sum(sq, tmp), [1, 16])
        mean = pl.div(total, 256.0)
        var = pl.add(mean, 1e-6)
        inv = pl.recip(pl.sqrt(var))
        inv_col = pl.reshape(inv, [16, 1])
        scaled = pl.row_expand_mul(xf, inv_col)
        weighted = pl.col_expand_mul(scaled, gamma_t)
        y_t = pl.cast(weighted, target_type=pl.BF16, mode="rint")
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
