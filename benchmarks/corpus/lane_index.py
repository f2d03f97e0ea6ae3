# Lane and warp of thread numbers by integer division and remainder.
import pypto.language as pl


@pl.program
class LaneIndex:
    @pl.function(type=pl.FunctionType.InCore)
    def lane_index(
        self,
        warp: pl.Out[pl.Tensor[[1, 256], pl.INT32]],
        lane: pl.Out[pl.Tensor[[1, 256], pl.INT32]],
    ) -> tuple[pl.Tensor[[1, 256], pl.INT32], pl.Tensor[[1, 256], pl.INT32]]:
        t = pl.tile.ci(0, [1, 256], dtype=pl.INT32)
        warp_t = pl.tile.divs(t, 8)
        lane_t = pl.sub(t, pl.mul(warp_t, 8))
        warp_out = pl.store(warp_t, [0, 0], warp)
        lane_out = pl.store(lane_t, [0, 0], lane)
        return warp_out, lane_out
