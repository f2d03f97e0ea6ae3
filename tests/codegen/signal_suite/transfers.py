"""Data through windows: pushes, pulls, allreduce, pipelines, broadcast, exchange."""

from __future__ import annotations

from collections.abc import Iterator

from .text import SIG, Case, arrive, barrier, case, gather, indent, notify, retire, wait

ALL = (2, 3, 4)
XY = "x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]"
ROW = "data: pld.DistributedTensor[[1, 8], pl.FP32]"
ROWS = "data: pld.DistributedTensor[[NR, 8], pl.FP32]"
CELL = "sig: pld.DistributedTensor[[2, 1], pl.INT32]"
OUT = "y = pl.store({t}, [0, 0], y)\n"


def cases() -> Iterator[Case]:
    """Yield the family."""
    for store in ("remote_store", "put"):
        yield from _push(store)
    for load in ("remote_load", "get"):
        yield from _pull(load)
    for dtype, cols in (("FP32", 8), ("FP16", 16)):
        for chunks in (1, 3):
            yield from _allreduce(dtype, cols, chunks)
    yield from _gathered()
    for slots in (1, 2):
        yield from _pipeline(slots)
    yield from _broadcast()
    yield from _exchange()
    yield from _accumulate()


def _b(*parts: str, result: bool = True) -> str:
    return indent("".join(parts) + ("return y\n" if result else ""))


def _send(store: str, peer: str, at: str = "0, 0", mark: str = "") -> str:
    if store == "put":
        return f"pld.tensor.put(data, {peer}, x, [{at}], [0, 0], [1, 8], atomic=pld.AtomicType.None_){mark}\n"
    return f"pld.tile.remote_store(t, data, {peer}, [{at}]){mark}\n"


_LOAD = "t = pl.load(x, [0, 0], [1, 8])\n"
_USE = "got = pl.load(data, [0, 0], [1, 8])\n"


def _push(store: str) -> Iterator[Case]:
    """Everybody pushes a row to the right."""
    params = f"{XY}, {ROW}, {CELL}"
    send, credit = _send(store, "(me + 1) % n"), notify("(me + 1) % n", "0, 0")
    taken = notify("me", "0, 0", "-1")
    use = _USE + OUT.format(t="got")
    name = f"push by {store}"

    def made(what: str, word: str | None, *parts: str, ranks: tuple[int, ...] = ALL) -> Case:
        return case(f"{name}: {what}", params, _b(_LOAD, *parts), ranks, word, "data")

    yield made("right", None, send, credit, wait("0, 0"), use, taken, ranks=(2, 3, 8))
    yield made("retired before the use", None, send, credit, wait("0, 0"), taken, use)
    ack = notify("(me + n - 1) % n", "1, 0") + wait("1, 0") + notify("me", "1, 0", "-1")
    yield made("twice with acknowledgement", None, send, credit, wait("0, 0"), use, ack, send, credit,
               wait("0, 0", "2"), use.replace("got", "new"), notify("me", "0, 0", "-2"))  # fmt: skip
    yield made("notify first", "notify-before-data", credit.replace("\n", "!!\n"), send, wait("0, 0"), use, taken)
    marked = _USE.replace("\n", "!!\n") + OUT.format(t="got")
    yield made("use first", "use-before-wait", send, credit, marked, wait("0, 0"), taken)
    yield made("no wait", "unordered", send.replace("\n", "!!\n"), marked)
    yield made("no acknowledgement", "unordered", send, credit, wait("0, 0"), use.replace("8])\n", "8])!!\n", 1),
               send.replace("\n", "!!\n"), credit, wait("0, 0", "2"), use.replace("got", "new"),
               notify("me", "0, 0", "-2"))  # fmt: skip
    yield made("the wrong cell notified", "wrong-cell", send, notify("(me + 1) % n", "1, 0", mark="!!"),
               wait("0, 0", mark="!!"), use, taken)  # fmt: skip
    yield made("no notify", "unsatisfiable-wait", send, wait("0, 0", mark="!!"), use)
    yield made("not retired", "credit-leak", send, credit.replace("\n", "!!\n"), wait("0, 0"), use)


