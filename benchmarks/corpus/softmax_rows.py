# Softmax of scaled scores, narrowed for the product with the values.
import pypto.language as pl


@pl.program
class SoftmaxRows:
    @pl.function(type=pl.FunctionType.InCore)
    def softmax_rows(
        self,
        s: pl.Tensor[[16, 128], pl.FP32],
        p: pl.Out[pl.Tensor[[16, 128], pl.BF16]],
    ) -> pl.Tensor[[16, 128], pl.BF16]:
        s_t = pl.load(s, [0, 0], [16, 128])
        scaled = pl.mul(s_t, 0.08838834764831845)
        tmp = pl.tile.create([16, 128], pl.FP32)
        m = pl.row_max(scaled, tmp)
        e = pl.exp(pl.row_expand_sub(scaled, m))
        total = pl.row_sum(e, tmp)
        normed = pl.row_expand_div(e, total)
        p_t = pl.cast(normed, target_type=pl.BF16, mode="rint")
        p_out = pl.store(p_t, [0, 0], p)
        return p_out
