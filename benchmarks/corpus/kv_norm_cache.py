# Compressed keys: norm, deliberate rounding to BF16, INT8 copy for the cache.
import pypto.language as pl


@pl.program
class KvNormCache:
    @pl.function(type=pl.FunctionType.InCore)
    def kv_norm_cache(
        self,
        x: pl.Tensor[[16, 64], pl.FP32],
        gamma: pl.Tensor[[1, 64], pl.FP32],
        k: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
        q: pl.Out[pl.Tensor[[16, 64], pl.INT8]],
        scale: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[16, 64], pl.BF16], pl.Tensor[[16, 64], pl.INT8], pl.Tensor[[16, 1], pl.FP32]]:
        x_t = pl.load(x, [0, 0], [16, 64])
        gamma_t = pl.load(gamma, [0, 0], [1, 64])
        tmp = pl.tile.create([16, 64], pl.FP32)
        mean = pl.mul(pl.row_sum(pl.mul(x_t, x_t), tmp), 0.015625)
        inv = pl.rsqrt(pl.add(mean, 1e-6))
        n = pl.col_expand_mul(pl.row_expand_mul(x_t, inv), gamma_t)
        k_t = pl.cast(n, target_type=pl.BF16, mode="rint")
        seen = pl.cast(k_t, target_type=pl.FP32)
        amax = pl.maximum(pl.row_max(pl.abs(seen), tmp), 1e-4)
        scale_t = pl.div(amax, 127.0)
        scaled = pl.row_expand_mul(seen, pl.recip(scale_t))
        i = pl.cast(scaled, target_type=pl.INT32, mode="rint")
        h = pl.cast(i, target_type=pl.FP16, mode="round")
        q_t = pl.cast(h, target_type=pl.INT8, mode="trunc")
        k_out = pl.store(k_t, [0, 0], k)
        q_out = pl.store(q_t, [0, 0], q)
        scale_out = pl.store(scale_t, [0, 0], scale)
        return k_out, q_out, scale_out