def _pull(load: str) -> Iterator[Case]:
    """Everybody stores its row, and reads those of all peers."""
    params = f"{XY}, {ROW}, z: pl.Tensor[[1, 8], pl.FP32], {SIG}"
    mine = _LOAD + "d = pl.store(t, [0, 0], data)\n"
    early = _LOAD + arrive(mark="!!") + "d = pl.store(t, [0, 0], data)\n"

    def reads(mark: str = "") -> str:
        if load == "get":
            return f"for p in pl.range(n):\n    pld.tensor.get(y, p, data){mark}\n"
        return f"for p in pl.range(n):\n    g = pld.tile.remote_load(data, p, [0, 0], [1, 8]){mark}\n"

    again = "u = pl.load(z, [0, 0], [1, 8])\ne = pl.store(u, [0, 0], data)!!\n"
    name = f"pull by {load}"

    def made(what: str, word: str | None, *parts: str, ranks: tuple[int, ...] = ALL) -> Case:
        return case(f"{name}: {what}", params, _b(*parts), ranks, word, "data")

    yield made("right", None, mine, barrier("1"), reads(), retire("1"), ranks=(2, 3, 8))
    overwrite = again.replace("!!", "")
    yield made("read, then overwritten after a barrier", None, mine, barrier("1"), reads(), barrier("2"), overwrite,
               retire("2"))  # fmt: skip
    yield made("the notify first", "notify-before-data", early, gather("1"), reads(), retire("1"))
    yield made("the reads first", "use-before-wait", mine, arrive(), reads("!!"), gather("1"), retire("1"))
    yield made("overwritten without a barrier", "unordered", mine, barrier("1"), reads("!!"), again, retire("1"))
    yield made("no barrier", "unordered", mine.replace("data)\n", "data)!!\n"), reads("!!"))
    half = "for s in pl.range(n):\n    if s == (me + 1) % n:\n        " + wait("s, 0")
    yield made("only one peer is waited for", "unordered", mine.replace("data)\n", "data)!!\n"), arrive(), half,
               reads("!!"), retire("1"), ranks=(3, 4))  # fmt: skip


def _allreduce(dtype: str, cols: int, chunks: int) -> Iterator[Case]:
    """A mesh allreduce in place, chunk by chunk."""
    width = cols * chunks
    params = f"x: pl.Tensor[[1, {width}], pl.{dtype}], data: pld.DistributedTensor[[1, {width}], pl.{dtype}], {SIG}"
    stage = f"t = pl.load(x, [0, 0], [1, {width}])\nd = pl.store(t, [0, 0], data)\n"
    reduce = (
        f"acc = pl.load(data, [0, c * {cols}], [1, {cols}])\nfor p in pl.range(n):\n    if p != me:\n"
        f"        g = pld.tile.remote_load(data, p, [0, c * {cols}], [1, {cols}])\n        acc = pl.add(acc, g)\n"
    )
    back = f"e = pl.store(acc, [0, c * {cols}], data)\n"
    name = f"mesh allreduce of {dtype} in {chunks}"

    def made(what: str, word: str | None, *parts: str, ranks: tuple[int, ...] = ALL) -> Case:
        return case(f"{name}: {what}", params, indent("".join(parts)), ranks, word, "data")

    def loop(*inner: str) -> str:
        return f"for c in pl.range({chunks}):\n" + indent("".join(inner))

    total = str(chunks + 1)
    meet = arrive() + gather("c + 2")
    yield made("right", None, stage, barrier("1"), loop(reduce, meet, back), retire(total), ranks=(2, 3, 8))
    call = stage + barrier("1") + loop(reduce, meet, back) + barrier(str(chunks + 2)) + retire(str(chunks + 2))
    yield made("called twice", None, call, call)
    load = reduce.replace("])\n        acc", "])!!\n        acc")
    yield made("no barrier before the result is stored", "unordered", stage, barrier("1"),
               loop(load, back.replace("\n", "!!\n")), retire("1"))  # fmt: skip
    yield made("too little retired", "credit-leak", stage, barrier("1"), loop(reduce, meet, back),
               retire(str(chunks), mark="!!"))  # fmt: skip
    yield made("the generation is not counted on", "stale-signal", stage, barrier("1"),
               loop(reduce, arrive(), gather("1", mark="!!"), back), retire(total))  # fmt: skip
    late = loop(reduce, gather("c + 2", mark="!!"), arrive(), back)
    yield made("waits before notifying", "deadlock", stage, barrier("1"), late, retire(total))
    some = loop(reduce, "if me < n - 1:!!\n", indent(meet), back)
    yield made("one rank skips the chunk barrier", "divergent-barrier", stage, barrier("1"), some, retire(total))


