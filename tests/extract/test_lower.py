"""Lowering: never costlier than the plain lowering, right on random programs, deterministic, well named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tilegg.extract import ilp
from tilegg.extract import lower as lower_module
from tilegg.extract.dag import Problem, Solution, solve
from tilegg.extract.lower import lower
from tilegg.extract.lowered import Lowered, Totals
from tilegg.extract.memo import Memo
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP4, FP16, FP32, INT8, INT32, UINT16
from tilegg.ir.equivalence import equivalent
from tilegg.ir.program import Block, Op, Program, Value, walk
from tilegg.ir.text import parse, print_program
from tilegg.rewrite.graph import OPERATION, Graph
from tilegg.rewrite.knowledge import Knowledge
from tilegg.rewrite.region import Region
from tilegg.rewrite.saturate import Plan, saturate

from .programs import QUANTISE, Maker, chain, quantise, random_program

ARCHES = ("a2a3", "a5")
OBJECTIVES = ("cycles", "instructions", "accuracy")


def lowered_or_none(program: Program, arch: str, **options: object) -> Lowered | None:
    """Lower, or return ``None`` where the target has no legal chain for some cast."""
    try:
        return lower(program, arch, **options)  # type: ignore[arg-type]
    except TileggError as e:
        assert {d.code for d in e.diagnostics} <= {"TG020", "TG021", "TG022"}
        return None


def ops(program: Program) -> list[Op]:
    """Return every operation in program order."""
    return [s for f in program.functions for s in walk(f.body) if isinstance(s, Op)]


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("contract", ["faithful", "exact"])
def test_never_costlier_than_plain(arch: str, contract: str) -> None:
    legal = gains = 0
    for seed in range(16):
        program = random_program(seed, arch)
        for objective in OBJECTIVES:
            found = lowered_or_none(program, arch, objective=objective, contract=contract)
            if found is not None:
                legal += 1
                assert found.totals.rank(objective) <= found.plain.rank(objective), (seed, objective)
                if objective == "cycles":
                    assert found.totals.cycles <= found.plain.cycles
                gains += found.totals.rank(objective) < found.plain.rank(objective)
                assert contract == "faithful" or found.totals.inexact == 0
    assert legal > 16 and gains > legal // 4  # the sample is no empty one


@pytest.mark.parametrize("arch", ARCHES)
def test_exact_lowerings_of_random_programs_are_equivalent(arch: str) -> None:
    checked = 0
    for seed in range(100, 130):
        program = random_program(seed, arch, size=8)
        found = lowered_or_none(program, arch, contract="exact")
        if found is not None:
            report = equivalent(program, found.program, samples=3)
            assert report.equal, f"seed {seed}\n{report.render()}\n{print_program(found.program)}"
            checked += 1
    assert checked >= 10


@pytest.mark.parametrize("arch", ARCHES)
def test_every_cast_of_a_lowered_program_is_native(arch: str) -> None:
    for seed in range(200, 220):
        found = lowered_or_none(random_program(seed, arch), arch)
        for op in ops(found.program) if found else ():
            if op.name == "tile.cast":
                pair = op.operands[0].type.dtype.name, op.result.type.dtype.name  # type: ignore[union-attr]
                assert pair in found.target.casts  # type: ignore[union-attr]


SIN_AND_COS = """
import pypto.language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 64])
        return pl.store(pl.add(pl.tile.sin(t), pl.tile.cos(t)), [0, 0], out)
