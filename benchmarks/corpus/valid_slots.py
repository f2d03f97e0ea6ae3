# Slots of a window, clipped to the first 2048, by rows.
import pypto.language as pl


@pl.program
class ValidSlots:
    @pl.function(type=pl.FunctionType.InCore)
    def valid_slots(
        self,
        start: pl.Tensor[[8, 1], pl.INT32],
        slot: pl.Out[pl.Tensor[[8, 128], pl.INT32]],
        live: pl.Out[pl.Tensor[[8, 128], pl.FP32]],
    ) -> tuple[pl.Tensor[[8, 128], pl.INT32], pl.Tensor[[8, 128], pl.FP32]]:
        start_t = pl.load(start, [0, 0], [8, 1])
        j = pl.cast(pl.tile.ci(0, [1, 128], dtype=pl.INT32), target_type=pl.FP32)
        zeros = pl.tile.full([8, 128], pl.FP32, 0.0)
        cols = pl.col_expand(zeros, j)
        base = pl.cast(start_t, target_type=pl.FP32)
        at = pl.row_expand_add(cols, base)
        clipped = pl.maximum(pl.minimum(at, 2047.0), 0.0)
        slot_t = pl.cast(clipped, target_type=pl.INT32)
        room = pl.add(pl.mul(at, -1.0), 2048.0)
        live_t = pl.maximum(pl.minimum(room, 1.0), 0.0)
        slot_out = pl.store(slot_t, [0, 0], slot)
        live_out = pl.store(live_t, [0, 0], live)
        return slot_out, live_out
