"""Which dtypes of an operation a target takes through other instructions, and why it takes none.

The operation is asked with the sample operands of :func:`tilegg.ir.takes.sample`: structured expansions and the fixed
expansions of :mod:`tilegg.extract.expansions` do what they do in a program.
"""

from __future__ import annotations

from functools import cache

from ..ir.diagnostics import TileggError
from ..ir.dtypes import DTYPES, DType
from ..ir.infer import result_types
from ..ir.op import Kind, OpDecl
from ..ir.program import Block, Function, Op, Param, Program, Return, Value
from ..ir.takes import sample, takes
from ..rewrite import engine as _engine
from ..rewrite.expand import EXPANSIONS, expand
from ..rewrite.region import regions
from ..rules.facts import CIRCUMVENTED
from ..rules.target import Legality, Target
from .baseline import plain
from .expansions import expansions
from .lower import lower_for
from .price import pricer_for

_loaded = _engine  # importing the engine declares the rules


def composed(decl: OpDecl, target: Target) -> dict[str, Legality]:
    """Return by dtype what a target says to an operation whose place other instructions take; empty for others.

    Only dtypes that the operation itself takes are asked for. Where a call names the dtype of its result, as a cast
    does, one dtype tells nothing.
    """
    named = any(p.kind is Kind.DTYPE and p.required for p in decl.attr_params)
    elsewhere = decl.name in EXPANSIONS or decl.name in CIRCUMVENTED or expansions(decl.name)
    if named or not decl.name.startswith("tile.") or not elsewhere:
        return {}
    asked = {name: sample_program(decl, dtype) for name, dtype in DTYPES.items() if takes(decl, dtype)}
    return {name: _verdict(program, target) for name, program in asked.items() if program is not None}


@cache
def sample_program(decl: OpDecl, dtype: DType) -> Program | None:
    """Return a function that is the operation on tiles of a dtype; ``None`` without sample operands."""
    given = sample(decl, dtype)
    if given is None:
        return None
    operands, attrs = given
    types = result_types(decl, operands, attrs, None) or ()
    results = tuple(Value(f"r{i}", t) for i, t in enumerate(types))
    params = tuple(Param(o, "In") for o in operands if isinstance(o, Value))
    body = Block((Op(decl.name, operands, attrs, results), Return(results)))
    return Program("", (Function("sample", params, types, body),))


def _verdict(program: Program, target: Target) -> Legality:
    pricer = pricer_for(target, False)
    try:
        (f,) = expand(program, target).functions
        if all(plain(r, {}, pricer, keys=False).totals.legal for r in regions(f.body, frozenset())):
            return Legality(True)
        lower_for(program, target, "faithful")
    except TileggError as problem:
        first = problem.diagnostics[0]
        return Legality(False, first.reason or first.message)
    return Legality(True)
