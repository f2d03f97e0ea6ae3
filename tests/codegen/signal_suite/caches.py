"""Scalar stores, cache lines and the markers that publish and invalidate them."""

from __future__ import annotations

from collections.abc import Iterator

from .text import SIG, Case, arrive, barrier, case, indent, notify, retire, wait

ALL = (2, 3, 4)
SLOTS = "slots: pld.DistributedTensor[[NR, {step}], pl.INT32]"
CELL = "sig: pld.DistributedTensor[[2, 1], pl.INT32]"


def cases() -> Iterator[Case]:
    """Yield the family."""
    yield from _lines()
    yield from _markers()


def _lines() -> Iterator[Case]:
    """Every rank Sets its slot in every window."""
    for step in (1, 4, 8, 16, 32):
        params = f"{SLOTS.format(step=step)}, {SIG}"
        fault = "shared-line" if step < 16 else None
        publish = arrive("me, 0", "slots", "1000 + me", "Set", mark="!!" if fault else "")
        body = publish + barrier("1") + retire("1")
        yield case(f"slots {4 * step} bytes apart", params, indent(body), ALL, fault, "slots")
        added = arrive("me, 0", "slots", "1000 + me") + barrier("1") + retire("1")
        yield case(f"slots {4 * step} bytes apart, added", params, indent(added), ALL, None, "slots")
    turns = "for r in pl.range(n):\n    if r == me:\n        " + notify("0", "me, 0", "7", "Set", "slots")
    turns += indent(arrive() + "for s in pl.range(n):\n    if s != me:\n        " + wait("s, 0", "r + 1"))
    body = turns + "for s in pl.range(n):\n    if s != me:\n        " + notify("me", "s, 0", "0 - n")
    yield case("slots written in turns", f"{SLOTS.format(step=1)}, {SIG}", indent(body), ALL, None, "slots")
    both = "a = pl.tensor.write(slots, [0, 0], me){m}\nif me == 0:\n    " + notify(
        "1", "0, 1", "5", "Set", "slots", "{m}"
    )
    shared = f"slots: pld.DistributedTensor[[1, 8], pl.INT32], {SIG}"
    yield case("an own store beside a peer's Set", shared, indent(both.format(m="!!") + barrier("1") + retire("1")),
               ALL,
               "shared-line", "slots")  # fmt: skip
    apart = both.format(m="").replace("[0, 1]", "[0, 16]")
    yield case("an own store, a line from a peer's Set", shared.replace("1, 8", "1, 32"),
               indent(apart + barrier("1") + retire("1")), ALL, None, "slots")  # fmt: skip
    for at, fault in (("0, 1", "shared-line"), ("0, 16", None)):
        mark = "!!" if fault else ""
        mixed = "if me == 0:\n    " + notify("1", "0, 0", "5", "Set", "slots", mark)
        mixed += "else:\n    " + notify("1", at, "1", "AtomicAdd", "slots", mark)
        yield case(f"a Set beside an add at {at}", shared.replace("1, 8", "1, 32"),
                   indent(mixed + barrier("1") + retire("1")), ALL, fault, "slots")  # fmt: skip
    late = barrier("1") + arrive("me, 0", "slots", "1", "Set", mark="!!") + barrier("2") + retire("2")
    yield case("slots after a barrier", f"{SLOTS.format(step=2)}, {SIG}", indent(late), ALL, "shared-line", "slots")


def marked(line: str) -> str:
    """Return a line marked as the one to blame."""
    return line.replace("\n", "!!\n")


