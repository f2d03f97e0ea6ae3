# Source columns and signs of an interleaved rotation, from an arange in FP32.
import pypto.language as pl


@pl.program
class RopeIndex:
    @pl.function(type=pl.FunctionType.InCore)
    def rope_index(
        self,
        index: pl.Out[pl.Tensor[[1, 64], pl.INT32]],
        sign: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    ) -> tuple[pl.Tensor[[1, 64], pl.INT32], pl.Tensor[[1, 64], pl.FP32]]:
        j = pl.tile.ci(0, [1, 64], dtype=pl.INT32)
        jf = pl.cast(j, target_type=pl.FP32)
        half = pl.mul(jf, 0.5)
        pair = pl.cast(half, target_type=pl.INT32, mode="trunc")
        pair_f = pl.cast(pair, target_type=pl.FP32)
        parity = pl.sub(jf, pl.mul(pair_f, 2.0))
        sign_t = pl.sub(pl.mul(parity, 2.0), 1.0)
        index_t = pl.cast(pl.sub(jf, sign_t), target_type=pl.INT32)
        index_out = pl.store(index_t, [0, 0], index)
        sign_out = pl.store(sign_t, [0, 0], sign)
        return index_out, sign_out
