# Normalised activations rounded to BF16 for the next product, and kept in FP32 for the scale.
import pypto.language as pl


@pl.program
class QLoraRmsnorm:
    @pl.function(type=pl.FunctionType.InCore)
    def q_lora_rmsnorm(
        self,
        x: pl.Tensor[[16, 64], pl.BF16],
        gamma: pl.Tensor[[1, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
        amax: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[16, 64], pl.BF16], pl.Tensor[[16, 1], pl.FP32]]:
        x_t = pl.load(x, [0, 0], [16, 64])
        gamma_t = pl.load(gamma, [0, 0], [1, 64])
        xf = pl.cast(x_t, target_type=pl.FP32)
        sq = pl.mul(xf, xf)
        tmp = pl.tile.create([16, 64], pl.FP32)
        mean = pl.div(pl.row_sum(sq, tmp), 64.0)
        root = pl.sqrt(pl.add(mean, 1e-6))
        normed = pl.row_expand_div(xf, root)
        weighted = pl.col_expand_mul(normed, gamma_t)
        y_t = pl.cast(weighted, target_type=pl.BF16)
        seen = pl.cast(y_t, target_type=pl.FP32)
        amax_t = pl.row_max(pl.abs(seen), tmp)
        y_out = pl.store(y_t, [0, 0], y)
        amax_out = pl.store(amax_t, [0, 0], amax)
        return y_out, amax_out
