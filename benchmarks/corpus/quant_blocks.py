# INT8 quantisation by row of a long activation, block by block.
import pypto.language as pl


@pl.program
class QuantBlocks:
    @pl.function(type=pl.FunctionType.InCore)
    def quant_blocks(
        self,
        x: pl.Tensor[[64, 256], pl.BF16],
        q: pl.Out[pl.Tensor[[64, 256], pl.INT8]],
        scale: pl.Out[pl.Tensor[[64, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[64, 256], pl.INT8], pl.Tensor[[64, 1], pl.FP32]]:
        tmp = pl.tile.create([16, 256], pl.FP32)
        for i, (q_in, s_in) in pl.range(4, init_values=(q, scale)):
            x_t = pl.load(x, [i * 16, 0], [16, 256])
            xf = pl.cast(x_t, target_type=pl.FP32)
            amax = pl.row_max(pl.abs(xf), tmp)
            safe = pl.maximum(amax, 1e-4)
            inv = pl.mul(pl.recip(safe), 127.0)
            scaled = pl.row_expand_mul(xf, inv)
            n = pl.cast(scaled, target_type=pl.INT32, mode="rint")
            h = pl.cast(n, target_type=pl.FP16, mode="round")
            q_t = pl.cast(h, target_type=pl.INT8, mode="trunc")
            q_next = pl.store(q_t, [i * 16, 0], q_in)
            s_next = pl.store(pl.div(safe, 127.0), [i * 16, 0], s_in)
            q_out, s_out = pl.yield_(q_next, s_next)
        return q_out, s_out
