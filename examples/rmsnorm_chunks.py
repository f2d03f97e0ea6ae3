# RMS normalisation of long rows in four chunks of columns: the sum of squares first, then the scaling.
import pypto.language as pl


@pl.program
class RmsnormChunks:
    @pl.function(type=pl.FunctionType.InCore)
    def rmsnorm_chunks(
        self,
        x: pl.Tensor[[16, 1024], pl.BF16],
        gamma: pl.Tensor[[1, 1024], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 1024], pl.BF16]],
    ) -> pl.Tensor[[16, 1024], pl.BF16]:
        tmp = pl.tile.create([16, 256], pl.FP32)
        zero = pl.tile.full([16, 1], pl.FP32, 0.0)
        for i, (total,) in pl.range(4, init_values=(zero,)):
            x_t = pl.load(x, [0, i * 256], [16, 256])
            xf = pl.cast(x_t, target_type=pl.FP32)
            part = pl.row_sum(pl.mul(xf, xf), tmp)
            more = pl.add(total, part)
            squares = pl.yield_(more)
        root = pl.rsqrt(pl.add(pl.div(squares, 1024.0), 1e-6))
        for j, (y_in,) in pl.range(4, init_values=(y,)):
            again = pl.cast(pl.load(x, [0, j * 256], [16, 256]), target_type=pl.FP32)
            g_t = pl.load(gamma, [0, j * 256], [1, 256])
            scaled = pl.col_expand_mul(pl.row_expand_mul(again, root), g_t)
            y_t = pl.cast(scaled, target_type=pl.BF16, mode="rint")
            y_next = pl.store(y_t, [0, j * 256], y_in)
            y_out = pl.yield_(y_next)
        return y_out
