"""Random programs that change tiles in place, in loops and branches and through views of them.

The lowered program gives what the source gives, and the assembly what the lowered program gives, both bit for bit.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
import tilegg
from tilegg.ir.diagnostics import TileggError

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check

HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[16, 64], pl.FP32], z: pl.Tensor[[16, 64], pl.FP32],
          y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t0 = pl.load(x, [0, 0], [16, 64])
        t1 = pl.load(z, [0, 0], [16, 64])
"""
WHOLE = (16, 64)
#: Several of them do nothing, or the same as others: what the e-graph makes one tile.
COMPUTED = (
    "pl.abs({a})", "pl.neg({a})", "pl.relu({a})", "pl.mul({a}, 0.5)", "pl.mul({a}, 1.0)", "pl.minimum({a}, {a})",
    "pl.cast({a}, target_type=pl.FP32)", "pl.maximum({a}, {b})", "pl.add({a}, {b})", "pl.sub({a}, {b})",
    "pl.tile.axpy({a}, {b}, 0.5)", "pl.tile.axpy({a}, {b}, 0.5)",
)  # fmt: skip

#: The tiles in reach: names and shapes.
Scope = list[tuple[str, tuple[int, int]]]


class Writer:
    """Writes one random program's statements."""

    def __init__(self, seed: int) -> None:
        self.rnd = random.Random(seed)
        self.lines: list[str] = []
        self.depth = self.names = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * (self.depth + 2) + text)

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def shape(self, scope: Scope) -> tuple[int, int]:
        return self.rnd.choice([shape for _, shape in scope])

    def tile(self, scope: Scope, shape: tuple[int, int]) -> str:
        """Return a tile of a shape, rather one that was made lately."""
        found = [name for name, s in scope if s == shape]
        return self.rnd.choice(found[-5:] if self.rnd.random() < 0.7 else found)

    def statement(self, scope: Scope) -> None:
        kinds = [self.write, self.compute, self.reshape, self.window, self.bits, self.narrowed, self.turned]
        weights = [28, 22, 10, 8, 3, 4, 1]
        if self.depth < 2:
            kinds, weights = [*kinds, self.loop, self.branch], [*weights, 18, 14]
        self.rnd.choices(kinds, weights)[0](scope)

    def write(self, scope: Scope) -> None:
        rows, cols = shape = self.shape(scope)
        at = self.rnd.randrange(rows), self.rnd.randrange(cols)
        value = self.rnd.choice([5.0, -0.0, -3.5, 1000.0])
        self.line(f"pl.tile.write({self.tile(scope, shape)}, [{at[0]}, {at[1]}], {value})")

    def compute(self, scope: Scope) -> None:
        shape, made = self.shape(scope), self.name("v")
        a, b = self.tile(scope, shape), self.tile(scope, shape)
        self.line(f"{made} = {self.rnd.choice(COMPUTED).format(a=a, b=b)}")
        scope.append((made, shape))

    def reshape(self, scope: Scope) -> None:
        rows, cols = shape = self.shape(scope)
        to = (rows // 2, cols * 2) if rows > 1 and (cols < 16 or self.rnd.random() < 0.5) else (rows * 2, cols // 2)
        made = self.name("v")
        self.line(f"{made} = pl.reshape({self.tile(scope, shape)}, [{to[0]}, {to[1]}])")
        scope.append((made, to))

    def window(self, scope: Scope) -> None:
        rows, cols = shape = self.shape(scope)
        if rows >= 4:
            half, made = rows // 2, self.name("v")
            start = self.rnd.choice([0, half])
            self.line(f"{made} = pl.slice({self.tile(scope, shape)}, [{half}, {cols}], [{start}, 0])")
            scope.append((made, (half, cols)))

    def bits(self, scope: Scope) -> None:
        shape, (as_bits, made) = self.shape(scope), (self.name("v"), self.name("v"))
        self.line(f"{as_bits} = pl.reinterpret_view({self.tile(scope, shape)}, dtype=pl.INT32)")
        if self.rnd.random() < 0.5:
            self.line(f"pl.tile.write({as_bits}, [0, 1], 1065353216)")
        self.line(f"{made} = pl.reinterpret_view({as_bits}, dtype=pl.FP32)")
        scope.append((made, shape))

    def narrowed(self, scope: Scope) -> None:
        shape, (part, made) = self.shape(scope), (self.name("v"), self.name("v"))
        rows, cols = (self.rnd.randrange(1, n + 1) for n in shape)
        self.line(f"{part} = pl.tile.set_validshape({self.tile(scope, shape)}, {rows}, {cols})")
        if self.rnd.random() < 0.4:
            self.line(f"pl.tile.write({part}, [0, 0], 2.5)")
        fill = self.rnd.choice(["fillpad", "fillpad", "fillpad_inplace"])
        self.line(f"{made} = pl.{fill}({part}, pad_value=pl.PadValue.zero)")
        scope.append((made, shape))

    def turned(self, scope: Scope) -> None:
        rows, cols = shape = self.shape(scope)
        if rows % 8 == 0 and cols % 8 == 0:
            made = self.name("v")
            self.line(f"{made} = pl.transpose({self.tile(scope, shape)}, axis1=0, axis2=1)")
            scope.append((made, (cols, rows)))

    def loop(self, scope: Scope) -> None:
        shapes = [self.shape(scope) for _ in range(self.rnd.choice([1, 2, 2]))]
        inits = [self.tile(scope, shape) for shape in shapes]
        args, results = [[self.name(letter) for _ in shapes] for letter in "cr"]
        count = self.rnd.choice([1, 2, 3])
        self.line(f"for {self.name('i')}, ({', '.join(args)},) in pl.range({count}, "
                  f"init_values=({', '.join(inits)},)):")  # fmt: skip
        self.block([*scope, *zip(args, shapes)], results, shapes, self.rnd.randrange(1, 5))
        scope += zip(results, shapes)

    def branch(self, scope: Scope) -> None:
        shape, asked, result = self.shape(scope), self.name("s"), self.name("r")
        at = self.rnd.randrange(min(4, shape[1]))
        self.line(f"{asked} = pl.tile.read({self.tile(scope, shape)}, [0, {at}])")
        self.line(f"if {asked} > {self.rnd.choice([0.0, -1.0, 1.0])}:")
        self.block(list(scope), [result], [shape], self.rnd.randrange(4))
        self.line("else:")
        self.block(list(scope), [result], [shape], self.rnd.randrange(4))
        scope.append((result, shape))

    def block(self, scope: Scope, results: list[str], shapes: list[tuple[int, int]], count: int) -> None:
        """Write a block that yields tiles of some shapes."""
        self.depth += 1
        for _ in range(count):
            self.statement(scope)
        given = [self.tile(scope, shape) for shape in shapes]
        self.line(f"{', '.join(results)} = pl.yield_({', '.join(given)})")
        self.depth -= 1


def random_text(seed: int) -> str:
    """Return a program that stores a sum of all its whole tiles, as they are in the end."""
    writer = Writer(seed)
    scope: Scope = [("t0", WHOLE), ("t1", WHOLE)]
    for _ in range(writer.rnd.randrange(4, 12)):
        writer.statement(scope)
    total = "t0"
    for name in [name for name, shape in scope if shape == WHOLE][1:]:
        added = writer.name("u")
        writer.line(f"{added} = pl.add({total}, pl.mul({name}, 0.25))")
        total = added
    return HEAD + "\n".join(writer.lines) + f"\n        return pl.store({total}, [0, 0], y)\n"


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_tiles_changed_in_place(target: str) -> None:
    done = changed = 0
    for seed in range(40):
        text = random_text(seed)
        program = tilegg.parse(text)
        lowered = tilegg.lower(program, target, contract="exact", memo=None)
        report = tilegg.equivalent(program, lowered.program, samples=6)
        assert report.equal, f"seed {seed}: {report}\n{text}"
        try:
            check(lowered, target, seed=seed)
        except TileggError as problem:
            assert "shares its storage" in str(problem) or "behind the fill" in str(problem), f"seed {seed}: {problem}"
            continue
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}: {problem}\n{text}") from problem
        done += 1
        changed += "tile.write" in text
    assert done >= 24 and changed >= 20
