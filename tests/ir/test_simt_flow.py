"""Random structured programs: threads under masks compute what each thread computes alone."""

import random

import numpy as np
import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.interp import run
from tilegg.ir.simt import launch
from tilegg.ir.text import parse

THREADS = 64


class Writer:
    """Writes a random function of two INT32 parameters."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.names = ["a", "b", "c"]
        self.lines = []
        self.counter = 0

    def value(self):
        return self.rng.choice([*self.names, str(self.rng.randint(-5, 9))])

    def expression(self):
        op = self.rng.choice(["+", "-", "*", "//", "%", "&", "^", "max", "min"])
        a, b = self.rng.choice(self.names), self.value()
        return f"pl.{op}({a}, {b})" if op in ("max", "min") else f"{a} {op} {b}"

    def condition(self):
        return f"{self.rng.choice(self.names)} {self.rng.choice(['<', '>', '==', '<=', '!='])} {self.value()}"

    def block(self, depth, loop):
        pad = "    " * (depth + 1)
        for _ in range(self.rng.randint(1, 3)):
            kind = self.rng.random()
            if depth >= 4 or kind < 0.45:
                self.lines.append(f"{pad}{self.rng.choice(self.names)} = {self.expression()}")
            elif kind < 0.7:
                self.lines.append(f"{pad}if {self.condition()}:")
                self.block(depth + 1, None)
                if self.rng.random() < 0.6:
                    self.lines.append(f"{pad}else:")
                    self.block(depth + 1, None)
            elif kind < 0.85:
                self.counter += 1
                self.lines.append(f"{pad}for i{self.counter} in pl.range(0, {self.rng.choice(self.names)} % 5, 1):")
                self.loop(depth + 1)
            else:
                self.counter += 1
                k = f"k{self.counter}"
                self.lines += [f"{pad}{k} = 0", f"{pad}while {k} < 4:", f"{pad}    {k} = {k} + 1"]
                self.loop(depth + 1)

    def loop(self, depth):
        self.block(depth, None)
        pad = "    " * (depth + 1)
        if self.rng.random() < 0.5:
            self.lines += [f"{pad}if {self.condition()}:", f"{pad}    {self.rng.choice(['break', 'continue'])}"]
            self.lines.append(f"{pad}{self.rng.choice(self.names)} = {self.expression()}")

    def text(self):
        self.block(0, None)
        params = "a: pl.Scalar[pl.INT32], b: pl.Scalar[pl.INT32], c: pl.Scalar[pl.INT32]"
        return "\n".join(["@pl.function", f"def f({params}):", *self.lines, "    return a, b, c", ""])


@pytest.mark.parametrize("start", range(0, 240, 40))
def test_masks_do_what_branches_do(start):
    flows = 0
    for seed in range(start, start + 40):
        text = Writer(seed).text()
        try:
            f = parse(text).functions[0]
        except TileggError:
            continue
        rng = np.random.default_rng(seed)
        given = [rng.integers(-20, 20, THREADS) for _ in range(3)]
        together = launch({"f": f}, "f", [THREADS, 1, 1], given)
        for t in range(THREADS):
            alone = run(f, {n: int(v[t]) for n, v in zip("abc", given)})
            values = list(alone.values())
            assert [int(r[t]) for r in together] == values, (text, t)
        flows += any(word in text for word in ("if ", "for ", "while "))
    assert flows >= 20