def _gathered() -> Iterator[Case]:
    """Allgather: each rank's row to all."""
    params = f"{XY}, {ROWS}, {SIG}"
    send = "for p in pl.range(n):\n    pld.tile.remote_store(t, data, p, [me, 0])\n"
    wrong = "for p in pl.range(n):\n    pld.tile.remote_store(t, data, p, [0, 0])!!\n"
    use = "for s in pl.range(n):\n    g = pl.load(data, [s, 0], [1, 8])\n"

    def made(what: str, word: str | None, *parts: str, ranks: tuple[int, ...] = ALL) -> Case:
        return case(f"allgather: {what}", params, _b(_LOAD, *parts), ranks, word, "data")

    yield made("right", None, send, barrier("1"), use, retire("1"), ranks=(2, 3, 8))
    yield made("twice with a second barrier", None, *[send, barrier("1"), use, barrier("2"), retire("2")] * 2)
    yield made("on demand", None, send, arrive(), "for s in pl.range(n):\n    if s != me:\n        " + wait("s, 0")
               + "    g = pl.load(data, [s, 0], [1, 8])\n", retire("1"))  # fmt: skip
    yield made("everybody writes row 0", "unordered", wrong, barrier("1"), use, retire("1"))
    yield made("twice without a second barrier", "unordered", send, barrier("1"), use.replace("8])\n", "8])!!\n"),
               retire("1"), send.replace("0])\n", "0])!!\n"), barrier("1"), use, retire("1"))  # fmt: skip
    yield made(
        "notifies before the pushes", "notify-before-data", arrive(mark="!!"), send, gather("1"), use, retire("1")
    )
    yield made("uses before the waits", "use-before-wait", send, arrive(), use.replace("8])\n", "8])!!\n"), gather("1"),
               retire("1"))  # fmt: skip
    inner = "for p in pl.range(n):\n    if p != me:\n        " + notify("p", "me, 0")
    inner += "        pld.tile.remote_store(t, data, p, [me, 0])\n"
    yield made("each notify before its push", "notify-before-data", inner.replace("Add)\n", "Add)!!\n"), gather("1"),
               use, retire("1"))  # fmt: skip


