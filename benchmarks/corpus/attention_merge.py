# Two partial attention results become one.
import pypto.language as pl


@pl.program
class AttentionMerge:
    @pl.function(type=pl.FunctionType.InCore)
    def attention_merge(
        self,
        o1: pl.Tensor[[16, 64], pl.FP32],
        o2: pl.Tensor[[16, 64], pl.FP32],
        m1: pl.Tensor[[16, 1], pl.FP32],
        m2: pl.Tensor[[16, 1], pl.FP32],
        l1: pl.Tensor[[16, 1], pl.FP32],
        l2: pl.Tensor[[16, 1], pl.FP32],
        o: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
    ) -> pl.Tensor[[16, 64], pl.BF16]:
        o1_t = pl.load(o1, [0, 0], [16, 64])
        o2_t = pl.load(o2, [0, 0], [16, 64])
        m1_t = pl.load(m1, [0, 0], [16, 1])
        m2_t = pl.load(m2, [0, 0], [16, 1])
        l1_t = pl.load(l1, [0, 0], [16, 1])
        l2_t = pl.load(l2, [0, 0], [16, 1])
        m = pl.maximum(m1_t, m2_t)
        a1 = pl.exp(pl.sub(m1_t, m))
        a2 = pl.exp(pl.sub(m2_t, m))
        l = pl.add(pl.mul(l1_t, a1), pl.mul(l2_t, a2))
        acc = pl.add(pl.row_expand_mul(o1_t, a1), pl.row_expand_mul(o2_t, a2))
        inv = pl.recip(l)
        o_t = pl.cast(pl.row_expand_mul(acc, inv), target_type=pl.BF16, mode="rint")
        o_out = pl.store(o_t, [0, 0], o)
        return o_out
