"""Lowered programs are the same in another process, whatever numbers that has given already."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from tilegg import lower, parse
from tilegg.extract.explain import explain
from tilegg.extract.lowered import Lowered
from tilegg.extract.pickling import rule_name, rule_number
from tilegg.extract.price import Pricer
from tilegg.extract.report_json import to_json
from tilegg.ir.op import OPS
from tilegg.ir.program import Program
from tilegg.rules.rule import RULES
from tilegg.rules.target import load_target

CORPUS = Path(__file__).parents[2] / "benchmarks" / "corpus"
KERNELS = ("quant_int8", "rope_halves")

#: Another process, whose numbers of shapes and attributes are others: it has lowered something else before.
PROBE = """
import json, pickle, sys
from pathlib import Path
import tilegg
from tilegg.extract.explain import explain

tilegg.lower(tilegg.parse(Path(sys.argv[1]).read_text()), "a5")
for result in pickle.load(sys.stdin.buffer):
    print(json.dumps(explain(result).to_json()))
"""


def program(kernel: str) -> Program:
    return parse((CORPUS / f"{kernel}.py").read_text(), f"{kernel}.py")


def lowered(kernel: str) -> Lowered:
    return lower(program(kernel), "a5", memo=None)


def shown(result: Lowered) -> list[Any]:
    return [result.totals, result.plain, result.program, to_json(result), explain(result).to_json()]


@pytest.mark.parametrize("kernel", KERNELS)
def test_round_trip(kernel: str) -> None:
    result = lowered(kernel)
    again = pickle.loads(pickle.dumps(result))
    assert shown(again) == shown(result)
    pricer = Pricer(load_target("a5"))
    for one, other in zip(result.functions, again.functions, strict=True):
        assert one.instructions == other.instructions
        for mine, theirs in zip(one.regions, other.regions, strict=True):
            keys = [[n.key for n in nodes] for nodes in mine.graph.classes]
            assert keys == [[n.key for n in nodes] for nodes in theirs.graph.classes]
            assert pricer.nodes(mine.graph) == pricer.nodes(theirs.graph)
    assert shown(copy.deepcopy(result)) == shown(result)


def test_another_process_with_numbers_of_its_own() -> None:
    results = [lowered(kernel) for kernel in KERNELS]
    words = [sys.executable, "-c", PROBE, str(CORPUS / "sinkhorn.py")]
    done = subprocess.run(words, input=pickle.dumps(results), capture_output=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == [json.loads(json.dumps(explain(r).to_json())) for r in results]


def test_pool_of_processes() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for kernel in reversed(KERNELS):
            back = pool.submit(lower, program(kernel), "a5").result()
            assert shown(back) == shown(lowered(kernel))
            assert pool.submit(to_json, back).result() == to_json(back)


def test_declarations_are_the_same_objects() -> None:
    assert all(pickle.loads(pickle.dumps(decl)) is decl for decl in OPS.values())
    assert [rule_number(rule_name(r.number)) for r in RULES.values()] == [r.number for r in RULES.values()]
    assert rule_name(0) == 0 == rule_number(0)
