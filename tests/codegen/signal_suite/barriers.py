"""Barriers and token passing: no data, only signals."""

from __future__ import annotations

from collections.abc import Iterator

from .text import SIG, Case, arrive, barrier, case, gather, indent, notify, retire, wait

ALL = (2, 3, 4)
TWO = f"{SIG}, other: pld.DistributedTensor[[NR, 1], pl.INT32]"


def cases() -> Iterator[Case]:
    """Yield the family."""
    yield from _mesh()
    yield from _faulty_mesh()
    yield from _loops()
    yield from _tokens()
    yield from _counter()
    yield from _forms()


def _body(*parts: str) -> str:
    return indent("".join(parts))


def _mesh() -> Iterator[Case]:
    for g in (1, 2, 3):
        rounds = [barrier(str(i + 1)) for i in range(g)]
        yield case(f"mesh barrier, {g} generations", SIG, _body(*rounds, retire(str(g))), (2, 3, 8))
        yield case(f"mesh barrier called twice, {g} generations", SIG, _body(*(rounds + [retire(str(g))]) * 2), ALL)
    yield case(
        "two signals", TWO, _body(barrier("1"), barrier("1", "other"), retire("1"), retire("1", sig="other")), ALL
    )
    one = barrier("1") + retire("1")
    yield case("barrier collectives", SIG, indent("a = pld.tensor.barrier(sig)\nb = pld.tensor.barrier(a)\n"), ALL)
    yield case("barrier and collective", TWO, indent(one + "a = pld.tensor.barrier(other)\n" + one), ALL)
    yield case("a uniform branch around a barrier", SIG, indent("if n > 1:\n" + indent(one)), ALL)
    skipped = "if n > 100:\n" + indent(one) + "else:\n" + indent(one)
    yield case("one barrier or another, by the number of ranks", SIG, indent(skipped), ALL)
    shifted = "for i in pl.range(1, n):\n    p = (me + i) % n\n    " + notify("p", "me, 0")
    yield case("peers in another order", SIG, _body(shifted, gather("1"), retire("1")), (2, 3, 8))
    late = arrive() + gather("1") + arrive() + retire("1") + gather("1") + retire("1")
    yield case("retired between two generations", SIG, indent(late), ALL)
    bulk = arrive(value="3") + gather("3") + retire("3")
    yield case("credits of three", SIG, indent(bulk), ALL)
    twice = arrive() + arrive() + gather("1") + gather("2") + retire("2")
    yield case("two credits ahead", SIG, indent(twice), ALL)
    charged = "for s in pl.range(n):\n    if s != me:\n        " + notify("me", "s, 0", "-1") + arrive() + gather("0")
    yield case("retired in advance, waited for zero", SIG, indent(charged), ALL)
    yield case("waits repeated", SIG, _body(arrive(), gather("1"), gather("1"), retire("1")), ALL)


