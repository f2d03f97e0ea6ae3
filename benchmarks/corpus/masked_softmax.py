# Softmax under an additive mask of 0 and a large negative number.
import pypto.language as pl


@pl.program
class MaskedSoftmax:
    @pl.function(type=pl.FunctionType.InCore)
    def masked_softmax(
        self,
        s: pl.Tensor[[16, 128], pl.FP32],
        mask: pl.Tensor[[16, 128], pl.FP32],
        p: pl.Out[pl.Tensor[[16, 128], pl.BF16]],
    ) -> pl.Tensor[[16, 128], pl.BF16]:
        s_t = pl.load(s, [0, 0], [16, 128])
        mask_t = pl.load(mask, [0, 0], [16, 128])
        scaled = pl.mul(s_t, 0.125)
        bias = pl.mul(pl.sub(mask_t, 1.0), 3.0e38)
        biased = pl.add(scaled, bias)
        tmp = pl.tile.create([16, 128], pl.FP32)
        m = pl.row_max(biased, tmp)
        e = pl.exp(pl.row_expand_sub(biased, m))
        total = pl.row_sum(e, tmp)
        p_t = pl.cast(pl.row_expand_div(e, total), target_type=pl.BF16, mode="rint")
        p_out = pl.store(p_t, [0, 0], p)
        return p_out
