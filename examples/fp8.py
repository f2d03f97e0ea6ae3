# FP8 conversion with a per-tensor scale; FP8 exists on the A5 only.
import pypto.language as pl


@pl.program
class ToFp8:
    @pl.function(type=pl.FunctionType.InCore)
    def to_fp8(
        self,
        x: pl.Tensor[[32, 256], pl.BF16],
        scale: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[32, 256], pl.FP8E4M3FN]],
        back: pl.Out[pl.Tensor[[32, 256], pl.BF16]],
    ) -> tuple[pl.Tensor[[32, 256], pl.FP8E4M3FN], pl.Tensor[[32, 256], pl.BF16]]:
        t: pl.Tile[[32, 256], pl.BF16] = pl.tile.load(x, [0, 0], [32, 256])
        f: pl.Tile[[32, 256], pl.FP32] = pl.tile.cast(t, target_type=pl.FP32)
        s: pl.Tile[[32, 256], pl.FP32] = pl.tile.muls(f, scale)
        hi: pl.Tile[[32, 256], pl.FP32] = pl.tile.minimums(s, 448.0)
        lo: pl.Tile[[32, 256], pl.FP32] = pl.tile.maximums(hi, -448.0)
        q: pl.Tile[[32, 256], pl.FP8E4M3FN] = pl.tile.cast(lo, target_type=pl.FP8E4M3FN, mode="rint")
        # The value the consumer will see, for the error statistics.
        seen: pl.Tile[[32, 256], pl.BF16] = pl.tile.cast(q, target_type=pl.BF16, mode="rint")
        stored: pl.Tensor[[32, 256], pl.FP8E4M3FN] = pl.tile.store(q, [0, 0], out)
        seen_out: pl.Tensor[[32, 256], pl.BF16] = pl.tile.store(seen, [0, 0], back)
        return stored, seen_out