def _faulty_mesh() -> Iterator[Case]:
    for g in (1, 2):
        before = [barrier(str(i + 1)) for i in range(g - 1)]
        yield case(f"no retirement, {g}", SIG, _body(*before, arrive(mark="!!"), gather(str(g))), ALL, "credit-leak")
        short = retire(str(g + 1), mark="!!")
        yield case(f"retired too much, {g}", SIG, _body(*before, barrier(str(g)), short), ALL, "credit-leak")
        yield case(
            f"a generation too many, {g}", SIG, _body(*before, arrive(), gather(str(g + 1), mark="!!"), retire(str(g))),
            ALL, "unsatisfiable-wait",
        )  # fmt: skip
        yield case(
            f"Eq, {g}", SIG, _body(*before, arrive(), gather(str(g), cmp="Eq", mark="!!"), retire(str(g))), ALL,
            "eq-on-counter",
        )  # fmt: skip
        yield case(
            f"waits first, {g}",
            SIG,
            _body(*before, gather(str(g), mark="!!"), arrive(), retire(str(g))),
            ALL,
            "deadlock",
        )
        yield case(
            f"my own cell of the peer, {g}", SIG,
            _body(*before, arrive(cell="p, 0", mark="!!"), gather(str(g), mark="!!"), retire(str(g))),
            ALL, "wrong-cell",
        )  # fmt: skip
        yield case(
            f"Set instead of add, {g}", SIG,
            _body(barrier("1"), arrive(op="Set", mark="!!"), gather("1"), retire(str(g))),
            ALL, "mixed-set-add",
        )  # fmt: skip
    extra = barrier("1") + "if me == 0:\n    " + notify("1", "me, 0", mark="!!") + retire("1")
    yield case("one credit too many", SIG, indent(extra), ALL, "credit-leak")
    surplus = arrive(value="2", mark="!!") + gather("1") + retire("1")
    yield case("credits of two, one retired", SIG, indent(surplus), ALL, "credit-leak")
    yield case(
        "credits of two, one retired, twice", SIG, indent(surplus.replace("!!", "") + surplus), ALL, "credit-leak"
    )
    reuse = barrier("1") + arrive() + gather("1", mark="!!")
    yield case("the second call accepts the first one's credits", SIG, indent(reuse + retire("2")), ALL, "stale-signal")
    again = barrier("1") + retire("1") + barrier("1") + arrive() + gather("1", mark="!!") + retire("2")
    yield case("stale in the third call", SIG, indent(again), ALL, "stale-signal")
    under = barrier("1") + barrier("2") + retire("1") + arrive() + gather("1", mark="!!") + retire("2")
    yield case("one of two retired, then reused", SIG, indent(under), ALL, "stale-signal")
    blind = barrier("1") + arrive() + retire("2", mark="!!")
    yield case("a generation nobody waits for", SIG, indent(blind), ALL, "use-before-wait")
    second = barrier("1") + retire("1") + arrive() + retire("1", mark="!!")
    yield case("no wait at all in the second call", SIG, indent(second), ALL, "use-before-wait")
    yield case("no wait at all", SIG, indent(arrive() + retire("1", mark="!!")), ALL, "use-before-wait")
    zero = arrive() + gather("0", mark="!!") + retire("1")
    yield case("a wait for zero", SIG, indent(zero), ALL, "stale-signal")
    reset = (
        barrier("1") + "for s in pl.range(n):\n    if s != me:\n        " + notify("me", "s, 0", "0", "Set", mark="!!")
    )
    yield case("reset by Set", SIG, indent(reset), ALL, "mixed-set-add")
    past = arrive(cell="me + n, 0", mark="!!") + gather("1") + retire("1")
    yield case("a cell past the signal", SIG, indent(past), ALL, "wrong-cell")
    wrong = arrive(mark="!!") + gather("1", cell="(s + 1) % n, 0", mark="!!") + retire("1")
    yield case("waits on the next cell", SIG, indent(wrong), (3, 4), "wrong-cell")
    for dtype, word in (("INT64", "wide-counter"), ("INT16", "wrong-cell")):
        params = SIG.replace("INT32", dtype)
        text = arrive() + gather("1", mark="!!") + retire("1")
        yield case(f"cells of {dtype}", params, indent(text), (2,), word)
    # The reader refuses such numbers where it sees them: they come from sums and products.
    huge = arrive(value="2000000000") + arrive(value="2000000000", mark="!!") + gather("1")
    huge += retire("2000000000") + retire("2000000000")
    yield case("credits past INT32", SIG, indent(huge), ALL, "wide-counter")
    three = "pl.cast(n, pl.INT64) * 1500000000"
    far = arrive(value="1") + gather(three, mark="!!") + retire("1")
    yield case("credits past INT32 in one step", SIG, indent(arrive(value=three, mark="!!")), (2,), "wide-counter")
    yield case("an impossible threshold", SIG, indent(far), ALL, "unsatisfiable-wait")


def _loops() -> Iterator[Case]:
    loop = "for g in pl.range({count}):\n"
    inner = indent(arrive() + gather("g + 1"))
    for count in ("3", "n", "2 * n"):
        text = loop.format(count=count) + inner + f"total = {count}\n" * (not count.isdigit())
        done = "for s in pl.range(n):\n    if s != me:\n        " + notify("me", "s, 0", f"0 - {count}")
        yield case(f"generations in a loop of {count}", SIG, indent(text + done), ALL)
    calls = loop.format(count="4") + indent(barrier("1") + retire("1"))
    yield case("calls in a loop", SIG, indent(calls), (2, 3, 8))
    uneven = "for g in pl.range(me + 1):!!\n" + indent(arrive() + gather("g + 1"))
    yield case("rounds by rank", SIG, indent(uneven), ALL, "divergent-barrier")
    for condition in ("me != 0", "me == 0", "me < n - 1", "me % 2 == 0"):
        text = f"if {condition}:!!\n" + indent(barrier("1") + retire("1"))
        yield case(f"a barrier where {condition}", SIG, indent(text), (3, 4), "divergent-barrier")
    leaves = "if me == n - 1:!!\n    return\n" + barrier("1") + retire("1")
    yield case("the last rank returns before the barrier", SIG, indent(leaves), ALL, "divergent-barrier")
    breaks = "for g in pl.range(3):\n    if me < g:!!\n        break\n" + indent(barrier("1") + retire("1"))
    yield case("ranks leave a loop of barriers", SIG, indent(breaks), ALL, "divergent-barrier")
    half = f"if me > 0:!!\n{indent('a = pld.tensor.barrier(sig)')}"
    yield case("a collective not of all", SIG, indent(half), ALL, "divergent-barrier")
    second = barrier("1") + retire("1") + "if me < 1:!!\n" + indent(barrier("1") + retire("1"))
    yield case("the second barrier not of all", SIG, indent(second), ALL, "divergent-barrier")
    stuck = loop.format(count="2") + indent(arrive(mark="!!") + gather("g + 1"))
    yield case("no retirement after a loop", SIG, indent(stuck), ALL, "credit-leak")
    same = loop.format(count="3") + indent(arrive() + gather("1", mark="!!")) + retire("3")
    yield case("one generation for all rounds", SIG, indent(same), ALL, "stale-signal")
    equal = loop.format(count="3") + indent(arrive() + gather("g + 1", cmp="Eq", mark="!!")) + retire("3")
    yield case("Eq in a loop", SIG, indent(equal), ALL, "eq-on-counter")


