# Attention over four blocks of keys: a running maximum, sum and output, normalised at the end.
import pypto.language as pl


@pl.program
class AttentionBlocks:
    @pl.function(type=pl.FunctionType.InCore)
    def attention_blocks(
        self,
        s: pl.Tensor[[16, 256], pl.FP32],
        pv: pl.Tensor[[64, 64], pl.FP32],
        o: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
    ) -> pl.Tensor[[16, 64], pl.BF16]:
        tmp = pl.tile.create([16, 64], pl.FP32)
        m_0 = pl.tile.full([16, 1], pl.FP32, -1e30)
        l_0 = pl.tile.full([16, 1], pl.FP32, 0.0)
        o_0 = pl.tile.full([16, 64], pl.FP32, 0.0)
        for i, (m, l, acc) in pl.range(4, init_values=(m_0, l_0, o_0)):
            s_t = pl.load(s, [0, i * 64], [16, 64])
            pv_t = pl.load(pv, [i * 16, 0], [16, 64])
            scaled = pl.mul(s_t, 0.125)
            m_new = pl.maximum(m, pl.row_max(scaled, tmp))
            alpha = pl.exp(pl.sub(m, m_new))
            e = pl.exp(pl.row_expand_sub(scaled, m_new))
            l_new = pl.add(pl.mul(l, alpha), pl.row_sum(e, tmp))
            weighted = pl.mul(pv_t, e)
            acc_new = pl.add(pl.row_expand_mul(acc, alpha), weighted)
            m_out, l_out, acc_out = pl.yield_(m_new, l_new, acc_new)
        normed = pl.row_expand_div(acc_out, l_out)
        o_t = pl.cast(normed, target_type=pl.BF16, mode="rint")
        o_out = pl.store(o_t, [0, 0], o)
        return o_out
