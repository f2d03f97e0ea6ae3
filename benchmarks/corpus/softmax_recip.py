# Softmax by the reciprocal of the sum, which is computed as a row vector.
import pypto.language as pl


@pl.program
class SoftmaxRecip:
    @pl.function(type=pl.FunctionType.InCore)
    def softmax_recip(
        self,
        s: pl.Tensor[[16, 64], pl.FP32],
        p: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
    ) -> pl.Tensor[[16, 64], pl.BF16]:
        s_t = pl.load(s, [0, 0], [16, 64])
        tmp = pl.tile.create([16, 64], pl.FP32)
        m = pl.row_max(s_t, tmp)
        e = pl.exp(pl.row_expand_sub(s_t, m))
        total = pl.reshape(pl.row_sum(e, tmp), [1, 16])
        inv = pl.reshape(pl.recip(total), [16, 1])
        p_t = pl.cast(pl.row_expand_mul(e, inv), target_type=pl.BF16, mode="rint")
        p_out = pl.store(p_t, [0, 0], p)
        return p_out
