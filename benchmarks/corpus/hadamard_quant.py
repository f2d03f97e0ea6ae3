# Rotated queries scaled by 1 / sqrt(64) and quantised to INT8.
import pypto.language as pl


@pl.program
class HadamardQuant:
    @pl.function(type=pl.FunctionType.InCore)
    def hadamard_quant(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        q: pl.Out[pl.Tensor[[64, 64], pl.INT8]],
        scale: pl.Out[pl.Tensor[[64, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[64, 64], pl.INT8], pl.Tensor[[64, 1], pl.FP32]]:
        x_t = pl.load(x, [0, 0], [64, 64])
        tmp = pl.tile.create([64, 64], pl.FP32)
        r = pl.mul(x_t, 0.125)
        narrow = pl.cast(r, target_type=pl.BF16)
        y = pl.cast(narrow, target_type=pl.FP32)
        amax = pl.maximum(pl.row_max(pl.abs(y), tmp), 1e-4)
        scale_t = pl.mul(amax, 0.007874015748031496)
        scaled = pl.row_expand_div(y, scale_t)
        i = pl.cast(scaled, target_type=pl.INT32, mode="rint")
        h = pl.cast(i, target_type=pl.FP16, mode="round")
        q_t = pl.cast(h, target_type=pl.INT8, mode="trunc")
        q_out = pl.store(q_t, [0, 0], q)
        scale_out = pl.store(scale_t, [0, 0], scale)
        return q_out, scale_out
