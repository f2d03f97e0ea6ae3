# Log of the sum of exponentials and the log probabilities.
import pypto.language as pl


@pl.program
class Logsumexp:
    @pl.function(type=pl.FunctionType.InCore)
    def logsumexp(
        self,
        x: pl.Tensor[[8, 128], pl.FP32],
        logp: pl.Out[pl.Tensor[[8, 128], pl.FP32]],
    ) -> pl.Tensor[[8, 128], pl.FP32]:
        x_t = pl.load(x, [0, 0], [8, 128])
        tmp = pl.tile.create([8, 128], pl.FP32)
        m = pl.row_max(x_t, tmp)
        total = pl.row_sum(pl.exp(pl.row_expand_sub(x_t, m)), tmp)
        lse = pl.add(pl.log(total), m)
        logp_t = pl.row_expand_sub(x_t, lse)
        logp_out = pl.store(logp_t, [0, 0], logp)
        return logp_out
