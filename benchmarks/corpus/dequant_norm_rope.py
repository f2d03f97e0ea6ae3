# Dequantised queries: RMS norm, rotation of the last columns, narrowed.
import pypto.language as pl


@pl.program
class DequantNormRope:
    @pl.function(type=pl.FunctionType.InCore)
    def dequant_norm_rope(
        self,
        acc: pl.Tensor[[8, 128], pl.INT32],
        ws: pl.Tensor[[1, 128], pl.FP32],
        xs: pl.Tensor[[8, 1], pl.FP32],
        gamma: pl.Tensor[[1, 128], pl.FP32],
        cos: pl.Tensor[[8, 32], pl.BF16],
        sin: pl.Tensor[[8, 32], pl.BF16],
        nope: pl.Out[pl.Tensor[[8, 64], pl.BF16]],
        rope: pl.Out[pl.Tensor[[8, 64], pl.BF16]],
    ) -> tuple[pl.Tensor[[8, 64], pl.BF16], pl.Tensor[[8, 64], pl.BF16]]:
        acc_t = pl.load(acc, [0, 0], [8, 128])
        ws_t = pl.load(ws, [0, 0], [1, 128])
        xs_t = pl.load(xs, [0, 0], [8, 1])
        gamma_t = pl.load(gamma, [0, 0], [1, 128])
        cos_t = pl.load(cos, [0, 0], [8, 32])
        sin_t = pl.load(sin, [0, 0], [8, 32])
        f = pl.cast(acc_t, target_type=pl.FP32, mode="none")
        q = pl.row_expand_mul(pl.col_expand_mul(f, ws_t), xs_t)
        tmp = pl.tile.create([8, 128], pl.FP32)
        mean = pl.mul(pl.row_sum(pl.mul(q, q), tmp), 0.0078125)
        inv = pl.recip(pl.sqrt(pl.add(mean, 1e-6)))
        n = pl.col_expand_mul(pl.row_expand_mul(q, inv), gamma_t)
        nope_t = pl.cast(pl.slice(n, [8, 64], [0, 0]), target_type=pl.BF16, mode="rint")
        lo = pl.slice(n, [8, 32], [0, 64])
        hi = pl.slice(n, [8, 32], [0, 96])
        c = pl.cast(cos_t, target_type=pl.FP32)
        s = pl.cast(sin_t, target_type=pl.FP32)
        left = pl.sub(pl.mul(lo, c), pl.mul(hi, s))
        right = pl.add(pl.mul(hi, c), pl.mul(lo, s))
        left_b = pl.cast(left, target_type=pl.BF16, mode="rint")
        right_b = pl.cast(right, target_type=pl.BF16, mode="rint")
        rope_t = pl.tile.concat(left_b, right_b)
        nope_out = pl.store(nope_t, [0, 0], nope)
        rope_out = pl.store(rope_t, [0, 0], rope)
        return nope_out, rope_out
