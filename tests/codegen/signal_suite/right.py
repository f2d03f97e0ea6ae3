"""More programs: trees, halos, dissemination, calls, host programs, counts, columns; most of them correct."""

from __future__ import annotations

from collections.abc import Iterator

from .text import SIG, Case, arrive, barrier, case, gather, indent, notify, retire, wait

ALL = (2, 3, 4)
ROUNDS = "sig: pld.DistributedTensor[[4, 1], pl.INT32]"


def cases() -> Iterator[Case]:
    """Yield the family."""
    for dtype in ("FP32", "FP16", "INT8"):
        for steps in (1, 2, 4):
            yield from _halo(dtype, steps)
    yield from _dissemination()
    yield from _trees()
    for cols in (8, 16):
        yield from _columns(cols)
    yield from _counts()
    yield from _collectives()
    yield from _forms()


def _halo(dtype: str, steps: int) -> Iterator[Case]:
    """Neighbours on a ring swap rows: left cell and right cell, two buffers in turn."""
    cols = 32 if dtype == "INT8" else 16
    params = (
        f"x: pl.Tensor[[1, {cols}], pl.{dtype}], data: pld.DistributedTensor[[4, {cols}], pl.{dtype}], "
        "sig: pld.DistributedTensor[[2, 1], pl.INT32]"
    )
    left, right = "(me + n - 1) % n", "(me + 1) % n"

    def push(buffer: str, mark: str = "") -> str:
        return (
            f"pld.tile.remote_store(t, data, {right}, [{buffer} * 2, 0]){mark}\n"
            f"pld.tile.remote_store(t, data, {left}, [{buffer} * 2 + 1, 0]){mark}\n"
        )

    def use(buffer: str, mark: str = "") -> str:
        return f"g = pl.load(data, [{buffer} * 2, 0], [2, {cols}]){mark}\n"

    def made(what: str, word: str | None, buffer: str, body: str) -> Case:
        text = f"t = pl.load(x, [0, 0], [1, {cols}])\nfor i in pl.range({steps}):\n{indent(body)}" + done
        return case(f"halo of {dtype}, {steps} steps: {what}", params, indent(text), (3, 4), word, "data")

    done = notify("me", "0, 0", f"-{steps}") + notify("me", "1, 0", f"-{steps}")
    tell = notify(right, "0, 0") + notify(left, "1, 0")
    meet = tell + wait("0, 0", "i + 1") + wait("1, 0", "i + 1")
    yield made("two buffers", None, "i % 2", push("(i % 2)") + meet + use("(i % 2)"))
    if steps > 1:
        yield made("one buffer", "unordered", "0", push("0", "!!") + meet + use("0", "!!"))
    else:
        yield made(
            "one wait missing", "unordered", "0", push("0", "!!") + tell + wait("0, 0", "i + 1") + use("0", "!!")
        )


def _dissemination() -> Iterator[Case]:
    """A barrier of log2(n) rounds, a cell for each."""

    def rounds(count: int, mark: str = "", skip: str = "") -> str:
        text = ""
        for k in range(count):
            text += notify(f"(me + {1 << k}) % n", f"{k}, 0") + wait(f"{k}, 0", mark=mark if k == count - 1 else "")
        return text + "".join(notify("me", f"{k}, 0", "-1") for k in range(count))

    for n, count in ((2, 1), (3, 2), (4, 2), (8, 3)):
        yield case(f"dissemination on {n} ranks", ROUNDS, indent(rounds(count)), (n,))
        yield case(f"dissemination on {n} ranks, three times", ROUNDS, indent(rounds(count) * 3), (n,))
    params = f"x: pl.Tensor[[1, 8], pl.FP32], data: pld.DistributedTensor[[1, 8], pl.FP32], {ROUNDS}"
    mine = "t = pl.load(x, [0, 0], [1, 8])\nd = pl.store(t, [0, 0], data)\n"
    pull = "for p in pl.range(n):\n    g = pld.tile.remote_load(data, p, [0, 0], [1, 8])\n"
    for n, count in ((2, 1), (4, 2), (8, 3)):
        yield case(f"data behind dissemination on {n}", params, indent(mine + rounds(count) + pull), (n,), None, "data")
    short = mine.replace("data)\n", "data)!!\n") + rounds(1) + pull.replace("8])\n", "8])!!\n")
    yield case("a round of dissemination missing", params, indent(short), (3, 4), "unordered", "data")
    wrong = rounds(2, "!!").replace("(me + 2) % n", "(me + 1) % n")
    yield case("dissemination to the wrong peer", ROUNDS, indent(wrong.replace("!!", "")), (4,))


