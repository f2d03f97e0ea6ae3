# Block number, offset and slot of token positions in a paged cache, in FP32.
import pypto.language as pl


@pl.program
class BlockPlan:
    @pl.function(type=pl.FunctionType.InCore)
    def block_plan(
        self,
        block: pl.Out[pl.Tensor[[1, 512], pl.INT32]],
        slot: pl.Out[pl.Tensor[[1, 512], pl.INT32]],
    ) -> tuple[pl.Tensor[[1, 512], pl.INT32], pl.Tensor[[1, 512], pl.INT32]]:
        pos = pl.tile.ci(0, [1, 512], dtype=pl.INT32)
        pos_f = pl.cast(pos, target_type=pl.FP32)
        scaled = pl.mul(pos_f, 0.0078125)
        block_t = pl.cast(scaled, target_type=pl.INT32, mode="trunc")
        block_f = pl.cast(block_t, target_type=pl.FP32)
        offset = pl.sub(pos_f, pl.mul(block_f, 128.0))
        base = pl.mul(block_f, 256.0)
        slot_t = pl.cast(pl.add(base, offset), target_type=pl.INT32)
        block_out = pl.store(block_t, [0, 0], block)
        slot_out = pl.store(slot_t, [0, 0], slot)
        return block_out, slot_out
