# Mixture of experts, one expert per rank. Dispatch: tokens go to their experts, sorted by expert: slots e * 32 to
# e * 32 + send[e] of x are those for expert e, and only those rows travel. Combine: results come back to the slots of
# their tokens, are weighted by the gates and added to the tokens.
# Rows that were not sent are undefined: each block is cut to what was received before anything is computed.
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
TOKENS = pl.dynamic("TOKENS")


@pl.program
class MoE:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[TOKENS, 64], pl.FP32],
        send: pl.Tensor[[NR], pl.INT32],
        gate: pl.Tensor[[TOKENS, 8], pl.FP32],
        weight: pl.Scalar[pl.FP32],
        inbox: pl.InOut[pld.DistributedTensor[[TOKENS, 64], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        outbox: pl.InOut[pl.Tensor[[TOKENS, 64], pl.FP32]],
        counts: pl.InOut[pl.Tensor[[NR], pl.INT32]],
        result: pl.InOut[pld.DistributedTensor[[TOKENS, 64], pl.FP32]],
        returned: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        y: pl.Out[pl.Tensor[[TOKENS, 64], pl.FP32]],
    ) -> pl.Tensor[[TOKENS, 64], pl.FP32]:
        ranks: pl.Scalar[pl.INT32] = pld.nranks(pld.get_comm_ctx(signal))
        tokens = pld.tensor.all_to_all_v(x, inbox, signal, send, arrived)
        for source in pl.range(ranks):
            got: pl.Scalar[pl.INT32] = pl.read(arrived, [source, 0])
            pl.write(counts, [source], got)
            if got > 0:
                block = pl.tile.load(tokens, [source * 32, 0], [32, 64], [got, 64])
                active = pl.tile.maximums(pl.tile.muls(block, weight), 0.0)
                pl.tile.store(active, [source * 32, 0], outbox)
        back = pld.tensor.all_to_all_v(outbox, result, signal, counts, returned)
        for expert in pl.range(ranks):
            home: pl.Scalar[pl.INT32] = pl.read(returned, [expert, 0])
            if home > 0:
                token = pl.tile.load(x, [expert * 32, 0], [32, 64], [home, 64])
                answer = pl.tile.load(back, [expert * 32, 0], [32, 64], [home, 64])
                gates = pl.tile.load(gate, [expert * 32, 0], [32, 8], [home, 8])
                scratch: pl.Tile[[32, 8], pl.FP32] = pl.tile.create([32, 8], dtype=pl.FP32)
                top = pl.tile.row_max(gates, scratch)
                pl.tile.store(pl.tile.add(token, pl.tile.row_expand_mul(answer, top)), [expert * 32, 0], y)
        return y
