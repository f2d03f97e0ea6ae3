# Indexer scores: ReLU of INT32 products, weights of the heads, scale.
import pypto.language as pl


@pl.program
class IndexerScore:
    @pl.function(type=pl.FunctionType.InCore)
    def indexer_score(
        self,
        acc: pl.Tensor[[16, 128], pl.INT32],
        w: pl.Tensor[[16, 1], pl.FP32],
        ks: pl.Tensor[[1, 128], pl.FP32],
        score: pl.Out[pl.Tensor[[1, 128], pl.FP32]],
    ) -> pl.Tensor[[1, 128], pl.FP32]:
        acc_t = pl.load(acc, [0, 0], [16, 128])
        w_t = pl.load(w, [0, 0], [16, 1])
        ks_t = pl.load(ks, [0, 0], [1, 128])
        f = pl.cast(acc_t, target_type=pl.FP32)
        zero = pl.tile.full([16, 128], pl.FP32, 0.0)
        r = pl.maximum(f, zero)
        weighted = pl.row_expand_mul(r, w_t)
        total = pl.col_sum(weighted)
        score_t = pl.mul(pl.col_expand_mul(total, ks_t), 0.0883883476)
        score_out = pl.store(score_t, [0, 0], score)
        return score_out
