"""How operations are written as terms: the argument codes of each constructor, derived from the declaration.

A term is ``op(dtype, shape, extras..., children...)``: the result dtype's code, the interned shape, then the
attributes rules look at, each as an integer, then ``rest``, an interned number for everything else the
operation carries (literal dims, other attributes). Types are arguments, not analyses: see the measurements
in ``docs/engine.md``.
"""

from __future__ import annotations

from functools import lru_cache

from ..ir.convert import ROUND_MODES
from ..ir.dtypes import DTYPES, DType
from ..ir.op import Kind, OpDecl

#: dtype <-> code; also the code space of the fact tables.
DTYPE_CODES: dict[str, int] = {name: i for i, name in enumerate(DTYPES)}
CODE_DTYPES: tuple[DType, ...] = tuple(DTYPES.values())
MODE_CODES: dict[str, int] = {name: i for i, name in enumerate(ROUND_MODES)}
CODE_MODES: tuple[str, ...] = tuple(ROUND_MODES)
#: Saturation: 0 as the destination format does (floats only), 1 on, 2 off.
SATURATION_CODES: dict[str | None, int] = {None: 0, "on": 1, "off": 2}
CODE_SATURATIONS: tuple[str | None, ...] = (None, "on", "off")

_CODED = {Kind.MODE: "mode", Kind.SATURATION: "saturation", Kind.COMPARE: "compare"}


@lru_cache(maxsize=1024)
def signature(decl: OpDecl) -> tuple[str, ...]:
    """Return the names of a constructor's integer arguments, in order.

    ``("dtype", "shape", "source", "mode", "saturation", "road")`` for a cast: ``source`` is the operand's
    dtype, ``road`` is 1 for the last hop of an inexact chain. Operations with further attributes or literal
    dims end in ``rest``.
    """
    names = ["dtype", "shape"]
    if decl.name == "tile.cast":
        return (*names, "source", "mode", "saturation", "road")
    names += [_CODED[p.kind] for p in decl.attr_params if p.kind in _CODED]
    plain = [p for p in decl.attr_params if p.kind not in _CODED]
    lists = [p for p in decl.operand_params if p.kind is Kind.DIMS]
    if plain or lists:
        names.append("rest")
    return tuple(names)


@lru_cache(maxsize=1024)
def child_params(decl: OpDecl) -> tuple[int, ...]:
    """Return the operand positions that are children of a term (scratch tiles and lists are not)."""
    skip = (Kind.DIMS, Kind.SCRATCH)
    return tuple(i for i, p in enumerate(decl.operand_params) if p.kind not in skip)


@lru_cache(maxsize=1024)
def constructor(decl_name: str) -> str:
    """Return the e-graph name of an operation."""
    return decl_name.replace(".", "_")


def saturation_code(word: str | None, dst: DType) -> int:
    """Return the code of a saturation word, the default for the destination filled in."""
    if word is None:
        return 0 if dst.is_float else 1
    return SATURATION_CODES[word]
