# One position rotated in place, widened again by a helper.
import pypto.language as pl


@pl.program
class RopeStep:
    @pl.function(type=pl.FunctionType.InCore)
    def rope_step(
        self,
        x: pl.Tensor[[1, 64], pl.BF16],
        cos: pl.Tensor[[1, 32], pl.BF16],
        sin: pl.Tensor[[1, 32], pl.BF16],
        y: pl.Out[pl.Tensor[[1, 64], pl.BF16]],
    ) -> pl.Tensor[[1, 64], pl.BF16]:
        x_t = pl.load(x, [0, 0], [1, 64])
        cos_t = pl.load(cos, [0, 0], [1, 32])
        sin_t = pl.load(sin, [0, 0], [1, 32])
        lo = pl.cast(pl.slice(x_t, [1, 32], [0, 0]), target_type=pl.FP32)
        hi = pl.cast(pl.slice(x_t, [1, 32], [0, 32]), target_type=pl.FP32)
        c = pl.cast(cos_t, target_type=pl.FP32)
        s = pl.cast(sin_t, target_type=pl.FP32)
        a = pl.cast(pl.sub(pl.mul(lo, c), pl.mul(hi, s)), target_type=pl.BF16)
        lo2 = pl.cast(pl.slice(x_t, [1, 32], [0, 0]), target_type=pl.FP32)
        hi2 = pl.cast(pl.slice(x_t, [1, 32], [0, 32]), target_type=pl.FP32)
        c2 = pl.cast(cos_t, target_type=pl.FP32)
        s2 = pl.cast(sin_t, target_type=pl.FP32)
        b = pl.cast(pl.add(pl.mul(hi2, c2), pl.mul(lo2, s2)), target_type=pl.BF16)
        y_t = pl.tile.concat(a, b)
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
