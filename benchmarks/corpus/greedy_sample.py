# Running best logit and token; the comparison is a clamped difference, the selection arithmetic.
import pypto.language as pl


@pl.program
class GreedySample:
    @pl.function(type=pl.FunctionType.InCore)
    def greedy_sample(
        self,
        x: pl.Tensor[[8, 128], pl.FP32],
        best: pl.Tensor[[8, 1], pl.FP32],
        token: pl.Tensor[[8, 1], pl.FP32],
        id: pl.Tensor[[8, 1], pl.FP32],
        best_new: pl.Out[pl.Tensor[[8, 1], pl.FP32]],
        token_new: pl.Out[pl.Tensor[[8, 1], pl.FP32]],
    ) -> tuple[pl.Tensor[[8, 1], pl.FP32], pl.Tensor[[8, 1], pl.FP32]]:
        x_t = pl.load(x, [0, 0], [8, 128])
        best_t = pl.load(best, [0, 0], [8, 1])
        token_t = pl.load(token, [0, 0], [8, 1])
        id_t = pl.load(id, [0, 0], [8, 1])
        tmp = pl.tile.create([8, 128], pl.FP32)
        top = pl.row_max(x_t, tmp)
        gain = pl.sub(top, best_t)
        m = pl.minimum(pl.maximum(pl.mul(gain, 1.0e38), 0.0), 1.0)
        best_new_t = pl.maximum(best_t, top)
        token_new_t = pl.add(token_t, pl.mul(m, pl.sub(id_t, token_t)))
        best_new_out = pl.store(best_new_t, [0, 0], best_new)
        token_new_out = pl.store(token_new_t, [0, 0], token_new)
        return best_new_out, token_new_out
