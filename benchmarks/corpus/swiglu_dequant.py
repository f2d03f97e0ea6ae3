# Gate and up projections from INT32 accumulators, SiLU, product, narrowed.
import pypto.language as pl


@pl.program
class SwigluDequant:
    @pl.function(type=pl.FunctionType.InCore)
    def swiglu_dequant(
        self,
        gate: pl.Tensor[[8, 256], pl.INT32],
        up: pl.Tensor[[8, 256], pl.INT32],
        wg: pl.Tensor[[1, 256], pl.FP32],
        wu: pl.Tensor[[1, 256], pl.FP32],
        xs: pl.Tensor[[8, 1], pl.FP32],
        y: pl.Out[pl.Tensor[[8, 256], pl.BF16]],
    ) -> pl.Tensor[[8, 256], pl.BF16]:
        gate_t = pl.load(gate, [0, 0], [8, 256])
        up_t = pl.load(up, [0, 0], [8, 256])
        wg_t = pl.load(wg, [0, 0], [1, 256])
        wu_t = pl.load(wu, [0, 0], [1, 256])
        xs_t = pl.load(xs, [0, 0], [8, 1])
        gf = pl.cast(gate_t, target_type=pl.FP32, mode="none")
        uf = pl.cast(up_t, target_type=pl.FP32, mode="none")
        g = pl.row_expand_mul(pl.col_expand_mul(gf, wg_t), xs_t)
        u = pl.row_expand_mul(pl.col_expand_mul(uf, wu_t), xs_t)
        gc = pl.minimum(g, 10.0)
        uc = pl.maximum(pl.minimum(u, 10.0), -10.0)
        sig = pl.recip(pl.add(pl.exp(pl.neg(gc)), 1.0))
        y_t = pl.cast(pl.mul(pl.mul(gc, sig), uc), target_type=pl.BF16, mode="rint")
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
