# Rotation of the two halves of BF16 rows.
import pypto.language as pl


@pl.program
class RopeHalves:
    @pl.function(type=pl.FunctionType.InCore)
    def rope_halves(
        self,
        x: pl.Tensor[[16, 64], pl.BF16],
        cos: pl.Tensor[[16, 64], pl.BF16],
        sin: pl.Tensor[[16, 64], pl.BF16],
        y: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
    ) -> pl.Tensor[[16, 64], pl.BF16]:
        x_t = pl.load(x, [0, 0], [16, 64])
        cos_t = pl.load(cos, [0, 0], [16, 64])
        sin_t = pl.load(sin, [0, 0], [16, 64])
        lo = pl.cast(pl.slice(x_t, [16, 32], [0, 0]), target_type=pl.FP32)
        hi = pl.cast(pl.slice(x_t, [16, 32], [0, 32]), target_type=pl.FP32)
        c = pl.cast(pl.slice(cos_t, [16, 32], [0, 0]), target_type=pl.FP32)
        s = pl.cast(pl.slice(sin_t, [16, 32], [0, 0]), target_type=pl.FP32)
        c2 = pl.cast(pl.slice(cos_t, [16, 32], [0, 32]), target_type=pl.FP32)
        s2 = pl.cast(pl.slice(sin_t, [16, 32], [0, 32]), target_type=pl.FP32)
        left = pl.sub(pl.mul(lo, c), pl.mul(hi, s))
        right = pl.add(pl.mul(hi, c2), pl.mul(lo, s2))
        y_t = pl.tile.concat(pl.cast(left, target_type=pl.BF16), pl.cast(right, target_type=pl.BF16))
        y_out = pl.store(y_t, [0, 0], y)
        return y_out