def _pipeline(slots: int) -> Iterator[Case]:
    """One producer, one consumer, ``slots`` buffers: cell 0 of the consumer counts data, cell 1 of the other slots."""
    params = f"{XY}, data: pld.DistributedTensor[[{slots}, 8], pl.FP32], {CELL}"
    name = f"pipeline of {slots}"

    def made(what: str, word: str | None, produce: str, consume: str) -> Case:
        end = f"if me == 0:\n{indent(produce)}else:\n{indent(consume)}"
        return case(f"{name}: {what}", params, _b(_LOAD, end), (2,), word, "data")

    def produce(*inner: str, done: str = "6") -> str:
        return "for i in pl.range(6):\n" + indent("".join(inner)) + notify("me", "1, 0", f"-{done}")

    def consume(*inner: str) -> str:
        return "for i in pl.range(6):\n" + indent("".join(inner)) + notify("me", "0, 0", "-6")

    free = f"if i >= {slots}:\n    " + wait("1, 0", f"i - {slots - 1}")
    push = f"pld.tile.remote_store(t, data, 1, [i % {slots}, 0])\n"
    full, ack = notify("1", "0, 0"), notify("0", "1, 0")
    take = f"g = pl.load(data, [i % {slots}, 0], [1, 8])\n"
    last = f"for k in pl.range({slots}):\n    " + wait("1, 0", f"{7 - slots} + k")
    right = consume(wait("0, 0", "i + 1"), take, ack)
    yield made(
        "right",
        None,
        produce(free, push, full).replace("pld.system.notify(sig, me", f"{last}pld.system.notify(sig, me"),
        right,
    )
    drained = produce(free, push, full).replace(
        "pld.system.notify(sig, me", f"{wait('1, 0', '6')}pld.system.notify(sig, me"
    )
    yield made("right, drained", None, drained, right)
    yield made("no wait for a free slot", "unordered", drained.replace(indent(free), "").replace("0])\n", "0])!!\n", 1),
               right.replace("8])\n", "8])!!\n"))  # fmt: skip
    yield made("freed before it is read", "unordered", drained.replace("0])\n", "0])!!\n", 1),
               consume(wait("0, 0", "i + 1"), ack, take.replace("\n", "!!\n")))  # fmt: skip
    yield made("full before it is written", "notify-before-data",
               drained.replace(push + "    " + full, full.replace("\n", "!!\n") + "    " + push),
               right)  # fmt: skip
    much = f"if i >= {slots}:\n    " + wait("1, 0", "i + 1")
    yield made("waits for one slot too many", "deadlock", produce(much.replace("Ge)\n", "Ge)!!\n"), push, full),
               right.replace("Ge)\n", "Ge)!!\n"))  # fmt: skip
    yield made("the consumer asks for one more", "unsatisfiable-wait", drained,
               consume(wait("0, 0", "i + 1"), take, ack) + wait("0, 0", "1", mark="!!"))  # fmt: skip


def _broadcast() -> Iterator[Case]:
    """The root stages, the others copy, the root stages again."""
    params = f"{XY}, {ROW}, z: pl.Tensor[[1, 8], pl.FP32], {SIG}"
    stage = "if me == 0:\n    t = pl.load(x, [0, 0], [1, 8])\n    d = pl.store(t, [0, 0], data)\n"
    copy = "if me != 0:\n    pld.tensor.get(y, 0, data)\n"
    again = "if me == 0:\n    u = pl.load(z, [0, 0], [1, 8])\n    e = pl.store(u, [0, 0], data)\n"

    def made(what: str, word: str | None, *parts: str, ranks: tuple[int, ...] = ALL) -> Case:
        return case(f"broadcast: {what}", params, _b(*parts), ranks, word, "data")

    yield made("right", None, stage, barrier("1"), copy, retire("1"), ranks=(2, 3, 8))
    yield made("staged again after a round", None, stage, barrier("1"), copy, barrier("2"), again, retire("2"))
    restage = again.replace("0], data)\n", "0], data)!!\n")
    read = copy.replace("data)\n", "data)!!\n")
    yield made("staged again at once", "unordered", stage, barrier("1"), read, restage, retire("1"))
    only = "if me == 0:\n" + indent(arrive("0, 0")) + "else:\n" + indent(wait("0, 0"))
    done = "if me != 0:\n    " + notify("me", "0, 0", "-1")
    yield made("the root alone notifies", None, stage, only, copy, done, ranks=(2, 3, 8))
    yield made("the root alone notifies, staged again", "unordered", stage, only, read, done, restage)
    early = "if me == 0:\n" + indent(arrive("0, 0", mark="!!")) + stage
    yield made("the root notifies first", "notify-before-data", early, "if me != 0:\n    " + wait("0, 0"), copy, done)
    missed = "if me == 0:\n    " + notify("1", "0, 0") + "else:\n    " + wait("0, 0", mark="!!")
    yield made("the root notifies one rank", "unsatisfiable-wait", stage, missed, copy, done, ranks=(3, 4))


