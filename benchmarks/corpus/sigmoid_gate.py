# Gate of an expert router: sigmoid, bias for the choice, weights normalised by their sum.
import pypto.language as pl


@pl.program
class SigmoidGate:
    @pl.function(type=pl.FunctionType.InCore)
    def sigmoid_gate(
        self,
        x: pl.Tensor[[8, 64], pl.FP32],
        bias: pl.Tensor[[1, 64], pl.FP32],
        choice: pl.Out[pl.Tensor[[8, 64], pl.FP32]],
        w: pl.Out[pl.Tensor[[8, 64], pl.FP32]],
    ) -> tuple[pl.Tensor[[8, 64], pl.FP32], pl.Tensor[[8, 64], pl.FP32]]:
        x_t = pl.load(x, [0, 0], [8, 64])
        bias_t = pl.load(bias, [0, 0], [1, 64])
        minus = pl.mul(x_t, -1.0)
        scores = pl.recip(pl.add(pl.exp(minus), 1.0))
        choice_t = pl.col_expand_add(scores, bias_t)
        tmp = pl.tile.create([8, 64], pl.FP32)
        total = pl.row_sum(scores, tmp)
        normed = pl.row_expand_div(scores, total)
        w_t = pl.mul(normed, 2.5)
        choice_out = pl.store(choice_t, [0, 0], choice)
        w_out = pl.store(w_t, [0, 0], w)
        return choice_out, w_out
