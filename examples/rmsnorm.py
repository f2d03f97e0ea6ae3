# Root-mean-square normalisation of BF16 rows, FP32 inside.
import pypto.language as pl


@pl.program
class RmsNorm:
    @pl.function(type=pl.FunctionType.InCore)
    def rmsnorm(
        self,
        x: pl.Tensor[[16, 512], pl.BF16],
        gamma: pl.Tensor[[1, 512], pl.FP32],
        out: pl.Out[pl.Tensor[[16, 512], pl.BF16]],
    ) -> pl.Tensor[[16, 512], pl.BF16]:
        xb = pl.load(x, [0, 0], [16, 512])
        g = pl.load(gamma, [0, 0], [1, 512])
        xf = pl.cast(xb, target_type=pl.FP32)
        # Written as two helpers inlined one after the other: both widen and square the input again.
        xf2 = pl.cast(xb, target_type=pl.FP32)
        sq = pl.mul(xf2, xf2)
        tmp = pl.tile.create([16, 512], pl.FP32)
        total = pl.row_sum(sq, tmp)
        flat = pl.reshape(total, [1, 16])
        mean = pl.mul(flat, 0.001953125)
        eps = pl.add(mean, 1e-6)
        root = pl.sqrt(eps)
        inv = pl.recip(root)
        inv_col = pl.reshape(inv, [16, 1])
        scaled = pl.row_expand_mul(xf, inv_col)
        weighted = pl.col_expand_mul(scaled, g)
        narrow = pl.cast(weighted, target_type=pl.BF16, mode="rint")
        return pl.store(narrow, [0, 0], out)
