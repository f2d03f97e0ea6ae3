# Wrong: every rank waits for the slot to be taken before it has taken its own row, so all wait for each other.
# Cell 0 counts rows that have arrived, cell 1 counts rows that the neighbour has taken.
# `tilegg check examples/protocol_hang.py` names the waits and shows a schedule that ends there; nothing is emitted.
import pypto.language as pl
import pypto.language.distributed as pld


@pl.function(type=pl.FunctionType.InCore)
def shift(
    x: pl.Tensor[[2, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[2, 64], pl.FP32]],
    slot: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]],
    sig: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(slot)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right = (me + 1) % n
    left = (me + n - 1) % n
    for i in pl.range(2):
        row = pl.load(x, [i, 0], [1, 64])
        pld.tile.remote_store(row, slot, right, [0, 0])
        pld.system.notify(sig, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(sig, [1, 0], i + 1, cmp=pld.WaitCmp.Ge)
        pld.system.wait(sig, [0, 0], i + 1, cmp=pld.WaitCmp.Ge)
        got = pl.load(slot, [0, 0], [1, 64])
        y = pl.store(got, [i, 0], y)
        pld.system.notify(sig, left, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(sig, [1, 0], 2, cmp=pld.WaitCmp.Ge)
    pld.system.notify(sig, me, [0, 0], -2, op=pld.NotifyOp.AtomicAdd)
    pld.system.notify(sig, me, [1, 0], -2, op=pld.NotifyOp.AtomicAdd)
    return y
