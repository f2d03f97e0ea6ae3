# Residual stream in BF16: sum rounded to BF16, norm of what was stored.
import pypto.language as pl


@pl.program
class ResidualNorm:
    @pl.function(type=pl.FunctionType.InCore)
    def residual_norm(
        self,
        x: pl.Tensor[[16, 128], pl.BF16],
        r: pl.Tensor[[16, 128], pl.BF16],
        gamma: pl.Tensor[[1, 128], pl.BF16],
        h: pl.Out[pl.Tensor[[16, 128], pl.BF16]],
        y: pl.Out[pl.Tensor[[16, 128], pl.BF16]],
    ) -> tuple[pl.Tensor[[16, 128], pl.BF16], pl.Tensor[[16, 128], pl.BF16]]:
        x_t = pl.load(x, [0, 0], [16, 128])
        r_t = pl.load(r, [0, 0], [16, 128])
        gamma_t = pl.load(gamma, [0, 0], [1, 128])
        xf = pl.cast(x_t, target_type=pl.FP32)
        rf = pl.cast(r_t, target_type=pl.FP32)
        h_t = pl.cast(pl.add(xf, rf), target_type=pl.BF16, mode="rint")
        hf = pl.cast(h_t, target_type=pl.FP32)
        tmp = pl.tile.create([16, 128], pl.FP32)
        mean = pl.div(pl.row_sum(pl.mul(hf, hf), tmp), 128.0)
        inv = pl.recip(pl.sqrt(pl.add(mean, 1e-5)))
        g = pl.col_expand(hf, pl.cast(gamma_t, target_type=pl.FP32))
        y_t = pl.cast(pl.mul(pl.row_expand_mul(hf, inv), g), target_type=pl.BF16, mode="rint")
        h_out = pl.store(h_t, [0, 0], h)
        y_out = pl.store(y_t, [0, 0], y)
        return h_out, y_out
