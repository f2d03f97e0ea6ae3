"""Protocols that are correct: rings, butterflies, servers, mailboxes, stars, grids, pipelines, epochs in two banks."""

from __future__ import annotations

from collections.abc import Iterator

from .text import SIG, Case, arrive, barrier, case, gather, indent, notify, retire, wait

X = "x: pl.Tensor[[1, 8], pl.FP32]"
LEFT, RIGHT = "(me + n - 1) % n", "(me + 1) % n"
LOAD = "t = pl.load(x, [0, 0], [1, 8])\n"


def cases() -> Iterator[Case]:
    """Yield the family."""
    yield from _rings()
    yield from _butterflies()
    yield from _stars()
    yield from _servers()
    yield from _mailboxes()
    yield from _stages()
    yield from _grids()
    yield from _banks()
    yield from _sums()
    yield from _spread()
    yield from _lanes()
    yield from _flags()
    for dtype in ("FP32", "FP16", "INT32"):
        yield from _transposed(dtype)


def _rows(count: str) -> str:
    return f"data: pld.DistributedTensor[[{count}, 8], pl.FP32]"


def _cells(count: str, name: str = "sig") -> str:
    return f"{name}: pld.DistributedTensor[[{count}, 1], pl.INT32]"


def _push(peer: str, at: str, tile: str = "t", add: bool = False) -> str:
    atomic = ", atomic=pld.AtomicType.Add" if add else ""
    return f"pld.tile.remote_store({tile}, data, {peer}, [{at}, 0]{atomic})\n"


def _take(at: str, rows: str = "1", name: str = "g") -> str:
    return f"{name} = pl.load(data, [{at}, 0], [{rows}, 8])\n"


def _mine(cell: str, count: str = "1") -> str:
    return notify("me", cell, f"0 - {count}" if not count.isdigit() else f"-{count}")


def _data(name: str, params: str, body: str, ranks: tuple[int, ...]) -> Case:
    return case(name, params, indent(body), ranks, None, "data")


def _rings() -> Iterator[Case]:
    """Allgather around a ring: each step passes on the row that came last."""
    params = f"{X}, {_rows('NR')}, {_cells('NR')}"
    own = LOAD + "d = pl.store(t, [me, 0], data)\n"
    for name, to, at in (("right", RIGHT, "(me + n - k) % n"), ("left", LEFT, "(me + k) % n")):
        step = f"row = {at}\n" + _take("row") + _push(to, "row", "g")
        step += notify(to, "k, 0") + wait("k, 0") + _mine("k, 0")
        loop = "for k in pl.range(n - 1):\n" + indent(step)
        yield _data(f"allgather around a ring to the {name}", params, own + loop + _take("0", "2"), (2, 3, 4))
    put = f"pld.tensor.put(data, {RIGHT}, data, [row, 0], [row, 0], [1, 8], atomic=pld.AtomicType.None_)\n"
    step = "row = (me + n - k) % n\n" + put + notify(RIGHT, "k, 0") + wait("k, 0") + _mine("k, 0")
    yield _data("allgather around a ring by put", params, own + "for k in pl.range(n - 1):\n" + indent(step), (2, 3, 4))
    # One cell for all steps: the k-th credit of the one producer means the k-th row.
    step = step.replace("k, 0", "0, 0").replace(wait("0, 0") + _mine("0, 0"), wait("0, 0", "k + 1"))
    total = _mine("0, 0", "(n - 1)")
    yield _data("allgather around a ring on one cell", f"{X}, {_rows('NR')}, {_cells('1')}",
                own + "for k in pl.range(n - 1):\n" + indent(step) + total, (2, 3, 4))  # fmt: skip
    for turns in (2, 3):
        cell = _cells("2")
        pass_on = notify(RIGHT, "0, 0") + wait("0, 0", "i + 1")
        yield case(f"{turns} turns of all tokens", cell, indent(f"for i in pl.range({turns}):\n" + indent(pass_on)
                   + _mine("0, 0", str(turns))), (2, 3, 8))  # fmt: skip


def _butterflies() -> Iterator[Case]:
    """Partners at distance 1, 2, 4 swap and add: numbers of ranks that are powers of two."""
    partner = "other = me + {d} - 2 * {d} * ((me // {d}) % 2)\n"
    params = f"{X}, {_rows('3')}, {_cells('3')}"
    for n, rounds in ((2, 1), (4, 2), (8, 3)):
        text = "acc = pl.load(x, [0, 0], [1, 8])\n"
        for k in range(rounds):
            swap = partner.format(d=1 << k) + _push("other", str(k), "acc") + notify("other", f"{k}, 0")
            text += swap + wait(f"{k}, 0") + _take(str(k), name=f"g{k}") + f"acc = pl.add(acc, g{k})\n"
            text += _mine(f"{k}, 0")
        yield _data(f"butterfly sum on {n}", params, text, (n,))
        signals = "".join(
            partner.format(d=1 << k) + notify("other", f"{k}, 0") + wait(f"{k}, 0") + _mine(f"{k}, 0")
            for k in range(rounds)
        )
        yield case(f"butterfly barrier on {n}, twice", _cells("3"), indent(signals * 2), (n,))


