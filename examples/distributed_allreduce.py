# Data-parallel gradients: every rank stages its own, all take the mean. The mode is left to the cost model.
# Lowering replaces the collective by notify, wait and data movement; on a2a3 a ring from five ranks on.
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
ROUNDS = pl.dynamic("ROUNDS")


@pl.program
class MeanGradient:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        grad: pl.Tensor[[16, 2500], pl.FP32],
        window: pl.InOut[pld.DistributedTensor[[16, 2500], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[ROUNDS, NR], pl.INT32]],
        inv_ranks: pl.Scalar[pl.FP32],
        mean: pl.Out[pl.Tensor[[16, 2500], pl.FP32]],
    ) -> pl.Tensor[[16, 2500], pl.FP32]:
        for i in pl.range(16):
            part: pl.Tile[[1, 2500], pl.FP32] = pl.tile.load(grad, [i, 0], [1, 2500])
            pl.tile.store(part, [i, 0], window)
        total = pld.tensor.allreduce(window, signal, op=pld.ReduceOp.Sum, mode="auto")
        for i, (mean_i,) in pl.range(16, init_values=(mean,)):
            row: pl.Tile[[1, 2500], pl.FP32] = pl.tile.load(total, [i, 0], [1, 2500])
            scaled: pl.Tile[[1, 2500], pl.FP32] = pl.tile.muls(row, inv_ranks)
            mean_out = pl.yield_(pl.tile.store(scaled, [i, 0], mean_i))
        return mean_out
