# Running best logit and token of a vocabulary block: a comparison (4: greater), then arithmetic selection of integers.
import pypto.language as pl


@pl.program
class GreedyTokens:
    @pl.function(type=pl.FunctionType.InCore)
    def greedy_tokens(
        self,
        x: pl.Tensor[[8, 128], pl.FP32],
        best: pl.Tensor[[8, 1], pl.FP32],
        token: pl.Tensor[[8, 1], pl.INT32],
        first: pl.Tensor[[8, 1], pl.INT32],
        best_new: pl.Out[pl.Tensor[[8, 1], pl.FP32]],
        token_new: pl.Out[pl.Tensor[[8, 1], pl.INT32]],
    ) -> tuple[pl.Tensor[[8, 1], pl.FP32], pl.Tensor[[8, 1], pl.INT32]]:
        x_t = pl.load(x, [0, 0], [8, 128])
        best_t = pl.load(best, [0, 0], [8, 1])
        token_t = pl.load(token, [0, 0], [8, 1])
        first_t = pl.load(first, [0, 0], [8, 1])
        tmp = pl.tile.create([8, 128], pl.FP32)
        top = pl.row_max(x_t, tmp)
        at = pl.tile.row_argmax(x_t, tmp)
        id = pl.add(at, first_t)
        better = pl.tile.cmp(top, best_t, cmp_type=4)
        ones = pl.tile.full([8, 1], pl.INT32, 1)
        zeros = pl.tile.full([8, 1], pl.INT32, 0)
        m = pl.tile.sel(better, ones, zeros, pl.tile.create([1, 32], pl.UINT8))
        token_new_t = pl.add(token_t, pl.mul(m, pl.sub(id, token_t)))
        best_new_t = pl.maximum(best_t, top)
        best_new_out = pl.store(best_new_t, [0, 0], best_new)
        token_new_out = pl.store(token_new_t, [0, 0], token_new)
        return best_new_out, token_new_out
