# Residual plus a scaled branch with a low-rank correction.
import pypto.language as pl


@pl.program
class ScaledResidual:
    @pl.function(type=pl.FunctionType.InCore)
    def scaled_residual(
        self,
        x: pl.Tensor[[16, 128], pl.BF16],
        y: pl.Tensor[[16, 128], pl.FP32],
        z: pl.Tensor[[16, 128], pl.FP32],
        o: pl.Out[pl.Tensor[[16, 128], pl.BF16]],
    ) -> pl.Tensor[[16, 128], pl.BF16]:
        x_t = pl.load(x, [0, 0], [16, 128])
        y_t = pl.load(y, [0, 0], [16, 128])
        z_t = pl.load(z, [0, 0], [16, 128])
        xf = pl.cast(x_t, target_type=pl.FP32)
        branch = pl.add(y_t, pl.mul(z_t, 0.0625))
        o_t = pl.cast(pl.add(xf, pl.mul(branch, 0.22)), target_type=pl.BF16)
        o_out = pl.store(o_t, [0, 0], o)
        return o_out
