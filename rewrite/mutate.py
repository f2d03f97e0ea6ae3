"""Mutation: wrong rules, rows, facts, transfer functions and encodings, injected to see that the checks notice.

A :class:`Mutant` replaces a few attributes for a while. :func:`catch` runs what would notice in practice: the
check of the mutated rule, the check of the mutated transfer function, then audits of random programs. Mutants
that are no mistake (a mode where no mode matters, a wider bound) are not made, see the generators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..ir.op import OPS
from ..ir.program import Program
from ..rules.check import check_rule
from ..rules.check_proofs import available, prove, to_prove
from ..rules.check_values import check_values
from ..rules.rule import RULES
from ..rules.target import load_target
from . import engine as engines
from .audit import audit
from .random_programs import Kind, random_program

#: One replacement: an object with an attribute name, or a dict or list with a key.
Patch = tuple[Any, Any, Any]


@dataclass(frozen=True)
class Mutant:
    """One injected mistake. ``rule`` or ``operation`` names the check that should notice first.

    ``aim``: rules whose programs are audited before others.
    """

    name: str
    kind: str
    patches: tuple[Patch, ...]
    rule: str = ""
    operation: str = ""
    aim: tuple[str, ...] = ()


@dataclass(frozen=True)
class Catch:
    """What noticed a mutant: ``by`` is rule, proof, values, audit or crash."""

    by: str
    text: str


def mutants() -> list[Mutant]:
    """Return every mutant, grouped by kind."""
    from .mutants_encoding import encoding_mutants
    from .mutants_facts import fact_mutants
    from .mutants_rules import rule_mutants

    made = [*rule_mutants(), *fact_mutants(), *encoding_mutants()]
    names = [m.name for m in made]
    assert len(names) == len(set(names)), "two mutants share a name"
    return made


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Put the mistake in place; everything is as before afterwards."""
    before = [(where, key, _get(where, key)) for where, key, _ in mutant.patches]
    saved = getattr(engines._local, "engine", None)
    try:
        for where, key, value in mutant.patches:
            _set(where, key, value)
        if mutant.kind in ("rule", "table"):
            engines._local.engine = engines.Engine(RULES.values())
        yield
    finally:
        for where, key, value in before:
            _set(where, key, value)
        if saved is not None:
            engines._local.engine = saved
        elif hasattr(engines._local, "engine"):
            del engines._local.engine


def _get(where: Any, key: Any) -> Any:
    return where[key] if isinstance(where, dict | list) else getattr(where, key)


def _set(where: Any, key: Any, value: Any) -> None:
    if isinstance(where, dict | list):
        where[key] = value
    else:
        setattr(where, key, value)


@lru_cache(maxsize=2048)
def trial(seed: int, aim: str = "") -> tuple[Program, str | None, str]:
    """Return the program, target name and contract that mutants are audited on; ``aim``: the rule it is written for."""
    target = ("a5", "a2a3", "a5", None)[seed % 4]
    restricted = load_target(target) if target and seed % 3 else None
    if aim:
        kind = Kind(size=3, rule=aim, composites=RULES[aim].bound is not None)
        contract = "contracted" if RULES[aim].contract == "contracted" else "exact"
        return random_program(100_000 + seed, kind), target or "a5", contract
    program = random_program(100_000 + seed, Kind(target=restricted, calls=seed % 3 == 1))
    return program, target, ("faithful", "exact")[seed % 2]


def catch(mutant: Mutant, programs: int = 250, samples: int = 150) -> Catch | None:
    """Return what notices the mutant first, ``None`` if nothing does."""
    try:
        with applied(mutant):
            return _caught(mutant, programs, samples)
    except Exception as problem:  # a mutant may break anything, which is noticed as well
        return Catch("crash", f"{type(problem).__name__}: {problem}"[:200])


def _caught(mutant: Mutant, programs: int, samples: int) -> Catch | None:
    if mutant.rule:
        for seed in range(3):
            found = check_rule(RULES[mutant.rule], samples, seed)
            if found.failures:
                return Catch("rule", found.failures[0])
        if available() and to_prove(RULES[mutant.rule]):
            proof = prove(RULES[mutant.rule])
            if not proof.ok and not proof.floats:
                return Catch("proof", proof.reason)
    if mutant.operation:
        checked = check_values(OPS[mutant.operation], 4 * samples)
        if checked.failures:
            return Catch("values", checked.failures[0])
    aims = [*(mutant.aim[k % len(mutant.aim)] for k in range(programs if mutant.aim else 0)), *[""] * programs]
    for seed, aim in enumerate(aims):
        program, target, contract = trial(seed, aim)
        report = audit(program, load_target(target) if target else None, seed, contract, runs=2)
        if report.problems:
            return Catch("audit", f"program {seed}: {report.problems[0]}")
    return None


def survivors(found: Sequence[tuple[Mutant, Catch | None]]) -> list[str]:
    """Return the names of the mutants that nothing noticed."""
    return [m.name for m, c in found if c is None]
