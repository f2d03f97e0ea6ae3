# Per-row INT8 quantisation of an activation: scale by 127 / amax, round, narrow.
# The chain FP32 -> INT32 (rint) -> FP16 -> INT8 is how such epilogues are written by hand.
import pypto.language as pl


@pl.program
class QuantInt8:
    @pl.function(type=pl.FunctionType.InCore)
    def quant(
        self,
        x: pl.Tensor[[64, 256], pl.BF16],
        q: pl.Out[pl.Tensor[[64, 256], pl.INT8]],
        scale: pl.Out[pl.Tensor[[64, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[64, 256], pl.INT8], pl.Tensor[[64, 1], pl.FP32]]:
        for i, (q_i, scale_i) in pl.range(0, 4, init_values=(q, scale)):
            raw: pl.Tile[[16, 256], pl.BF16] = pl.tile.load(x, [i * 16, 0], [16, 256])
            xf: pl.Tile[[16, 256], pl.FP32] = pl.tile.cast(raw, target_type=pl.FP32)
            magnitude: pl.Tile[[16, 256], pl.FP32] = pl.tile.abs(xf)
            tmp: pl.Tile[[16, 256], pl.FP32] = pl.tile.create([16, 256], pl.FP32)
            amax: pl.Tile[[16, 1], pl.FP32] = pl.tile.row_max(magnitude, tmp)
            amax_flat: pl.Tile[[1, 16], pl.FP32] = pl.tile.reshape(amax, [1, 16])
            safe: pl.Tile[[1, 16], pl.FP32] = pl.tile.maximums(amax_flat, 1e-4)
            limit: pl.Tile[[1, 16], pl.FP32] = pl.tile.full([1, 16], pl.FP32, 127.0)
            inv: pl.Tile[[1, 16], pl.FP32] = pl.tile.div(limit, safe)
            inv_col: pl.Tile[[16, 1], pl.FP32] = pl.tile.reshape(inv, [16, 1])
            scaled: pl.Tile[[16, 256], pl.FP32] = pl.tile.row_expand_mul(xf, inv_col)
            as_int: pl.Tile[[16, 256], pl.INT32] = pl.tile.cast(scaled, target_type=pl.INT32, mode="rint")
            as_half: pl.Tile[[16, 256], pl.FP16] = pl.tile.cast(as_int, target_type=pl.FP16, mode="round")
            narrow: pl.Tile[[16, 256], pl.INT8] = pl.tile.cast(as_half, target_type=pl.INT8, mode="trunc")
            step: pl.Tile[[1, 16], pl.FP32] = pl.tile.muls(safe, 0.007874015718698502)
            step_col: pl.Tile[[16, 1], pl.FP32] = pl.tile.reshape(step, [16, 1])
            q_next: pl.Tensor[[64, 256], pl.INT8] = pl.tile.store(narrow, [i * 16, 0], q_i)
            scale_next: pl.Tensor[[64, 1], pl.FP32] = pl.tile.store(step_col, [i * 16, 0], scale_i)
            q_out, scale_out = pl.yield_(q_next, scale_next)
        return q_out, scale_out
