# Root-mean-square normalisation of BF16 rows, FP32 inside.
import pypto.language as pl


@pl.program
class RmsnormBf16:
    @pl.function(type=pl.FunctionType.InCore)
    def rmsnorm_bf16(
        self,
        x: pl.Tensor[[16, 512], pl.BF16],
        gamma: pl.Tensor[[1, 512], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 512], pl.BF16]],
    ) -> pl.Tensor[[16, 512], pl.BF16]:
        x_t = pl.load(x, [0, 0], [16, 512])
        gamma_t = pl.load(gamma, [0, 0], [1, 512])
        xf = pl.cast(x_t, target_type=pl.FP32)
        sq = pl.mul(xf, xf)
        tmp = pl.tile.create([16, 512], pl.FP32)
        total = pl.row_sum(sq, tmp)
        mean = pl.mul(total, 0.001953125)
        var = pl.add(mean, 1e-6)
        inv = pl.rsqrt(var)
        scaled = pl.row_expand_mul(xf, inv)
        weighted = pl.col_expand_mul(scaled, gamma_t)
        y_t = pl.cast(weighted, target_type=pl.BF16, mode="rint")
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