def _markers() -> Iterator[Case]:
    """One rank stores scalars or tiles and publishes them, the other reads them after a wait."""
    params = f"x: pl.Tensor[[1, 16], pl.FP32], w: pld.DistributedTensor[[1, 64], pl.FP32], {CELL}"
    stores = {
        "scalar": "a = pl.tensor.write(w, [0, 3], 1.0)\n",
        "tile": "t = pl.load(x, [0, 0], [1, 16])\na = pl.store(t, [0, 0], w)\n",
        "remote": "t = pl.load(x, [0, 0], [1, 16])\npld.tile.remote_store(t, w, 1, [0, 0])\n",
    }
    clean, fence = "pl.system.cacheinvalid(w, [1, 16], [0, 0])\n", "pl.system.fence()\n"
    everything = "pl.system.cacheinvalid()\n"
    for name, store in stores.items():
        read = "v = pl.tensor.read(w, [0, 3])\n"
        if name != "remote":
            read = "g = pld.tile.remote_load(w, 0, [0, 0], [1, 16])\n"
        credit = notify("1", "0, 0")

        def made(what: str, word: str | None, publish: str, consume: str, store: str = store, name: str = name) -> Case:
            text = f"if me == 0:\n{indent(store + publish)}else:\n{indent(consume + notify('me', '0, 0', '-1'))}"
            return case(f"{name} store: {what}", params, indent(text), (2,), word, "w")

        consume = wait("0, 0") + everything + read
        yield made("published", None, clean + fence + credit, consume)
        yield made("published, everything cleaned", None, everything + fence + credit, consume)
        yield made("no markers at all", None, credit, wait("0, 0") + read)
        late = marked(credit)
        yield made("no fence", "missing-marker", clean + late, consume)
        yield made("not cleaned", "missing-marker", fence + late, consume)
        yield made("fence before cleaning", "missing-marker", fence + clean + late, consume)
        other = "pl.system.cacheinvalid(w, [1, 8], [0, 48])\n"
        yield made("another region cleaned", "missing-marker", other + fence + late, consume)
        yield made("read, not invalidated", "missing-marker", clean + fence + credit, wait("0, 0") + marked(read))
        yield made("cleaned twice", "doubled-marker", clean + marked(clean) + fence + credit, consume)
        yield made("published twice", "doubled-marker", clean + fence + marked(clean) + fence + credit, consume)
        yield made("fenced twice", "doubled-marker", clean + fence + marked(fence) + credit, consume)
        twice = wait("0, 0") + everything + marked(everything) + read
        yield made("invalidated twice", "doubled-marker", clean + fence + credit, twice)
        both = clean + fence + store.replace("a = ", "b = ").replace("t = ", "s = ") + clean + fence
        yield made("two stores, each published", None, both + credit, consume)
        looped = "for i in pl.range(2):\n" + indent(store + clean + fence)
        yield made("stores in a loop, each published", None, looped + credit, consume)
        loop = "for i in pl.range(2):\n" + indent(marked(clean) + fence)
        yield made("published in a loop again", "doubled-marker", clean + loop + credit, consume)
    text = "if me == 0:\n" + indent(stores["remote"] + clean + fence + notify("1", "0, 0")) + "else:\n"
    for first in ("", "u = pl.tensor.read(w, [0, 12])\n"):
        read = marked("v = pl.tensor.read(w, [0, 3])\n")
        rest = (first and "") + wait("0, 0") + read + notify("me", "0, 0", "-1")
        if first:
            rest = wait("0, 0") + everything + notify("me", "0, 0", "-1") + notify("0", "1, 0") + wait("1, 0") + read
            rest += notify("me", "1, 0", "-1")
            there = "if me == 0:\n" + indent(stores["remote"] + clean + fence + notify("1", "0, 0") + wait("1, 0")
                    + notify("me", "1, 0", "-1") + "pld.tile.remote_store(t, w, 1, [0, 0])\n" + clean + fence
                    + notify("1", "1, 0")) + "else:\n"  # fmt: skip
            yield case("a scalar read after the second wait, not invalidated", params, indent(there + indent(rest)),
                       (2,),
                       "missing-marker", "w")  # fmt: skip
            continue
        yield case("a scalar read after a wait, not invalidated", params, indent(text + indent(rest)), (2,),
                   "missing-marker", "w")  # fmt: skip
