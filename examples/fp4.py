# FP4 (E2M1) weights from FP32: there is no direct conversion, the road goes through BF16 (A5 only).
import pypto.language as pl


@pl.program
class ToFp4:
    @pl.function(type=pl.FunctionType.InCore)
    def to_fp4(
        self,
        w: pl.Tensor[[64, 128], pl.FP32],
        out: pl.Out[pl.Tensor[[64, 128], pl.FP4]],
    ) -> pl.Tensor[[64, 128], pl.FP4]:
        t: pl.Tile[[64, 128], pl.FP32] = pl.tile.load(w, [0, 0], [64, 128])
        q: pl.Tile[[64, 128], pl.FP4] = pl.tile.cast(t, target_type=pl.FP4, mode="round")
        stored: pl.Tensor[[64, 128], pl.FP4] = pl.tile.store(q, [0, 0], out)
        return stored