"""


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_an_exact_search_without_time_gives_the_best_so_far(arch: str, seconds: float) -> None:
    memo = Memo()
    hurried = lower(parse(SIN_AND_COS), arch, exact=True, time_limit=seconds, memo=memo)
    plain = lower(parse(SIN_AND_COS), arch)
    assert hurried.totals.rank("cycles") <= plain.totals.rank("cycles")
    assert ("TG026" in [d.code for d in hurried.remarks]) == (hurried.optimum != "proved")
    assert lower(parse(SIN_AND_COS), arch, exact=True, time_limit=10.0, memo=memo).optimum == "proved"


def test_an_exact_search_that_stops_says_so_with_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    def knows_nothing(p: Problem) -> Solution:
        return replace(solve(p), bound=0)

    memo = Memo()
    monkeypatch.setattr(ilp, "solve", knows_nothing)
    found = lower(parse(SIN_AND_COS), "a5", exact=True, time_limit=0.0, memo=memo)
    (remark,) = [d for d in found.remarks if d.code == "TG026"]
    assert "limit of 0 s" in remark.message and "--time-limit" in (remark.hint or "")
    assert found.optimum["gap"] > 0 and f"{found.gap:.2%}" in remark.message
    # More time is another question: what was remembered does not answer it.
    proved = lower(parse(SIN_AND_COS), "a5", exact=True, time_limit=10.0, memo=memo)
    assert proved.optimum == "proved" and not proved.remarks


def test_a_plain_lowering_after_a_stopped_search_is_not_called_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower_module, "solve_exact", lambda *_: Solution({}, 10**15, 1))
    monkeypatch.setattr(lower_module, "chosen_totals", lambda *_: Totals(10**6, 1e9))
    found = lower(chain(FP32, BF16, FP32), "a5", exact=True, memo=None)
    assert found.totals == found.plain
    assert found.optimum["gap"] > 0 and "TG026" in [d.code for d in found.remarks]


CORPUS = Path(__file__).parents[2] / "benchmarks" / "corpus"


def test_an_exhausted_search_is_remarked() -> None:
    text = (Path(__file__).parents[2] / "examples" / "rope_index.py").read_text(encoding="utf-8")
    found = lower(parse(text), "a2a3", node_limit=1, memo=None)
    assert found.totals.rank("cycles") <= found.plain.rank("cycles")
    assert "TG026" in [d.code for d in found.remarks]


@pytest.mark.parametrize("objective", ["cycles", "instructions", "accuracy"])
@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_chains_that_cannot_pay_are_not_missed(arch: str, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [parse(p.read_text(encoding="utf-8")) for p in sorted(CORPUS.glob("r*.py"))]
    programs += [random_program(seed, arch) for seed in range(20)]

    def solutions() -> tuple[list[int], int]:
        found = [lower(p, arch, objective=objective, memo=None) for p in programs]
        results = [r for x in found for f in x.functions for r in f.regions]
        assert all(r.solution.cost == r.solution.bound for r in results)
        return [r.solution.cost for r in results], sum(r.graph.size for r in results)

    few, small = solutions()
    monkeypatch.setattr("tilegg.rewrite.offers.unbeaten", lambda target, found, laid: found)
    every, large = solutions()
    # Chains that begin alike are said in the same words, so that less may be needed, never more.
    assert all(a <= b for a, b in zip(few, every, strict=True)) and small < large


def find_nothing(region: Region, knowledge: Knowledge, plan: Plan) -> Graph:
    """Stand in for saturation: an e-graph with what the program wrote, as if no rule had been tried."""
    graph = saturate(region, knowledge, plan)
    written = [[n for n in nodes if n.kind != OPERATION or n.origin >= 0] for nodes in graph.classes]
    return replace(graph, classes=written, stopped="stopped at the test's wish")


def test_a_search_that_finds_nothing_falls_back_to_the_plain_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilegg.extract.lower.saturate", find_nothing)
    fallbacks = 0
    for seed in range(300, 312):
        program = random_program(seed, "a5", size=8)
        found = lowered_or_none(program, "a5", contract="exact", memo=None)
        if found is not None:
            assert found.totals.rank("cycles") <= found.plain.rank("cycles")
            fallbacks += any(r.fallback for f in found.functions for r in f.regions)
            report = equivalent(program, found.program, samples=3)
            assert report.equal, report.render()
    assert fallbacks >= 3


def test_plain_takes_the_shortest_chain_the_contract_admits() -> None:
    faithful = lower(chain(FP32, INT8), "a2a3", objective="instructions")
    assert faithful.plain.instructions == 4 and faithful.plain.inexact == 0  # the mode odd makes it exact
    single = lower(chain(INT32, FP16), "a2a3", objective="instructions")
    assert (single.plain.instructions, single.plain.inexact) == (3, 1)
    exact = lower(chain(INT32, FP16), "a2a3", objective="instructions", contract="exact")
    assert (exact.plain.instructions, exact.plain.inexact) == (4, 0)


def test_lossless_round_trips_vanish() -> None:
    found = lower(chain(BF16, FP32, BF16), "a5")
    assert [op.name for op in ops(found.program)] == ["tile.load", "tile.store"]
    assert (found.totals.instructions, found.plain.instructions) == (2, 4)


def test_real_roundings_stay() -> None:
    found = lower(chain(FP32, BF16, FP32), "a2a3")
    assert [op.name for op in ops(found.program)].count("tile.cast") == 2


def test_the_quantisation_tail_shortens() -> None:
    found = lower(quantise(), "a2a3")
    casts = [op for op in ops(found.program) if op.name == "tile.cast"]
    assert [op.result.type.dtype.name for op in casts] == ["FP16", "INT8"]  # type: ignore[union-attr]
    assert found.plain.instructions - found.totals.instructions == 1  # FP32 → INT32 → FP16 → INT8 was native
    report = equivalent(quantise(), found.program, samples=6)
    assert report.equal, report.render()


def test_illegal_pairs_are_errors_with_a_place() -> None:
    with pytest.raises(TileggError) as caught:
        lower(chain(UINT16, FP32), "a5")
    assert [d.code for d in caught.value.diagnostics] == ["TG020"]


@pytest.mark.parametrize("memo", [None, Memo()])
def test_lowering_is_deterministic(memo: Memo | None) -> None:
    first = [print_program(lower(random_program(s, "a5"), "a5", memo=None).program) for s in (4, 7)]
    for _ in range(2):
        again = [print_program(lower(random_program(s, "a5"), "a5", memo=memo).program) for s in (4, 7)]
        assert again == first


def test_the_memo_serves_other_names_and_spans() -> None:
    memo = Memo()
    one = lower(quantise(), "a5", memo=memo)
    text = QUANTISE.replace(" q =", " scaled =").replace("(q,", "(scaled,")
    other = parse(text, "renamed.py")
    two = lower(other, "a5", memo=memo)
    assert len(memo) == 1
    assert two.totals == one.totals
    renamed = next(op for op in ops(two.program) if op.result.name == "scaled")
    assert renamed.span is not None and renamed.span.file == "renamed.py"


def test_new_names_do_not_collide() -> None:
    once = lower(chain(INT32, BF16), "a5").program
    twice = lower(once, "a5").program
    names = [op.result.name for op in ops(twice)]
    assert len(names) == len(set(names))
    # A name that a new one would take is in use further down.
    m = Maker()
    x = m.load(INT32)
    m.store(m.cast(x, BF16))
    taken = next(op.result.name for op in ops(lower(m.program(), "a5").program) if "tmp" in op.result.name)
    m.statements.append(Op("tile.load", ops(m.program())[0].operands, {}, (Value(taken, x.type),)))
    m.store(Value(taken, x.type))
    found = [op.result.name for op in ops(lower(m.program(), "a5").program)]
    assert len(found) == len(set(found)) and taken in found


def test_values_are_defined_before_they_are_used() -> None:
    for arch in ARCHES:
        for seed in range(400, 415):
            found = lowered_or_none(random_program(seed, arch, size=16), arch)
            if found is None:
                continue
            f = found.program.functions[0]
            known = {p.value.name for p in f.params}
            for op in (s for s in walk(f.body) if isinstance(s, Op)):
                assert {o.name for o in op.operands if isinstance(o, Value)} <= known, seed
                known.add(op.result.name)


LOOP = """
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def k(
        self,
        x: pl.Tensor[[64, 64], pl.BF16],
        y: pl.Tensor[[64, 64], pl.BF16],
        out: pl.Out[pl.Tensor[[64, 64], pl.BF16]],
    ) -> pl.Tensor[[64, 64], pl.BF16]:
        for i in pl.range(0, 4):
            t: pl.Tile[[16, 64], pl.BF16] = pl.load(x, [i * 16, 0], [16, 64])
            unused: pl.Tile[[16, 64], pl.BF16] = pl.load(y, [i * 16, 0], [16, 64])
            w = pl.cast(t, target_type=pl.FP32)
            b = pl.cast(w, target_type=pl.BF16)
            out = pl.store(b, [i * 16, 0], out)
        return out
