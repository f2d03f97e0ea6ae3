# Softmax of four BF16 blocks of scores under a shared maximum.
import pypto.language as pl


@pl.program
class SoftmaxBf16Scores:
    @pl.function(type=pl.FunctionType.InCore)
    def softmax_bf16_scores(
        self,
        s: pl.Tensor[[16, 64], pl.BF16],
        bias: pl.Tensor[[1, 64], pl.FP32],
        p: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
        lse: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[16, 64], pl.BF16], pl.Tensor[[16, 1], pl.FP32]]:
        s_t = pl.load(s, [0, 0], [16, 64])
        bias_t = pl.load(bias, [0, 0], [1, 64])
        s0 = pl.cast(pl.slice(s_t, [16, 32], [0, 0]), target_type=pl.FP32)
        s1 = pl.cast(pl.slice(s_t, [16, 32], [0, 32]), target_type=pl.FP32)
        a0 = pl.col_expand_add(pl.mul(s0, 0.125), pl.slice(bias_t, [1, 32], [0, 0]))
        a1 = pl.col_expand_add(pl.mul(s1, 0.125), pl.slice(bias_t, [1, 32], [0, 32]))
        tmp = pl.tile.create([16, 32], pl.FP32)
        m = pl.maximum(pl.row_max(a0, tmp), pl.row_max(a1, tmp))
        e0 = pl.exp(pl.row_expand_sub(a0, m))
        e1 = pl.exp(pl.row_expand_sub(a1, m))
        total = pl.add(pl.row_sum(e0, tmp), pl.row_sum(e1, tmp))
        p0 = pl.cast(pl.row_expand_div(e0, total), target_type=pl.BF16)
        p1 = pl.cast(pl.row_expand_div(e1, total), target_type=pl.BF16)
        p_t = pl.tile.concat(p0, p1)
        lse_t = pl.add(m, pl.log(total))
        p_out = pl.store(p_t, [0, 0], p)
        lse_out = pl.store(lse_t, [0, 0], lse)
        return p_out, lse_out
