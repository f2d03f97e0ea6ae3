# Compressed position, phase in the group and whether a group is complete, ratio 4.
import pypto.language as pl


@pl.program
class RatioIndex:
    @pl.function(type=pl.FunctionType.InCore)
    def ratio_index(
        self,
        group: pl.Out[pl.Tensor[[1, 128], pl.INT32]],
        phase: pl.Out[pl.Tensor[[1, 128], pl.FP32]],
        last: pl.Out[pl.Tensor[[1, 128], pl.INT32]],
    ) -> tuple[pl.Tensor[[1, 128], pl.INT32], pl.Tensor[[1, 128], pl.FP32], pl.Tensor[[1, 128], pl.INT32]]:
        pos = pl.tile.ci(0, [1, 128], dtype=pl.INT32)
        pf = pl.cast(pos, target_type=pl.FP32)
        g = pl.cast(pl.mul(pf, 0.25), target_type=pl.INT32, mode="trunc")
        gf = pl.cast(g, target_type=pl.FP32)
        phase_t = pl.sub(pf, pl.mul(gf, 4.0))
        group_t = pl.cast(gf, target_type=pl.INT32)
        next = pl.cast(pl.mul(pl.add(pf, 1.0), 0.25), target_type=pl.INT32, mode="trunc")
        last_t = pl.cast(pl.sub(pl.cast(next, target_type=pl.FP32), gf), target_type=pl.INT32)
        group_out = pl.store(group_t, [0, 0], group)
        phase_out = pl.store(phase_t, [0, 0], phase)
        last_out = pl.store(last_t, [0, 0], last)
        return group_out, phase_out, last_out
