# Four-bit codes of rows by their range, stored as bytes.
import pypto.language as pl


@pl.program
class Quant4bit:
    @pl.function(type=pl.FunctionType.InCore)
    def quant_4bit(
        self,
        x: pl.Tensor[[16, 128], pl.FP32],
        q: pl.Out[pl.Tensor[[16, 128], pl.UINT8]],
        scale: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
        low: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[16, 128], pl.UINT8], pl.Tensor[[16, 1], pl.FP32], pl.Tensor[[16, 1], pl.FP32]]:
        x_t = pl.load(x, [0, 0], [16, 128])
        tmp = pl.tile.create([16, 128], pl.FP32)
        top = pl.row_max(x_t, tmp)
        low_t = pl.row_min(x_t, tmp)
        scale_t = pl.maximum(pl.mul(pl.sub(top, low_t), 0.06666666666666667), 1e-6)
        shifted = pl.row_expand_sub(x_t, low_t)
        code = pl.add(pl.row_expand_div(shifted, scale_t), 0.5)
        bounded = pl.minimum(pl.maximum(code, 0.0), 15.0)
        i = pl.cast(bounded, target_type=pl.INT32, mode="trunc")
        h = pl.cast(i, target_type=pl.FP16, mode="round")
        q_t = pl.cast(h, target_type=pl.UINT8, mode="trunc")
        q_out = pl.store(q_t, [0, 0], q)
        scale_out = pl.store(scale_t, [0, 0], scale)
        low_out = pl.store(low_t, [0, 0], low)
        return q_out, scale_out, low_out
