# Per-row INT8 quantisation of an FP32 activation.
import pypto.language as pl


@pl.program
class QuantInt8:
    @pl.function(type=pl.FunctionType.InCore)
    def quant_int8(
        self,
        x: pl.Tensor[[16, 256], pl.FP32],
        q: pl.Out[pl.Tensor[[16, 256], pl.INT8]],
        scale: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[16, 256], pl.INT8], pl.Tensor[[16, 1], pl.FP32]]:
        x_t = pl.load(x, [0, 0], [16, 256])
        tmp = pl.tile.create([16, 256], pl.FP32)
        amax = pl.reshape(pl.row_max(pl.abs(x_t), tmp), [1, 16])
        safe = pl.maximum(amax, 1e-4)
        inv = pl.div(pl.tile.full([1, 16], pl.FP32, 127.0), safe)
        scaled = pl.row_expand_mul(x_t, pl.reshape(inv, [16, 1]))
        i = pl.cast(scaled, target_type=pl.INT32, mode="rint")
        h = pl.cast(i, target_type=pl.FP16, mode="round")
        q_t = pl.cast(h, target_type=pl.INT8, mode="trunc")
        scale_t = pl.reshape(pl.mul(safe, 0.007874015748031496), [16, 1])
        q_out = pl.store(q_t, [0, 0], q)
        scale_out = pl.store(scale_t, [0, 0], scale)
        return q_out, scale_out
