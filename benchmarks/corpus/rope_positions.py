# Angles of a rotary embedding for eight positions.
import pypto.language as pl


@pl.program
class RopePositions:
    @pl.function(type=pl.FunctionType.InCore)
    def rope_positions(
        self,
        freq: pl.Tensor[[1, 32], pl.FP32],
        start: pl.Tensor[[8, 1], pl.INT32],
        angle: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        freq_t = pl.load(freq, [0, 0], [1, 32])
        start_t = pl.load(start, [0, 0], [8, 1])
        i = pl.reshape(pl.tile.ci(0, [1, 8], dtype=pl.INT32), [8, 1])
        pos = pl.add(start_t, i)
        pos_f = pl.cast(pos, target_type=pl.FP32)
        zeros = pl.tile.full([8, 32], pl.FP32, 0.0)
        spread = pl.row_expand(zeros, pos_f)
        angle_t = pl.col_expand_mul(spread, freq_t)
        angle_out = pl.store(angle_t, [0, 0], angle)
        return angle_out