def _exchange() -> Iterator[Case]:
    """All to all: row p of the input to row me of rank p."""
    params = f"a: pl.Tensor[[NR, 8], pl.FP32], {ROWS}, sig: pld.DistributedTensor[[NR, NR], pl.INT32]"
    send = (
        "for p in pl.range(n):\n    pld.tensor.put(data, p, a, [me, 0], [p, 0], [1, 8], atomic=pld.AtomicType.None_)\n"
    )
    meet = arrive("0, me") + gather("1", "0, s")
    use = "for s in pl.range(n):\n    g = pl.load(data, [s, 0], [1, 8])\n"
    done = retire("1", "0, s")

    def made(what: str, word: str | None, *parts: str, ranks: tuple[int, ...] = ALL) -> Case:
        return case(f"exchange: {what}", params, indent("".join(parts)), ranks, word, "data")

    yield made("right", None, send, meet, use, done, ranks=(2, 3, 8))
    ready = arrive("1, me") + gather("1", "1, s")
    yield made("ready first, twice", None, *[ready, send, meet, use, done, retire("1", "1, s")] * 2)
    yield made("twice, never ready", "unordered", send, meet, use.replace("8])\n", "8])!!\n"), done,
               send.replace("None_)\n", "None_)!!\n"), meet, use, done)  # fmt: skip
    yield made("rows and columns of the signal confused", "wrong-cell", send, arrive("0, me", mark="!!"),
               gather("1", "s, 0", mark="!!"), use, done, ranks=(3, 4))  # fmt: skip
    yield made("a shorter input", None, send, meet, done)


def _accumulate() -> Iterator[Case]:
    """Atomic adds into the root's window."""
    params = f"{XY}, {ROW}, {CELL}"
    zero = "if me == 0:\n    z = pl.tile.full([1, 8], dtype=pl.FP32, value=0.0)\n    d = pl.store(z, [0, 0], data)\n"
    zero = "if me == 0:\n    z = pl.load(x, [0, 0], [1, 8])\n    d = pl.store(z, [0, 0], data)\n"
    go = "if me == 0:\n" + indent(arrive("1, 0")) + "else:\n" + indent(wait("1, 0") + notify("me", "1, 0", "-1"))
    add = "if me != 0:\n    pld.tile.remote_store(t, data, 0, [0, 0], atomic=pld.AtomicType.Add)\n"
    done = "if me != 0:\n    " + notify("0", "0, 0") + "else:\n"
    use = indent(wait("0, 0", "n - 1") + _USE + notify("me", "0, 0", "1 - n"))

    def made(what: str, word: str | None, *parts: str, ranks: tuple[int, ...] = ALL) -> Case:
        return case(f"atomic adds: {what}", params, _b(_LOAD, *parts), ranks, word, "data")

    yield made("right", None, zero, go, add, done, use, ranks=(2, 3, 8))
    yield made("not awaited", "unordered", zero.replace("0], data)\n", "0], data)!!\n"),
               add.replace("Add)\n", "Add)!!\n"), done, use)  # fmt: skip
    plain = add.replace(", atomic=pld.AtomicType.Add)\n", ")!!\n")
    yield made("a store among them", "unordered", zero, go, plain, done, use, ranks=(3, 4))
    few = indent(wait("0, 0", "1") + _USE.replace("\n", "!!\n") + notify("me", "0, 0", "1 - n"))
    late = add.replace("Add)\n", "Add)!!\n")
    yield made("the root waits for one", "unordered", zero, go, late, done, few, ranks=(3, 4))