def _tokens() -> Iterator[Case]:
    cell = "sig: pld.DistributedTensor[[1, 1], pl.INT32]"
    right = notify("(me + 1) % n", "0, 0")
    back = notify("me", "0, 0", "-1")
    ring = "if me == 0:\n" + indent(right + wait("0, 0") + back) + "else:\n" + indent(wait("0, 0") + right + back)
    yield case("a token around the ring", cell, indent(ring), (2, 3, 8))
    yield case("a token around the ring twice", cell, indent(ring * 2), ALL)
    yield case("everybody pushes right", cell, indent(right + wait("0, 0") + back), (2, 3, 8))
    nobody = wait("0, 0", mark="!!") + right + back
    yield case("nobody starts the token", cell, indent(nobody), ALL, "deadlock")
    two = notify("(me + 1) % n", "0, 0", mark="!!") + notify("(me + 2) % n", "0, 0", mark="!!")
    yield case(
        "a token to two ranks", cell, indent(two + wait("0, 0") + back.replace("\n", "!!\n")), (3, 4), "credit-leak"
    )
    lost = "if me == 0:\n" + indent(right + wait("0, 0", mark="!!") + back)
    lost += "else:\n" + indent(wait("0, 0") + "if me < n - 1:\n    " + right + back)
    yield case("the last rank keeps the token", cell, indent(lost), ALL, "unsatisfiable-wait")
    chain = "if me == 0:\n" + indent(wait("0, 0", "2", mark="!!") + right)
    chain += "else:\n" + indent(right + wait("0, 0", mark="!!") + back)
    yield case("the first waits for its second token", cell, indent(chain), (2,), "unsatisfiable-wait")
    cross = "if me == 0:\n" + indent(notify("1", "1, 0") + wait("0, 0") + notify("me", "0, 0", "-1"))
    cross += "else:\n" + indent(wait("1, 0") + notify("0", "0, 0") + notify("me", "1, 0", "-1"))
    yield case("two ranks, a cell each", SIG, indent(cross), (2,))
    bad = "if me == 0:\n" + indent(wait("0, 0") + notify("me", "0, 0", "-1"))
    bad += "else:\n" + indent(wait("1, 0", mark="!!") + notify("0", "0, 0") + notify("me", "1, 0", "-1"))
    yield case("nobody notifies the second", SIG, indent(bad), (2,), "unsatisfiable-wait")
    circle = "if me == 0:\n" + indent(wait("0, 0", mark="!!") + notify("1", "1, 0") + notify("me", "0, 0", "-1"))
    circle += "else:\n" + indent(wait("1, 0", mark="!!") + notify("0", "0, 0") + notify("me", "1, 0", "-1"))
    yield case("both wait first", SIG, indent(circle), (2,), "deadlock")
    third = "a = (me + 1) % n\n" + wait("a, 0", mark="!!") + arrive() + notify("me", "a, 0", "-1")
    yield case("each waits for the next one's credit first", SIG, indent(third), (3, 4), "deadlock")


