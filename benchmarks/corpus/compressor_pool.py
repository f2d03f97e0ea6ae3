# Four positions pooled with softmax weights, channel by channel.
import pypto.language as pl


@pl.program
class CompressorPool:
    @pl.function(type=pl.FunctionType.InCore)
    def compressor_pool(
        self,
        s0: pl.Tensor[[8, 64], pl.FP32],
        s1: pl.Tensor[[8, 64], pl.FP32],
        s2: pl.Tensor[[8, 64], pl.FP32],
        s3: pl.Tensor[[8, 64], pl.FP32],
        v0: pl.Tensor[[8, 64], pl.FP32],
        v1: pl.Tensor[[8, 64], pl.FP32],
        v2: pl.Tensor[[8, 64], pl.FP32],
        v3: pl.Tensor[[8, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[8, 64], pl.BF16]],
    ) -> pl.Tensor[[8, 64], pl.BF16]:
        s0_t = pl.load(s0, [0, 0], [8, 64])
        s1_t = pl.load(s1, [0, 0], [8, 64])
        s2_t = pl.load(s2, [0, 0], [8, 64])
        s3_t = pl.load(s3, [0, 0], [8, 64])
        v0_t = pl.load(v0, [0, 0], [8, 64])
        v1_t = pl.load(v1, [0, 0], [8, 64])
        v2_t = pl.load(v2, [0, 0], [8, 64])
        v3_t = pl.load(v3, [0, 0], [8, 64])
        m = pl.maximum(pl.maximum(s0_t, s1_t), pl.maximum(s2_t, s3_t))
        e0 = pl.exp(pl.sub(s0_t, m))
        e1 = pl.exp(pl.sub(s1_t, m))
        e2 = pl.exp(pl.sub(s2_t, m))
        e3 = pl.exp(pl.sub(s3_t, m))
        total = pl.add(pl.add(e0, e1), pl.add(e2, e3))
        acc = pl.add(pl.add(pl.mul(e0, v0_t), pl.mul(e1, v1_t)), pl.add(pl.mul(e2, v2_t), pl.mul(e3, v3_t)))
        y_t = pl.cast(pl.mul(acc, pl.recip(total)), target_type=pl.BF16, mode="rint")
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
