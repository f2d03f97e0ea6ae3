# The same from BF16, widened once for the maximum and once for the scaling.
import pypto.language as pl


@pl.program
class ActQuantBf16:
    @pl.function(type=pl.FunctionType.InCore)
    def act_quant_bf16(
        self,
        x: pl.Tensor[[16, 256], pl.BF16],
        q: pl.Out[pl.Tensor[[16, 256], pl.INT8]],
        scale: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[16, 256], pl.INT8], pl.Tensor[[16, 1], pl.FP32]]:
        x_t = pl.load(x, [0, 0], [16, 256])
        wide = pl.cast(x_t, target_type=pl.FP32)
        tmp = pl.tile.create([16, 256], pl.FP32)
        amax = pl.reshape(pl.row_max(pl.abs(wide), tmp), [1, 16])
        safe = pl.maximum(amax, 1e-4)
        inv = pl.mul(pl.recip(safe), 127.0)
        again = pl.cast(x_t, target_type=pl.FP32)
        scaled = pl.row_expand_mul(again, pl.reshape(inv, [16, 1]))
        i = pl.cast(scaled, target_type=pl.INT32, mode="rint")
        h = pl.cast(i, target_type=pl.FP16, mode="round")
        q_t = pl.cast(h, target_type=pl.INT8, mode="trunc")
        scale_t = pl.reshape(pl.div(safe, 127.0), [16, 1])
        q_out = pl.store(q_t, [0, 0], q)
        scale_out = pl.store(scale_t, [0, 0], scale)
        return q_out, scale_out
