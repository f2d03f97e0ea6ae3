"""How operations are written as terms: the argument codes of each constructor, derived from the declaration.

A term is ``op(dtype, shape, extras..., children...)``: the result dtype's code, the interned shape, then the
attributes rules look at, each as an integer, then ``rest``, an interned number for everything else the
operation carries (literal dims, other attributes). Types are arguments, not analyses: see the measurements
in ``docs/engine.md``.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from ..ir import ops as _ops  # noqa: F401  (registers the operations)
from ..ir.convert import ROUND_MODES
from ..ir.dtypes import DTYPES, DType
from ..ir.op import OPS, Kind, OpDecl
from .interned import Interned

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
    plain = [p for p in decl.attr_params if p.kind not in _CODED and p.name != implied_dtype(decl)]
    lists = [p for p in decl.operand_params if p.kind is Kind.DIMS]
    if plain or lists:
        names.append("rest")
    return tuple(names)


@lru_cache(maxsize=1024)
def implied_dtype(decl: OpDecl) -> str | None:
    """Return the attribute that names the result's dtype, which a term has as its first argument anyway."""
    named = [p.name for p in decl.attr_params if p.kind is Kind.DTYPE and p.name not in decl.defaults]
    return named[0] if named and decl.name.startswith("tile.") else None


@lru_cache(maxsize=1024)
def child_params(decl: OpDecl) -> tuple[int, ...]:
    """Return the operand positions that are children of a term (scratch tiles and lists are not)."""
    skip = (Kind.DIMS, Kind.SCRATCH)
    return tuple(i for i, p in enumerate(decl.operand_params) if p.kind not in skip)


@lru_cache(maxsize=1024)
def constructor(decl_name: str) -> str:
    """Return the e-graph name of an operation."""
    return decl_name.replace(".", "_")


#: The e-graph's constructor of literals: a kind (see :func:`literal_codes`) and 64 bits, both integers.
LITERAL = "Lit"


def literal_codes(value: int | float, dtype: DType) -> tuple[int, int]:
    """Return a literal's argument codes: dtype (and whether it is written as a float), 64-bit pattern."""
    # The code space tells floats from integers, so that 1 and 1.0 in one dtype stay distinct terms.
    kind = DTYPE_CODES[dtype.name] * 2 + isinstance(value, float)
    if isinstance(value, float):
        return kind, int(struct.unpack("<q", struct.pack("<d", value))[0])
    low = int(value) & ((1 << 64) - 1)
    return kind, low - (1 << 64) if low >> 63 else low


def literal_value(kind: int, bits: int) -> tuple[int | float | bool, DType]:
    """Return the value and dtype that argument codes stand for."""
    dtype = CODE_DTYPES[kind // 2]
    if kind % 2:
        return float(struct.unpack("<d", struct.pack("<q", bits))[0]), dtype
    return (bool(bits) if dtype.kind == "bool" else bits), dtype


#: A ``rest`` code as other processes can read it: what it is known by, and what it stands for.
Rest = tuple[object, dict[str, Any], tuple[Any, ...]]

# Interned codes of what terms do not spell out. They only ever meet equality, so their order does not matter.
_rests = Interned[Rest]()


def rest_code(name: str, attrs: dict[str, Any], lists: tuple[Any, ...], operands: tuple[Any, ...]) -> int:
    """Return the ``rest`` code of an operation: its other attributes, and its operands if some are literal lists.

    ``lists``: the values of the list operands, which together with the attributes tell codes apart.
    """
    return rest_from(((name, tuple(sorted((k, repr(v)) for k, v in attrs.items())), lists), attrs, operands))


def rest_spelling(code: int) -> Rest:
    """Return a ``rest`` code without the number, which other processes give to something else."""
    return _rests[code]


def rest_from(spelled: Rest) -> int:
    """Return the ``rest`` code of this process for a spelling."""
    return _rests.code(spelled[0], spelled)


def plain_rest(name: str) -> int:
    """Return the ``rest`` code of an operation whose attributes are all left at their defaults."""
    lists = tuple(None for p in OPS[name].operand_params if p.kind is Kind.DIMS)
    return rest_code(name, {}, lists, tuple(None for _ in OPS[name].operand_params))


def plain_args(name: str, dtype: DType) -> tuple[int, ...]:
    """Return the argument codes of an operation on one dtype whose attributes are left at their defaults."""
    extra = (plain_rest(name),) * ("rest" in signature(OPS[name]))
    return (DTYPE_CODES[dtype.name], 0, *extra)


def rest_of(code: int) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return the attributes and operands behind a ``rest`` code."""
    return _rests[code][1:]


def rest_text(code: int) -> str:
    """Return what a ``rest`` code stands for as text, the same in every process."""
    return repr(_rests[code][0])


def saturation_code(word: str | None, dst: DType) -> int:
    """Return the code of a saturation word, the default for the destination filled in."""
    if word is None:
        return 0 if dst.is_float else 1
    return SATURATION_CODES[word]
