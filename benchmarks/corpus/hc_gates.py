# Gates of hyper-connections: sigmoid of scaled mixes, one of them doubled.
import pypto.language as pl


@pl.program
class HcGates:
    @pl.function(type=pl.FunctionType.InCore)
    def hc_gates(
        self,
        pre: pl.Tensor[[8, 8], pl.FP32],
        post: pl.Tensor[[8, 8], pl.FP32],
        base_pre: pl.Tensor[[1, 8], pl.FP32],
        base_post: pl.Tensor[[1, 8], pl.FP32],
        g: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
        h: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
    ) -> tuple[pl.Tensor[[8, 8], pl.FP32], pl.Tensor[[8, 8], pl.FP32]]:
        pre_t = pl.load(pre, [0, 0], [8, 8])
        post_t = pl.load(post, [0, 0], [8, 8])
        base_pre_t = pl.load(base_pre, [0, 0], [1, 8])
        base_post_t = pl.load(base_post, [0, 0], [1, 8])
        a = pl.col_expand_add(pl.mul(pre_t, 0.01), base_pre_t)
        g_t = pl.add(pl.recip(pl.add(pl.exp(pl.neg(a)), 1.0)), 1e-6)
        b = pl.col_expand_add(pl.mul(post_t, 0.01), base_post_t)
        sb = pl.recip(pl.add(pl.exp(pl.neg(b)), 1.0))
        h_t = pl.mul(sb, 2.0)
        g_out = pl.store(g_t, [0, 0], g)
        h_out = pl.store(h_t, [0, 0], h)
        return g_out, h_out