def _trees() -> Iterator[Case]:
    """A sum up a binary tree and the result down again: parent (me - 1) // 2."""
    params = (
        "x: pl.Tensor[[1, 8], pl.FP32], data: pld.DistributedTensor[[2, 8], pl.FP32], "
        "sig: pld.DistributedTensor[[4, 1], pl.INT32]"
    )

    def up(mark: str = "", early: str = "") -> str:
        text = "acc = pl.load(x, [0, 0], [1, 8])\n"
        for child in (1, 2):
            text += f"if 2 * me + {child} < n:\n" + indent(
                wait(f"{child - 1}, 0") + f"g{child} = pl.load(data, [{child - 1}, 0], [1, 8])\n"
                f"acc = pl.add(acc, g{child})\n" + notify("me", f"{child - 1}, 0", "-1")
            )
        slot = "(me + 1) % 2"
        store = f"pld.tile.remote_store(acc, data, (me - 1) // 2, [{slot}, 0])\n"
        tell = notify("(me - 1) // 2", f"{slot}, 0", mark=early)
        return text + "if me > 0:\n" + indent((tell + store) if early else (store + tell))

    def down(mark: str = "") -> str:
        text = "if me > 0:\n" + indent(wait("2, 0", mark=mark) + notify("me", "2, 0", "-1"))
        for child in (1, 2):
            text += f"if 2 * me + {child} < n:\n    " + notify(f"2 * me + {child}", "2, 0")
        return text

    yield case("a tree up", params, indent(up()), (2, 3, 8), None, "data")
    yield case("a tree up and down", params, indent(up() + down()), (2, 4, 8), None, "data")
    yield case("a tree, twice", params, indent((up() + down()) * 2), (2, 4), None, "data")
    yield case("a tree, the notify first", params, indent(up(early="!!")), (2, 4), "notify-before-data", "data")
    lost = "if me > 0:\n" + indent(wait("2, 0", mark="!!") + notify("me", "2, 0", "-1"))
    yield case("a tree that never comes down", params, indent(up() + lost), (2, 4), "unsatisfiable-wait", "data")


def _columns(cols: int) -> Iterator[Case]:
    """Each rank writes its columns of every window: strided regions that interleave."""
    params = (
        f"x: pl.Tensor[[4, {cols}], pl.FP32], data: pld.DistributedTensor[[4, {8 * cols}], pl.FP32], {SIG}"
    )  # fmt: skip

    def send(at: str, mark: str = "") -> str:
        return f"for p in pl.range(n):\n    pld.tile.remote_store(t, data, p, [0, {at}]){mark}\n"

    load = f"t = pl.load(x, [0, 0], [4, {cols}])\n"
    use = f"g = pl.load(data, [0, 0], [4, {8 * cols}])\n"

    def made(what: str, word: str | None, *parts: str) -> Case:
        return case(f"columns of {cols}: {what}", params, indent("".join((load, *parts))), (2, 3), word, "data")

    yield made("side by side", None, send(f"me * {cols}"), barrier("1"), use, retire("1"))
    yield made("one overlaps the next", "unordered", send(f"me * {cols // 2}", "!!"), barrier("1"), use, retire("1"))
    own = f"e = pl.store(t, [0, me * {cols}], data)\n"
    yield made("own columns rewritten", None, send(f"me * {cols}"), barrier("1"), use, own, retire("1"))
    others = own.replace("me *", "(me + 1) % n *").replace("\n", "!!\n")
    yield made("a peer's columns rewritten too early", "unordered", others, send(f"me * {cols}", "!!"), barrier("1"),
               use, retire("1"))  # fmt: skip


def _counts() -> Iterator[Case]:
    """Counts are published by AtomicAdd into a window that is read as data, and decide how many rows are read."""
    params = (
        "x: pl.Tensor[[4, 8], pl.FP32], data: pld.DistributedTensor[[NR * 4, 8], pl.FP32], "
        f"counts: pld.DistributedTensor[[NR, 1], pl.INT32], {SIG}"
    )
    send = (
        "t = pl.load(x, [0, 0], [4, 8])\nfor p in pl.range(n):\n"
        "    pld.tile.remote_store(t, data, p, [me * 4, 0])\n    "
    )
    publish = notify("p", "me, 0", "1 + me", sig="counts")
    clear = "for s in pl.range(n):\n    old = pl.tensor.read(counts, [s, 0])\n    " + notify(
        "me", "s, 0", "0 - old", sig="counts"
    )
    use = (
        "for s in pl.range(n):\n    rows = pl.tensor.read(counts, [s, 0])\n    if rows > 0:\n"
        "        g = pl.load(data, [s * 4, 0], [4, 8])\n"
    )
    end = retire("1")
    yield case("counts decide", params, indent(send + publish + barrier("1") + use + end), (2, 3), None, "data")
    call = clear + barrier("1") + send + publish + barrier("2") + use + barrier("3") + retire("3")
    yield case("counts cleared and read, twice", params, indent(call * 2), (2, 3), None, "data")
    early = send + publish.replace("\n", "!!\n") + use.replace("[s, 0])\n", "[s, 0])!!\n", 1) + barrier("1") + end
    yield case("counts read too early", params, indent(early.replace("[me * 4, 0])", "[me * 4, 0])!!").replace(
        "4, 8])\n    if", "4, 8])\n    if").replace("        g = pl.load(data, [s * 4, 0], [4, 8])",
        "        g = pl.load(data, [s * 4, 0], [4, 8])!!")), (2,), "use-before-wait", "data")  # fmt: skip


