# Index table of a rotary embedding, computed in FP32 as kernels do: for column j the source column is
# j + 1 for even j and j - 1 for odd j, with sign -1 for even j.
import pypto.language as pl


@pl.program
class RopeIndex:
    @pl.function(type=pl.FunctionType.InCore)
    def rope_index(
        self,
        index: pl.Out[pl.Tensor[[1, 64], pl.INT32]],
        sign: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    ) -> tuple[pl.Tensor[[1, 64], pl.INT32], pl.Tensor[[1, 64], pl.FP32]]:
        j: pl.Tile[[1, 64], pl.INT32] = pl.tile.ci(0, [1, 64], dtype=pl.INT32)
        jf: pl.Tile[[1, 64], pl.FP32] = pl.tile.cast(j, target_type=pl.FP32)
        half: pl.Tile[[1, 64], pl.FP32] = pl.tile.muls(jf, 0.5)
        pair: pl.Tile[[1, 64], pl.INT32] = pl.tile.cast(half, target_type=pl.INT32, mode="trunc")
        pair_f: pl.Tile[[1, 64], pl.FP32] = pl.tile.cast(pair, target_type=pl.FP32)
        even: pl.Tile[[1, 64], pl.FP32] = pl.tile.muls(pair_f, 2.0)
        parity: pl.Tile[[1, 64], pl.FP32] = pl.tile.sub(jf, even)
        twice: pl.Tile[[1, 64], pl.FP32] = pl.tile.muls(parity, 2.0)
        step: pl.Tile[[1, 64], pl.FP32] = pl.tile.subs(twice, 1.0)
        partner: pl.Tile[[1, 64], pl.FP32] = pl.tile.sub(jf, step)
        partner_i: pl.Tile[[1, 64], pl.INT32] = pl.tile.cast(partner, target_type=pl.INT32)
        # Index arithmetic goes back and forth once more, as in kernels that reuse a float helper.
        again_f: pl.Tile[[1, 64], pl.FP32] = pl.tile.cast(partner_i, target_type=pl.FP32)
        again_i: pl.Tile[[1, 64], pl.INT32] = pl.tile.cast(again_f, target_type=pl.INT32)
        index_out: pl.Tensor[[1, 64], pl.INT32] = pl.tile.store(again_i, [0, 0], index)
        sign_out: pl.Tensor[[1, 64], pl.FP32] = pl.tile.store(step, [0, 0], sign)
        return index_out, sign_out