"""


def test_loop_bodies_are_lowered_and_their_dead_loads_dropped() -> None:
    program = parse(LOOP, "loop.py")
    found = lower(program, "a5")
    tile_ops = [op.name for op in ops(found.program) if op.name.startswith("tile.")]
    assert tile_ops == ["tile.load", "tile.store"]
    assert found.plain.instructions - found.totals.instructions == 3
    listed = [i.op.name for i in found.functions[0].instructions if i.count]
    assert listed == tile_ops
    report = equivalent(program, found.program, samples=3)
    assert report.equal, report.render()


def test_totals_are_the_sum_of_the_instructions() -> None:
    for seed in range(5):
        found = lowered_or_none(random_program(seed, "a5"), "a5")
        if found is not None:
            every = [i for f in found.functions for i in f.instructions]
            assert found.totals.instructions == sum(i.count for i in every)
            assert found.totals.cycles == pytest.approx(sum(i.cycles for i in every))


def test_exact_solver_and_search_agree() -> None:
    for seed in range(8):
        found = lowered_or_none(random_program(seed, "a5"), "a5", memo=None)
        exact = lowered_or_none(random_program(seed, "a5"), "a5", exact=True, memo=None)
        assert (found is None) == (exact is None)
        if found is not None and exact is not None and found.optimum == "proved":
            assert found.totals.rank("cycles") == exact.totals.rank("cycles")


def test_no_target_leaves_casts_alone() -> None:
    found = lower(chain(FP32, FP4), None)
    assert [op.name for op in ops(found.program)] == ["tile.load", "tile.cast", "tile.store"]
    assert found.remarks == []


def test_unknown_options_are_coded_errors() -> None:
    for options in ({"objective": "speed"}, {"contract": "loose"}):
        with pytest.raises(TileggError) as caught:
            lower(chain(FP32, FP16), "a5", **options)
        assert caught.value.diagnostics[0].code == "TG040"
    with pytest.raises(TileggError) as caught:
        lower(chain(FP32, FP16), "a9")
    assert caught.value.diagnostics[0].code == "TG040"


def test_empty_functions_pass() -> None:
    program = chain(FP32, FP16)
    empty = replace(program, functions=(replace(program.functions[0], body=Block(())),))
    found = lower(empty, "a5")
    assert found.program == empty and found.totals.instructions == 0 and found.optimum == "proved"


@pytest.mark.parametrize("wrong", [False, True, {}, "shared", Memo])
def test_what_is_no_memo_is_diagnosed(wrong: object) -> None:
    with pytest.raises(TileggError, match="memo is a Memo or None, not") as caught:
        lower(chain(INT32, FP16), "a5", memo=wrong)  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].code == "TG040" and "None goes without" in caught.value.diagnostics[0].hint
    for right in (None, Memo()):
        assert lower(chain(INT32, FP16), "a5", memo=right).totals.legal


def test_a_mask_that_an_unknown_operation_gives_passes_through() -> None:
    text = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 64])
        m = pl.tile.cmps(t, 0.5, cmp_type=4)
        r = pl.tile.sel(pl.tile.mask_not(pl.tile.foo(m)), t, t)
        return pl.store(r, [0, 0], out)
"""
    for arch in ("a2a3", "a5"):
        assert "pl.tile.mask_not" in print_program(lower(parse(text), arch).program)
