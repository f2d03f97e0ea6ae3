# Four-bit codes of rotated keys: how many boundaries of the codebook each element exceeds (comparison 4: greater).
import pypto.language as pl


@pl.program
class CodebookLadder:
    @pl.function(type=pl.FunctionType.InCore)
    def codebook_ladder(
        self,
        k: pl.Tensor[[16, 128], pl.BF16],
        code: pl.Out[pl.Tensor[[16, 128], pl.INT8]],
    ) -> pl.Tensor[[16, 128], pl.INT8]:
        x = pl.cast(pl.load(k, [0, 0], [16, 128]), target_type=pl.FP32)
        tmp = pl.tile.create([1, 32], pl.UINT8)
        ones = pl.tile.full([16, 128], pl.FP32, 1.0)
        zeros = pl.tile.full([16, 128], pl.FP32, 0.0)
        over0 = pl.tile.sel(pl.tile.cmps(x, -2.4008, cmp_type=4), ones, zeros, tmp)
        over1 = pl.tile.sel(pl.tile.cmps(x, -1.8435, cmp_type=4), ones, zeros, tmp)
        sum1 = pl.add(over0, over1)
        over2 = pl.tile.sel(pl.tile.cmps(x, -1.4371, cmp_type=4), ones, zeros, tmp)
        sum2 = pl.add(sum1, over2)
        over3 = pl.tile.sel(pl.tile.cmps(x, -1.0993, cmp_type=4), ones, zeros, tmp)
        sum3 = pl.add(sum2, over3)
        over4 = pl.tile.sel(pl.tile.cmps(x, -0.7996, cmp_type=4), ones, zeros, tmp)
        sum4 = pl.add(sum3, over4)
        over5 = pl.tile.sel(pl.tile.cmps(x, -0.5224, cmp_type=4), ones, zeros, tmp)
        sum5 = pl.add(sum4, over5)
        over6 = pl.tile.sel(pl.tile.cmps(x, -0.2582, cmp_type=4), ones, zeros, tmp)
        sum6 = pl.add(sum5, over6)
        over7 = pl.tile.sel(pl.tile.cmps(x, 0.0, cmp_type=4), ones, zeros, tmp)
        sum7 = pl.add(sum6, over7)
        over8 = pl.tile.sel(pl.tile.cmps(x, 0.2582, cmp_type=4), ones, zeros, tmp)
        sum8 = pl.add(sum7, over8)
        over9 = pl.tile.sel(pl.tile.cmps(x, 0.5224, cmp_type=4), ones, zeros, tmp)
        sum9 = pl.add(sum8, over9)
        over10 = pl.tile.sel(pl.tile.cmps(x, 0.7996, cmp_type=4), ones, zeros, tmp)
        sum10 = pl.add(sum9, over10)
        over11 = pl.tile.sel(pl.tile.cmps(x, 1.0993, cmp_type=4), ones, zeros, tmp)
        sum11 = pl.add(sum10, over11)
        over12 = pl.tile.sel(pl.tile.cmps(x, 1.4371, cmp_type=4), ones, zeros, tmp)
        sum12 = pl.add(sum11, over12)
        over13 = pl.tile.sel(pl.tile.cmps(x, 1.8435, cmp_type=4), ones, zeros, tmp)
        sum13 = pl.add(sum12, over13)
        over14 = pl.tile.sel(pl.tile.cmps(x, 2.4008, cmp_type=4), ones, zeros, tmp)
        sum14 = pl.add(sum13, over14)
        half = pl.cast(sum14, target_type=pl.FP16, mode="rint")
        code_t = pl.cast(half, target_type=pl.INT8, mode="rint")
        code_out = pl.store(code_t, [0, 0], code)
        return code_out
