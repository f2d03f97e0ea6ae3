# ruff: noqa: E501  (one program a line)
"""Mutated texts: reading one either raises a diagnostic or gives a sound program that reads back the same."""

import re
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.text import parse, print_program
from tilegg.ir.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from test_text_ssa import BODIES, SCALARS
from text_kernels import KERNELS, incore

TEXTS = [*KERNELS.values(), *(incore(b, params=SCALARS) for b in BODIES.values())]
_TOKEN = re.compile(r"\w+|\n *|[^\w\s]| +")
PIECES = [
    "pl", "pl.", "pld.", "(", ")", "[", "]", ",", ":", "=", "\n", "\n    ", "        ", "0", "1", "-1", "2.5", "1e999",
    "True", "None", '"rint"', "n", "x", "t", "out", "self", "pl.FP32", "pl.INT8", "pl.tile.add", "pl.exp", "pl.cast",
    "pl.range", "pl.yield_", "break", "continue", "return", "if", "else", "for", "in", "while", "with", "not", "and", "+",
    "*", "//", "%", "<", "lambda", "yield", "**", "@", "#", "'", '"', "\\", "\0", "é", "\ud800", "pl.while_", "pl.cond(",
    "init_values=(0,)", "pl.const(1, pl.INT32)", "pl.dynamic('N')", "[0, 0]", "[16, 64]", "pass", "del", ";", "attrs={}",
]  # fmt: skip


def mutate(text, edits):
    """Apply edits to the text's tokens: delete, double, swap with another place, replace or insert a piece."""
    tokens = _TOKEN.findall(text)
    for kind, at, to, piece in edits:
        if not tokens:
            break
        i, j = at % len(tokens), to % len(tokens)
        if kind == 0:
            del tokens[i : i + 1 + to % 4]
        elif kind == 1:
            tokens[i:i] = tokens[i : i + 1 + to % 6]
        elif kind == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif kind == 3:
            tokens[i] = piece
        elif kind == 4:
            tokens.insert(i, piece)
        else:
            tokens[i] = tokens[j]
    return "".join(tokens)


def check(text):
    """The property; returns whether the text was read."""
    try:
        program = parse(text, "k.py")
    except TileggError as problem:
        assert problem.diagnostics and all(d.severity == "error" for d in problem.diagnostics)
        return False
    assert verify(program) == []
    assert parse(print_program(program)) == program
    return True


EDIT = st.tuples(st.integers(0, 5), st.integers(0, 2000), st.integers(0, 2000), st.sampled_from(PIECES))


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(TEXTS), st.lists(EDIT, min_size=1, max_size=6))
def test_mutated_texts(text, edits):
    check(mutate(text, edits))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_strings_of_pieces(pieces):
    check(" ".join(pieces))
    check(incore(" ".join(pieces)))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_arbitrary_strings(text):
    check(text)
    check(incore(text.replace("\n", "\n    ")))


def test_the_mutations_reach_both_outcomes():
    outcomes = {check(mutate(BODIES_TEXT, [(5, k * 7, k * 13, "")])) for k in range(60)}
    assert outcomes == {True, False}


BODIES_TEXT = incore(BODIES["branch in loop"], params=SCALARS)
