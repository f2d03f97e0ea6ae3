# Softmax with a learned sink in the denominator only.
import pypto.language as pl


@pl.program
class SinkSoftmax:
    @pl.function(type=pl.FunctionType.InCore)
    def sink_softmax(
        self,
        s: pl.Tensor[[16, 64], pl.FP32],
        sink: pl.Tensor[[16, 1], pl.FP32],
        p: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
    ) -> pl.Tensor[[16, 64], pl.BF16]:
        s_t = pl.load(s, [0, 0], [16, 64])
        sink_t = pl.load(sink, [0, 0], [16, 1])
        scaled = pl.mul(s_t, 0.0441941738)
        tmp = pl.tile.create([16, 64], pl.FP32)
        m = pl.maximum(pl.row_max(scaled, tmp), sink_t)
        e = pl.exp(pl.row_expand_sub(scaled, m))
        total = pl.add(pl.row_sum(e, tmp), pl.exp(pl.sub(sink_t, m)))
        p_t = pl.cast(pl.row_expand_div(e, total), target_type=pl.BF16)
        p_out = pl.store(p_t, [0, 0], p)
        return p_out