def _stars() -> Iterator[Case]:
    """Rank 0 scatters rows and gathers results."""
    params = f"a: pl.Tensor[[NR, 8], pl.FP32], {_rows('NR')}, {_cells('2')}"
    give = "r = pl.load(a, [p, 0], [1, 8])\n" + _push("p", "0", "r") + notify("p", "0, 0")
    scatter = "if me == 0:\n" + indent("for p in pl.range(1, n):\n" + indent(give))
    work = "if me > 0:\n" + indent(
        wait("0, 0") + _take("0") + "h = pl.add(g, g)\n" + _push("0", "me", "h") + notify("0", "1, 0") + _mine("0, 0")
    )
    collect = "if me == 0:\n" + indent(
        wait("1, 0", "n - 1") + "for p in pl.range(1, n):\n" + indent(_take("p")) + _mine("1, 0", "(n - 1)")
    )
    yield _data("a star", params, scatter + work + collect, (2, 3, 8))
    yield _data("a star, twice", params, (scatter + work + collect) * 2, (2, 3, 4))
    each = f"a: pl.Tensor[[NR, 8], pl.FP32], {_rows('NR')}, {_cells('NR + 1')}"
    own = work.replace(notify("0", "1, 0"), notify("0", "me + 1, 0"))
    one = "if me == 0:\n" + indent(
        "for p in pl.range(1, n):\n" + indent(wait("p + 1, 0") + _take("p") + _mine("p + 1, 0"))
    )
    yield _data("a star with a cell for each leaf", each, scatter + own + one, (2, 3, 8))
    yield _data("a star drained from the last leaf", each,
                scatter + own + one.replace("pl.range(1, n)", "pl.range(n - 1, 0, -1)"), (2, 3, 4))  # fmt: skip


def _servers() -> Iterator[Case]:
    """Ranks ask rank 0 for a row; it answers in the order of the ranks, or in another."""
    params = f"a: pl.Tensor[[NR, 8], pl.FP32], {_rows('2')}, {_cells('NR + 1')}"
    ask = "if me > 0:\n" + indent(notify("0", "me, 0") + wait("0, 0") + _take("1") + _mine("0, 0"))
    for name, order in (("in order", "pl.range(1, n)"), ("backwards", "pl.range(n - 1, 0, -1)")):
        answer = "r = pl.load(a, [p, 0], [1, 8])\n" + _push("p", "1", "r") + notify("p", "0, 0")
        serve = f"if me == 0:\n    for p in {order}:\n" + indent(wait("p, 0") + answer + _mine("p, 0"), 8)
        yield _data(f"a server answers {name}", params, ask + serve, (2, 3, 8))
        yield _data(f"a server answers {name}, asked again", params, (ask + serve) * 2, (2, 3, 4))
    counted = "if me == 0:\n" + indent(
        wait("1, 0", "n - 1") + "for p in pl.range(1, n):\n" + indent(answer) + _mine("1, 0", "(n - 1)")
    )
    bulk = ask.replace(notify("0", "me, 0"), notify("0", "1, 0"))
    yield _data("a server that waits for all questions", params, bulk + counted, (2, 3, 8))


def _mailboxes() -> Iterator[Case]:
    """A slot for each sender: full and free credits, several letters, one after the other."""
    params = f"{X}, {_rows('NR')}, {_cells('NR', 'full')}, {_cells('NR', 'free')}"
    send = "for p in pl.range(n):\n    if p != me:\n" + indent(_push("p", "me") + notify("p", "me, 0", sig="full"), 8)
    receive = "for s in pl.range(n):\n    if s != me:\n" + indent(
        wait("s, 0", "i + 1", sig="full") + _take("s") + notify("s", "me, 0", sig="free"), 8
    )
    ready = "if i > 0:\n" + indent(gather("i", sig="free"))
    for letters in (1, 2, 3):
        loop = f"for i in pl.range({letters}):\n" + indent(ready + send + receive)
        drain = gather(str(letters), sig="free")
        end = drain + retire(str(letters), sig="full") + retire(str(letters), sig="free")
        yield _data(f"mailboxes for {letters} letters", params, LOAD + loop + end, (2, 3, 4))
    first = f"{X}, {_rows('NR')}, {_cells('NR', 'full')}, {_cells('NR', 'free')}"
    offered = arrive(sig="free") + "for i in pl.range(2):\n" + indent(gather("i + 1", sig="free") + send + receive)
    end = gather("3", sig="free") + retire("2", sig="full") + retire("3", sig="free")
    yield _data("mailboxes that are offered first", first, LOAD + offered + end, (2, 3, 4))


