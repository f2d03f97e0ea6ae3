# One step of attention with a running maximum and sum.
import pypto.language as pl


@pl.program
class OnlineSoftmax:
    @pl.function(type=pl.FunctionType.InCore)
    def online_softmax(
        self,
        s: pl.Tensor[[16, 64], pl.FP32],
        m_old: pl.Tensor[[16, 1], pl.FP32],
        l_old: pl.Tensor[[16, 1], pl.FP32],
        o_old: pl.Tensor[[16, 64], pl.FP32],
        pv: pl.Tensor[[16, 64], pl.FP32],
        p: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
        m: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
        l: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
        o: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> tuple[
        pl.Tensor[[16, 64], pl.BF16],
        pl.Tensor[[16, 1], pl.FP32],
        pl.Tensor[[16, 1], pl.FP32],
        pl.Tensor[[16, 64], pl.FP32],
    ]:
        s_t = pl.load(s, [0, 0], [16, 64])
        m_old_t = pl.load(m_old, [0, 0], [16, 1])
        l_old_t = pl.load(l_old, [0, 0], [16, 1])
        o_old_t = pl.load(o_old, [0, 0], [16, 64])
        pv_t = pl.load(pv, [0, 0], [16, 64])
        tmp = pl.tile.create([16, 64], pl.FP32)
        scaled = pl.mul(s_t, 0.08838834764831845)
        m_t = pl.maximum(m_old_t, pl.row_max(scaled, tmp))
        alpha = pl.exp(pl.sub(m_old_t, m_t))
        e = pl.exp(pl.row_expand_sub(scaled, m_t))
        l_t = pl.add(pl.mul(l_old_t, alpha), pl.row_sum(e, tmp))
        o_t = pl.add(pl.row_expand_mul(o_old_t, alpha), pv_t)
        p_t = pl.cast(e, target_type=pl.BF16)
        p_out = pl.store(p_t, [0, 0], p)
        m_out = pl.store(m_t, [0, 0], m)
        l_out = pl.store(l_t, [0, 0], l)
        o_out = pl.store(o_t, [0, 0], o)
        return p_out, m_out, l_out, o_out