def _collectives() -> Iterator[Case]:
    """Collectives that have not been lowered, among hand-written signals."""
    row = "x: pl.Tensor[[1, 8], pl.FP32], data: pld.DistributedTensor[[NR, 8], pl.FP32]"
    gathered = "d = pld.tensor.allgather(x, data, sig)\n"
    use = "for s in pl.range(n):\n    g = pl.load(d, [s, 0], [1, 8])\n"
    yield case("allgather, then used", f"{row}, {SIG}", indent(gathered + use), ALL, None, "data")
    two = f"{row}, {SIG}, other: pld.DistributedTensor[[NR, 1], pl.INT32]"
    again = gathered + use + barrier("1", "other") + retire("1", sig="other") + gathered.replace("d =", "e =")
    yield case("allgather, used, a barrier by hand, allgather", two, indent(again), ALL, None, "data")
    whole = "data: pld.DistributedTensor[[1, 64], pl.FP32], x: pl.Tensor[[1, 64], pl.FP32]"
    for mode in ("mesh", "ring"):
        signal = SIG if mode == "mesh" else "sig: pld.DistributedTensor[[2 * (NR - 1), NR], pl.INT32]"
        text = "t = pl.load(x, [0, 0], [1, 64])\nd = pl.store(t, [0, 0], data)\n"
        text += f'e = pld.tensor.allreduce(d, sig, op=pld.ReduceOp.Sum, mode="{mode}")\n'
        text += "g = pl.load(e, [0, 0], [1, 64])\n"
        params = f"{whole}, {signal}"
        ranks = ALL if mode == "mesh" else (4,)
        params = params.replace("2 * (NR - 1), NR", "6, 4")
        yield case(f"staged, {mode} allreduce, used", params, indent(text), ranks, None, "data")
    late = "d = pld.tensor.allgather(x, data, sig)\nfor p in pl.range(n):\n    if p != me:!!\n        "
    late = gathered + "t = pl.load(x, [0, 0], [1, 8])\nfor p in pl.range(n):\n"
    late += "    pld.tile.remote_store(t, data, p, [0, 0])!!\n" + use.replace("8])\n", "8])!!\n")
    yield case("pushed into a window that is being read", f"{row}, {SIG}", indent(late), ALL, "unordered", "data")
    uneven = "if me > 0:!!\n" + indent(gathered)
    yield case("an allgather not of all", f"{row}, {SIG}", indent(uneven), ALL, "divergent-barrier", "data")


def _forms() -> Iterator[Case]:
    """Control flow in other forms."""
    loop = "i = 0\nwhile i < 3:\n" + indent(barrier("1") + retire("1") + "i = i + 1\n")
    yield case("calls in a while loop", SIG, indent(loop), ALL)
    nested = "for a in pl.range(2):\n    for b in pl.range(2):\n"
    nested += indent(arrive() + gather("2 * a + b + 1"), 8) + retire("4")
    yield case("generations in nested loops", SIG, indent(nested), ALL)
    for k in (2, 3):
        spread = "".join(arrive(f"me * {k} + {j}, 0") for j in range(k))
        spread += "".join(gather("1", f"s * {k} + {j}, 0") + retire("1", f"s * {k} + {j}, 0") for j in range(k))
        params = f"sig: pld.DistributedTensor[[NR * {k}, 1], pl.INT32]"
        yield case(f"{k} cells for each peer", params, indent(spread), ALL)
    line = "sig: pld.DistributedTensor[[NR, 16], pl.INT32]"
    yield case("a line for each cell", line, indent(barrier("1") + retire("1")), ALL)
    half = "if me % 2 == 0:\n" + indent(arrive() + gather("1")) + "else:\n" + indent(arrive() + gather("1"))
    yield case("one barrier in two branches by rank", SIG, indent(half + retire("1")), ALL)
    pair = "if me < n - n % 2:\n" + indent(notify("me + 1 - 2 * (me % 2)", "me, 0") + wait("me + 1 - 2 * (me % 2), 0"))
    pair += "if me < n - n % 2:\n    " + notify("me", "me + 1 - 2 * (me % 2), 0", "-1")
    yield case("pairs of ranks", SIG, indent(pair), (2, 3, 4, 8))
    early = "for s in pl.range(n):\n    if s != me:\n        " + notify("s", "me, 0") + "        " + wait("s, 0")
    yield case("one peer after the other", SIG, indent(early + retire("1")), (2, 3, 8))
    order = (
        "for s in pl.range(n):\n    if s != me:\n        " + wait("s, 0", mark="!!") + "        " + notify("s", "me, 0")
    )
    yield case("one peer after the other, waiting first", SIG, indent(order + retire("1")), ALL, "deadlock")
