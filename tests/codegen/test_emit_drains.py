"""Barriers before notifies: on every path through random control flow, and none where nothing can be in flight."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from tilegg.codegen.emit_drains import drains_of
from tilegg.ir.program import Block, If, Op, inner_blocks
from tilegg.rewrite.markers import with_markers

sys.path.insert(0, str(Path(__file__).parents[1] / "rewrite"))
from test_markers import NOTIFY, OWN, READ, STORE, WAIT, drawn, shape_of, source


def trail(block: Block, rng: random.Random, drains: frozenset[int]) -> str:
    """Return the letters of one run, with ``b`` for each barrier and ``o`` for a notify to the own rank."""
    out = ""
    for s in block:
        out += "b" if id(s) in drains else ""
        if isinstance(s, Op):
            own = s.name == "pld.system.notify" and getattr(s.operands[1], "name", "") == "me"
            out += "o" if own else shape_of(s)
        elif isinstance(s, If):
            out += trail(rng.choice((s.then, s.orelse)), rng, drains)
        else:
            for _ in range(rng.randint(0, 3)):
                out += "".join(trail(b, rng, drains) for b in inner_blocks(s))
    return out


def drained(run: str) -> bool:
    """Return whether no load or store may be in flight at any notify to another rank."""
    busy = False
    for letter in run:
        if letter == "n" and busy:
            return False
        busy = (busy or letter in "wr") and letter not in "bf"
    return True


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_in_flight_when_a_notify_goes_out(seed: int) -> None:
    rng = random.Random(seed)
    f = with_markers(source("\n".join(drawn(rng, 3)))).functions[0]
    drains = drains_of(f)
    runs = [trail(f.body, rng, drains) for _ in range(60)]
    assert all(map(drained, runs)), next(r for r in runs if not drained(r))
    assert not any("bb" in r for r in runs)


CASES = {
    "after a load": (f"{READ}\n{NOTIFY}", "rbn"),
    "twice": (f"{READ}\n{NOTIFY}\n{NOTIFY}", "rbnn"),
    "after a store, which a fence follows": (f"{STORE}\n{NOTIFY}", "wcfn"),
    "own rank": (f"{READ}\n{OWN}", "ro"),
    "a loop of notifies": (f"{READ}\nfor i in pl.range(n):\n    {NOTIFY}", "rbnnn"),
    "a loop that loads as well": (f"for i in pl.range(n):\n    {NOTIFY}\n    {READ}", "bnrbnrbnr"),
    "after a wait": (f"{WAIT}\n{NOTIFY}", "ibn"),
}


@pytest.mark.parametrize("name", CASES)
def test_barriers_stand_once(name: str) -> None:
    """The kernel begins with a load, which is in flight until the first barrier or fence."""
    body, want = CASES[name]
    f = with_markers(source(body)).functions[0]

    class Three(random.Random):
        def randint(self, a: int, b: int) -> int:
            return 3

    assert trail(f.body, Three(), drains_of(f)).removeprefix("r") == want
