"""Control flow around communication: random nests give what they give in the plain interpreter."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from tilegg.ir.interp import run
from tilegg.ir.ranks import run_ranks
from tilegg.ir.text import parse

HEAD = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.function(type=pl.FunctionType.InCore)
def kernel(n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[4], pl.INT32]], w: pl.InOut[{window}[[8], pl.INT32]]):
    v = 1
"""
TAIL = """\
    s = pl.read(w, [0])
    pl.write(y, [0], pl.cast(v + s, pl.INT32))
"""


@dataclass
class Nest:
    """Writes random statements; ``loops`` are the loops around the current one."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    loops: int = 0
    names: int = 0

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 1) + text)

    def block(self, depth: int, left: int) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self.statement(depth, left)

    def statement(self, depth: int, left: int) -> None:
        kinds = ["change", "touch", "touch"] + ["for", "if", "while", "spmd"] * (left > 0) + ["jump"] * (self.loops > 0)
        kind = self.rng.choice(kinds)
        k = self.names = self.names + 1
        if kind == "change":
            self.put(depth, f"v = (v * 3 + {k}) % 1000")
        elif kind == "touch":
            self.put(depth, f"r{k} = pl.read(w, [v % 8])")
            self.put(depth, f"pl.write(w, [(v + {k}) % 8], pl.cast((r{k} + v) % 500, pl.INT32))")
            self.put(depth, f"v = (v + r{k}) % 1000")
        elif kind == "jump":
            self.put(depth, f"if (v + {k}) % 3 == 0:")
            if self.rng.random() < 0.5:
                self.put(depth + 1, f"v = v + {k}")
            self.put(depth + 1, self.rng.choice(("break", "continue")))
        elif kind == "if":
            self.put(depth, f"if (v + {k}) % 2 == 0:")
            self.block(depth + 1, left - 1)
            if self.rng.random() < 0.6:
                self.put(depth, "else:")
                self.block(depth + 1, left - 1)
        else:
            self.loop(kind, depth, left, k)

    def loop(self, kind: str, depth: int, left: int, k: int) -> None:
        outer, self.loops = self.loops, self.loops + 1
        if kind == "spmd":
            # A block loop takes no jumps of its own.
            self.loops = 0
            self.put(depth, f"for b{k} in pl.spmd({self.rng.randint(1, 3)}):")
            self.put(depth + 1, f"pl.write(w, [b{k} % 8], pl.cast(pl.tile.get_block_idx() * 10 + {k}, pl.INT32))")
        elif kind == "for":
            self.put(depth, f"for i{k} in pl.range({self.rng.choice(('n', '0', '3'))}):")
            self.put(depth + 1, f"v = (v + i{k}) % 1000")
        else:
            self.put(depth, f"c{k} = 0")
            self.put(depth, f"while c{k} < n:")
            self.put(depth + 1, f"c{k} = c{k} + 1")
        self.block(depth + 1, left - 1)
        self.loops = outer


@pytest.mark.parametrize("seed", range(60))
def test_random_nests(seed: int) -> None:
    nest = Nest(random.Random(seed))
    nest.block(0, 3)
    text = HEAD + "\n".join(nest.lines) + "\n" + TAIL
    given = {"n": 3, "w": np.arange(8, dtype=np.int32)}
    want = run(parse(text.replace("{window}", "pl.Tensor")), given)
    got = run_ranks(parse(text.replace("{window}", "pld.DistributedTensor")), 1, given).check()
    assert got.outputs[0]["y"].tolist() == want["y"].tolist(), text