def _stages() -> Iterator[Case]:
    """A pipeline over all ranks: each takes from the left, adds its own row and hands on, with ``slots`` buffers."""
    for slots, items in ((1, 3), (2, 3), (2, 5), (3, 4)):
        params = f"{X}, {_rows(str(slots))}, {_cells('2')}"
        take = "if me > 0:\n" + indent(wait("0, 0", "i + 1") + _take(f"i % {slots}") + "acc = pl.add(t, g)\n"
                                      + notify("me - 1", "1, 0"))  # fmt: skip
        give = "if me < n - 1:\n" + indent(
            f"if i >= {slots}:\n    " + wait("1, 0", f"i - {slots - 1}") + _push("me + 1", f"i % {slots}", "acc")
            + notify("me + 1", "0, 0")
        )
        loop = f"for i in pl.range({items}):\n" + indent("acc = pl.add(t, t)\n" + take + give)
        end = "if me < n - 1:\n" + indent(wait("1, 0", str(items)) + _mine("1, 0", str(items)))
        end += "if me > 0:\n    " + _mine("0, 0", str(items))
        yield _data(f"stages with {slots} buffers, {items} items", params, LOAD + loop + end, (2, 3, 4))


def _grids() -> Iterator[Case]:
    """Four ranks as two by two: rows meet, then columns; eight as two by four."""
    for n, wide in ((4, 2), (8, 4), (8, 2)):
        body = f"row = me // {wide}\ncol = me % {wide}\n"
        along = f"for c in pl.range({wide}):\n    if c != col:\n        "
        body += along + notify(f"row * {wide} + c", "me, 0")
        body += along + wait(f"row * {wide} + c, 0") + along + _mine(f"row * {wide} + c, 0")
        across = f"for r in pl.range({n // wide}):\n    if r != row:\n        "
        body += across + notify(f"r * {wide} + col", "me, 0")
        body += across + wait(f"r * {wide} + col, 0") + across + _mine(f"r * {wide} + col, 0")
        yield case(f"{n // wide} by {wide} ranks", SIG, indent(body), (n,))
        params = f"{X}, {_rows('NR')}, {SIG}"
        push = along + _push(f"row * {wide} + c", "me") + "        " + notify(f"row * {wide} + c", "me, 0")
        use = along + wait(f"row * {wide} + c, 0") + "        " + _take(f"row * {wide} + c")
        end = along + _mine(f"row * {wide} + c, 0")
        yield _data(f"{n // wide} by {wide} ranks, rows exchanged", params,
                    LOAD + f"row = me // {wide}\ncol = me % {wide}\n" + push + use + end, (n,))  # fmt: skip


def _banks() -> Iterator[Case]:
    """Barriers on two banks of cells in turn: a bank is retired while the other is in use."""
    for rounds in (2, 3, 4):
        banks = f"{_cells('NR', 'even')}, {_cells('NR', 'odd')}"
        text = "".join(
            barrier("1", ("even", "odd")[i % 2]) + retire("1", sig=("even", "odd")[i % 2]) for i in range(rounds)
        )
        yield case(f"two banks of cells, {rounds} rounds", banks, indent(text), (2, 3, 8), None, "even")
        one = _cells("2 * NR")
        cell = "(i % 2) * n + {}, 0"
        loop = arrive(cell.format("me")) + gather("1", cell.format("s")) + retire("1", cell.format("s"))
        yield case(f"banks by parity, {rounds} rounds", one, indent(f"for i in pl.range({rounds}):\n" + indent(loop)),
                   (2, 3, 4))  # fmt: skip


