"""The audit on a sample of random programs, and injected mistakes that it (or a rule check) must notice."""

from __future__ import annotations

import pytest
from tilegg.extract.audit import LoweringAudit, audit_lowering
from tilegg.ir.inputs import Drawer, assumed_domains, dtypes_of
from tilegg.ir.interp import run
from tilegg.rewrite.audit import AuditReport, audit
from tilegg.rewrite.mutate import catch, mutants
from tilegg.rewrite.random_programs import Kind, random_program
from tilegg.rules.rule import RULES
from tilegg.rules.target import load_target

PROGRAMS = 25  # per target and contract
COMBINATIONS = [(arch, contract) for arch in ("a5", "a2a3") for contract in ("exact", "faithful")]


@pytest.mark.parametrize(("arch", "contract"), COMBINATIONS)
def test_every_node_has_its_class_value(arch: str, contract: str) -> None:
    target = load_target(arch)
    total = AuditReport()
    for seed in range(PROGRAMS):
        program = random_program(seed, Kind(target=target if seed % 3 else None))
        total.add(audit(program, target, seed, contract, runs=2))
    assert total.ok, total.problems[:3]
    assert total.nodes > 1000 and total.facts > 500 and total.sets > 500
    assert (total.approx > 0) == (contract == "faithful")
    assert {"cast.fuse.exact-first", "cast.road.exact.2"} <= set(total.rules)


def test_without_a_target_the_rules_are_audited_on_every_dtype() -> None:
    total = AuditReport()
    for seed in range(300, 330):
        total.add(audit(random_program(seed), None, seed, "exact", runs=2))
    assert total.ok, total.problems[:3]


@pytest.mark.parametrize(("arch", "contract"), COMBINATIONS)
def test_lowered_programs_compute_what_the_source_does_as_the_hardware_does_it(arch: str, contract: str) -> None:
    target = load_target(arch)
    total = LoweringAudit()
    for seed in range(500, 512):
        program = random_program(seed, Kind(target=target))
        total.add(audit_lowering(program, arch, seed, contract, runs=2))
    assert total.ok, total.problems[:3]
    assert total.outputs > 20 and total.refused < total.programs


def test_random_programs_are_the_same_for_a_seed_and_can_be_run() -> None:
    import numpy as np

    for seed in range(20):
        program = random_program(seed)
        assert random_program(seed) == program
        (f,) = program.functions
        inputs = Drawer(f, dtypes_of(f), assumed_domains(f), {}).draw(np.random.default_rng(seed), 0)
        assert run(program, inputs)


# -- mutation ----------------------------------------------------------------------------------------------


def test_there_are_many_mutants_of_every_kind() -> None:
    made = mutants()
    assert len(made) >= 100
    assert {m.kind for m in made} == {"rule", "row", "fact", "table", "values", "encoding"}
    mutated = {m.rule for m in made}
    assert set(RULES) <= mutated


SAMPLE = mutants()[5::19]


@pytest.mark.parametrize("name", [m.name for m in SAMPLE])
def test_mutant_is_caught(name: str) -> None:
    (mutant,) = [m for m in SAMPLE if m.name == name]
    assert catch(mutant, programs=60, samples=60) is not None


def test_the_rules_are_intact_after_mutation() -> None:
    total = audit(random_program(7), load_target("a5"), 7, "faithful")
    assert total.ok