def _counter() -> Iterator[Case]:
    """Several producers of one cell."""
    cell = "sig: pld.DistributedTensor[[2, 1], pl.INT32]"
    to_root = "if me != 0:\n    " + notify("0", "0, 0") + "else:\n"
    collect = wait("0, 0", "n - 1") + notify("me", "0, 0", "1 - n")
    yield case("the root counts its peers", cell, indent(to_root + indent(collect)), (2, 3, 8))
    release = arrive("1, 0") + ""
    there = to_root + indent(collect + release) + "if me != 0:\n" + indent(wait("1, 0") + notify("me", "1, 0", "-1"))
    yield case("counted and released", cell, indent(there), (2, 3, 8))
    yield case("counted and released twice", cell, indent(there * 2), ALL)
    many = to_root + indent(wait("0, 0", "n", mark="!!") + notify("me", "0, 0", "-n"))
    yield case("the root counts itself", cell, indent(many.replace("-n", "0 - n")), ALL, "unsatisfiable-wait")
    few = to_root + indent(wait("0, 0", "n - 1") + notify("me", "0, 0", "-1", mark="!!"))
    yield case("the root retires one credit", cell, indent(few), (3, 4), "credit-leak")
    eq = to_root + indent(wait("0, 0", "n - 1", "Eq", mark="!!") + notify("me", "0, 0", "1 - n"))
    yield case("the root waits for equality", cell, indent(eq), ALL, "eq-on-counter")


def _forms() -> Iterator[Case]:
    """Flags that are Set, and deferred waits."""
    cell = "sig: pld.DistributedTensor[[2, 1], pl.INT32]"
    flag = "if me == 0:\n" + indent(notify("1", "0, 0", "1", "Set") + wait("1, 0") + notify("me", "1, 0", "0", "Set"))
    flag += "else:\n" + indent(wait("0, 0") + notify("me", "0, 0", "0", "Set") + notify("0", "1, 0", "1", "Set"))
    yield case("flags set and reset in turns", cell, indent(flag), (2,))
    yield case("flags in turns, twice", cell, indent(flag * 2), (2,))
    early = "if me == 0:\n" + indent(
        notify("1", "0, 0", "1", "Set") + wait("1, 0", mark="!!") + notify("me", "1, 0", "0", "Set")
    )
    early += "else:\n" + indent(
        notify("0", "1, 0", "1", "Set") + wait("0, 0", mark="!!") + notify("me", "0, 0", "0", "Set")
    )
    reset = indent(notify("me", "0, 0", "0", "Set") + notify("me", "1, 0", "0", "Set")).replace("    pld", "pld")
    yield case("a flag cleared after it may have been set", cell, indent(reset + early), (2,), "deadlock")
    epochs = "sig: pld.DistributedTensor[[4, 1], pl.INT32]"
    deferred = "with pl.at(level=pl.Level.CORE_GROUP):\n    "
    register = "pld.system.defer_wait(sig, [{cell}], {value}, cmp=pld.WaitCmp.Ge){mark}\n"
    push = notify("(me + 1) % n", "0, 0")
    for value in ("1", "n - n + 1"):
        text = push + deferred + register.format(cell="0, 0", value=value, mark="")
        yield case(f"a deferred wait for {value}", epochs, indent(text), (2, 3))
    for k in (2, 4):
        text = f"for c in pl.range({k}):\n    " + notify("(me + 1) % n", "c, 0")
        text += deferred + f"for c in pl.range({k}):\n        " + register.format(cell="c, 0", value="1", mark="")
        yield case(f"{k} deferred waits", epochs, indent(text), (2, 3))
    bare = push + register.format(cell="0, 0", value="1", mark="!!")
    yield case("a deferred wait outside a task", epochs, indent(bare), (2,), "defer-misuse")
    busy = push + deferred + register.format(cell="0, 0", value="1", mark="") + "    " + notify("me", "1, 0", mark="!!")
    yield case("a notify after a registration", epochs, indent(busy), (2,), "defer-misuse")
    negative = push + deferred + register.format(cell="0, 0", value="n - 4", mark="!!")
    yield case("a negative threshold", epochs, indent(negative), (2, 3), "defer-misuse")
    lowered = push + notify("(me + 1) % n", "0, 0", "-1", mark="!!") + push
    lowered += deferred + register.format(cell="0, 0", value="1", mark="")
    yield case("a counter that is lowered", epochs, indent(lowered), (2,), "defer-misuse")
    wide = "sig: pld.DistributedTensor[[128, 1], pl.INT32]"
    many = "for c in pl.range(33 * n):\n    " + notify("(me + 1) % n", "c, 0")
    many += deferred + "for c in pl.range(33 * n):\n        " + register.format(cell="c, 0", value="1", mark="!!")
    yield case("more than 64 conditions", wide, indent(many), (2, 3), "defer-misuse")
    early_waiter = "if n > 1:\n    " + deferred.replace("    ", "        ")
    nested = push + early_waiter + register.format(cell="0, 0", value="1", mark="!!")
    yield case(
        "a waiter inside a branch",
        epochs,
        indent(nested.replace("CORE_GROUP):\n", "CORE_GROUP):!!\n")),
        (2,),
        "defer-misuse",
    )