def _sums() -> Iterator[Case]:
    """Everybody adds into everybody's row; integers add up whatever the order."""
    for dtype in ("FP32", "INT32"):
        params = f"x: pl.Tensor[[1, 8], pl.{dtype}], data: pld.DistributedTensor[[1, 8], pl.{dtype}], {SIG}"
        start = "t = pl.load(x, [0, 0], [1, 8])\nd = pl.store(t, [0, 0], data)\n" + barrier("1")
        adds = "for p in pl.range(n):\n    if p != me:\n        " + _push("p", "0", add=True)
        yield _data(f"sums of {dtype} by atomic adds", params, start + adds + barrier("2") + _take("0") + retire("2"),
                    (2, 3, 4))  # fmt: skip
        put = adds.replace(_push("p", "0", add=True),
                           "pld.tensor.put(data, p, x, atomic=pld.AtomicType.Add)\n")  # fmt: skip
        yield _data(f"sums of {dtype} by atomic put", params, start + put + barrier("2") + _take("0") + retire("2"),
                    (2, 3, 4))  # fmt: skip


def _spread() -> Iterator[Case]:
    """A value from a root that is not rank 0, along a chain or at once, and acknowledged."""
    params = f"{X}, {_rows('1')}, {_cells('2')}"
    for root in ("n - 1", "1"):
        chain = f"at = (me + n - {root}) % n\n" + LOAD + "if at > 0:\n" + indent(wait("0, 0") + _mine("0, 0"))
        hand = "if at == 0:\n    if n > 1:\n" + indent(_push(RIGHT, "0") + notify(RIGHT, "0, 0"), 8)
        passed = _take("0") + _push(RIGHT, "0", "g") + notify(RIGHT, "0, 0")
        hand += "if at > 0:\n    if at < n - 1:\n" + indent(passed, 8)
        yield _data(f"a chain from {root}", params, chain + hand, (2, 3, 8))
        flat = LOAD + f"if me == {root}:\n" + indent(
            "for p in pl.range(n):\n    if p != me:\n" + indent(_push("p", "0") + notify("p", "0, 0"), 8)
            + wait("1, 0", "n - 1") + _mine("1, 0", "(n - 1)")
        )
        flat += "else:\n" + indent(wait("0, 0") + _take("0") + _mine("0, 0") + notify(root, "1, 0"))
        yield _data(f"spread from {root}, acknowledged, twice", params, flat * 2, (2, 3, 4))


def _lanes() -> Iterator[Case]:
    """Blocks of one launch share the cells: every block gives and takes its credit."""
    for lanes in (2, 3):
        cell = _cells("1")
        text = f"for b in pl.spmd({lanes}):\n" + indent(notify(RIGHT, "0, 0")) + wait("0, 0", str(lanes))
        yield case(f"{lanes} lanes notify", cell, indent(text + _mine("0, 0", str(lanes))), (2, 3))
        own = f"for b in pl.spmd({lanes}):\n" + indent(notify(RIGHT, "b, 0") + wait("b, 0") + _mine("b, 0"))
        yield case(f"{lanes} lanes with a cell each", _cells(str(lanes)), indent(own), (2, 3))


def _flags() -> Iterator[Case]:
    """Flags that only grow, each set by one rank: epochs of one writer."""
    line = "sig: pld.DistributedTensor[[NR * 16, 1], pl.INT32]"
    for rounds in (1, 3):
        loop = f"for k in pl.range({rounds}):\n" + indent(
            arrive("me * 16, 0", value="k + 1", op="Set") + gather("k + 1", "s * 16, 0")
        )
        end = barrier("1", "done") + retire("1", sig="done")
        end += "for s in pl.range(n):\n    if s != me:\n        " + notify("me", "s * 16, 0", "0", "Set")
        yield case(f"flags that grow {rounds} times, cleared behind a barrier", f"{line}, {_cells('NR', 'done')}",
                   indent(loop + end), (2, 3))  # fmt: skip


def _transposed(dtype: str) -> Iterator[Case]:
    """Blocks of a matrix go to their places in the transposed order of ranks, whole or in halves, once or twice."""
    params = (
        f"x: pl.Tensor[[NR * 2, 16], pl.{dtype}], data: pld.DistributedTensor[[NR * 2, 16], pl.{dtype}], {SIG}"
    )
    for halves in (1, 2):
        rows = 2 // halves
        send = "".join(
            f"b{h} = pl.load(x, [p * 2 + {h * rows}, 0], [{rows}, 16])\n"
            f"pld.tile.remote_store(b{h}, data, p, [me * 2 + {h * rows}, 0])\n"
            for h in range(halves)
        )
        push = "for p in pl.range(n):\n" + indent(send)
        use = "for s in pl.range(n):\n    g = pl.load(data, [s * 2, 0], [2, 16])\n"
        name = f"blocks of {dtype} in {halves} part{'s' * (halves > 1)}"
        yield _data(f"{name}, exchanged", params, push + barrier("1") + use + retire("1"), (2, 3, 4))
        call = push + barrier("1") + use + barrier("2") + retire("2")
        yield _data(f"{name}, exchanged twice", params, call * 2, (2, 3))
