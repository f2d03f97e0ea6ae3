"""Hypothesis strategies: dtypes, hostile elements and tiles, facts, inputs of programs, and programs themselves.

    @given(st.data())
    def test_kernel(data):
        program = data.draw(programs(target="a5", dtypes=["FP32", "BF16"], size=6))
        assert_lowering_correct(program, "a5", inputs=8)

Everything is made from the declarations: a dtype or an operation that is declared is drawn. Values shrink towards few
unusual elements and those towards simple numbers, programs towards few operations on simple dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..ir.codes import bits_of, decode, from_bits
from ..ir.convert import ROUND_MODES
from ..ir.diagnostics import error
from ..ir.dimexpr import evaluate
from ..ir.dtypes import BOOL, DTYPES, INDEX, DType, parse_dtype
from ..ir.equivalence import Session, Setup
from ..ir.inputs import FREE, INDICES, POINTED, SIZES, Domain, Pools, as_domain, extreme_values, inside_pool
from ..ir.program import Function, Param, Program
from ..ir.samples import hostile, special_values
from ..ir.shrink import complexity
from ..ir.tilearray import Arr
from ..ir.types import PtrType, ScalarType, TensorType, TileType
from .strategy_programs import SIMPLE, programs

try:
    from hypothesis import strategies as st
except ImportError as problem:  # the package works without
    raise ImportError("the strategies of tilegg.testing need Hypothesis: pip install 'tilegg[testing]'") from problem

__all__ = [
    "dtypes", "elements", "facts", "inputs", "programs", "round_modes", "saturations", "tiles",
]  # fmt: skip

#: Elements of a tile up to which each is drawn by itself, so that each shrinks by itself.
_FEW = 16
#: Boundary values kept for a pair of dtypes.
_NEAR = 256


def dtypes(kinds: str = "any", names: Iterable[str | DType] | None = None) -> st.SearchStrategy[DType]:
    """Draw a dtype with element values; ``kinds``: any, float, int (no INDEX, no BOOL); ``names``: only these.

    Raises TG004 for an unknown name or kind.
    """
    if kinds not in ("any", "float", "int"):
        raise error("TG004", f"{kinds!r} is no kind of dtypes", hint="any, float or int")
    chosen = known_dtypes(names)
    if kinds != "any":
        chosen = [d for d in chosen if (d.is_float if kinds == "float" else d.is_int and d is not INDEX)]
    return st.sampled_from(chosen)


def known_dtypes(names: Iterable[str | DType] | None = None) -> list[DType]:
    """Return the dtypes of some names, or all with values, simple ones first."""
    if names is not None:
        return [parse_dtype(n) if isinstance(n, str) else n for n in names]
    every = [d for d in DTYPES.values() if d.is_numeric and d not in (BOOL, INDEX)]
    return sorted(every, key=lambda d: SIMPLE.index(d.name) if d.name in SIMPLE else len(SIMPLE))


def round_modes() -> st.SearchStrategy[str]:
    """Draw a round mode by name."""
    return st.sampled_from(sorted(ROUND_MODES, key=lambda m: (m not in ("rint", "round"), m)))


def saturations() -> st.SearchStrategy[str | None]:
    """Draw a saturation word: the dtype's own behaviour, on, or off."""
    return st.sampled_from([None, "on", "off"])


# -- elements --------------------------------------------------------------------------------------------------------


def elements(
    dtype: str | DType, *, fact: Any = None, near: Iterable[str | DType] = ()
) -> st.SearchStrategy[Any]:
    """Draw one element, as a zero-dimensional storage array.

    Zeros of both signs, subnormals, range ends, powers of two and their neighbours, infinities, NaNs with payloads,
    random bits; ties and boundaries of the ``near`` dtypes. ``fact``: a range ``(lo, hi)``, ``"finite"`` or a Domain.
    """
    known = _dtype(dtype)
    return _codes(known, _domain(fact), tuple(map(_dtype, near))).map(
        lambda code: from_bits(np.array([code], np.uint64), known)[0]
    )


def _dtype(given: str | DType) -> DType:
    return parse_dtype(given) if isinstance(given, str) else given


def _domain(fact: Any) -> Domain:
    return FREE if fact is None else as_domain(fact, "the elements")


def _codes(dtype: DType, domain: Domain, near: tuple[DType, ...]) -> st.SearchStrategy[int]:
    """Draw the bit code of an element."""
    pools = [st.sampled_from(pool) for pool in _pools(dtype, domain, near)]
    if domain.free and dtype.has_nan and dtype.inf_code is not None and dtype.bits > 8 and not dtype.taper:
        payload = st.integers(dtype.inf_code + 1, dtype.magnitude_mask)
        pools.append(st.builds(lambda p, s: p | s, payload, st.sampled_from([0, dtype.sign_bit])))
    if domain.free:
        pools.append(st.integers(0, (1 << dtype.bits) - 1))
    return st.one_of(pools)


@lru_cache(maxsize=256)
def _pools(dtype: DType, domain: Domain, near: tuple[DType, ...]) -> tuple[tuple[int, ...], ...]:
    """Return lists of codes inside the domain, each from simple to unusual."""
    rng = np.random.default_rng(0)
    lists = [extreme_values(dtype), special_values(dtype)]
    lists += [hostile(dtype, other, rng, _NEAR) for other in near]
    if not domain.free:
        lists.append(inside_pool(dtype, domain, rng))
    kept = (values[domain.holds(decode(values, dtype))] for values in lists)
    return tuple(_ordered(values, dtype) for values in kept if values.size)


def _ordered(values: Arr, dtype: DType) -> tuple[int, ...]:
    codes = np.unique(bits_of(values, dtype)).astype(np.uint64)
    numbers = decode(from_bits(codes, dtype), dtype).tolist()
    return tuple(int(c) for _, c in sorted(zip(map(complexity, numbers), codes.tolist())))


# -- tiles -----------------------------------------------------------------------------------------------------------


def tiles(
    dtype: str | DType,
    shape: Sequence[int],
    valid: Sequence[int] | None = None,
    *,
    fact: Any = None,
    near: Iterable[str | DType] = (),
) -> st.SearchStrategy[Arr]:
    """Draw a storage array of a shape with hostile elements.

    ``valid``: the leading part with elements of interest; the rest is one plain value. ``fact`` and ``near`` as for
    :func:`elements`. Small tiles are drawn element by element; of large ones a part, which shrinks, is full of hostile
    elements and the rest plain.
    """
    known, domain, others = _dtype(dtype), _domain(fact), tuple(map(_dtype, near))
    inner = tuple(shape) if valid is None else tuple(valid)
    count = math.prod(inner)
    flat = _each(known, domain, others, count) if count <= _FEW else _dense(known, domain, others, count)

    def placed(part: Arr) -> Arr:
        whole = np.full(tuple(shape), _plain(known, domain), known.storage)
        whole[tuple(slice(0, n) for n in inner)] = part.reshape(inner)
        return whole

    return flat.map(placed)


def _plain(dtype: DType, domain: Domain) -> Any:
    """Return the simplest element of the domain."""
    return from_bits(np.array([_pools(dtype, domain, ())[0][0]], np.uint64), dtype)[0]


def _each(dtype: DType, domain: Domain, near: tuple[DType, ...], count: int) -> st.SearchStrategy[Arr]:
    one = _codes(dtype, domain, near)
    return st.lists(one, min_size=count, max_size=count).map(lambda c: from_bits(np.array(c, np.uint64), dtype))


@st.composite
def _dense(draw: st.DrawFn, dtype: DType, domain: Domain, near: tuple[DType, ...], count: int) -> Arr:
    """Draw hostile elements at once, of which a run is kept: at first mostly all, in the end as few as possible."""
    seed, turn = draw(st.integers(0, 0xFFFF)), draw(st.integers(0, 6))
    # From the end, so that the run can shrink to one element anywhere.
    back, length = min(draw(st.integers(0, 4 * count)), count - 1), min(draw(st.integers(0, 4 * count)), count)
    start = count - 1 - back
    hostile_ones = Pools((dtype, *near)).elements(count, dtype, domain, np.random.default_rng(seed), turn)
    out: Arr = np.full(count, _plain(dtype, domain), dtype.storage)
    out[start : start + length] = hostile_ones[start : start + length]
    return out


# -- inputs of a program ---------------------------------------------------------------------------------------------


def facts(program: Program | Function, function: str | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Draw facts about a program's parameters: for some of them a range, or that they are finite."""
    session = Session(Setup(program, program, function=function))
    rows = {name: _fact(dtype) for name, dtype in session.dtypes.items()}
    return st.fixed_dictionaries({}, optional=rows)


def _fact(dtype: DType) -> st.SearchStrategy[Any]:
    low = 0 if dtype.has_zero else 1
    top = [n for n in (1, 2, 7, 15, 100, 127, 255, 448, 1024, 32767) if n <= dtype.max_value]
    ends = st.sampled_from(top or [low])
    ranges = [st.builds(lambda hi: (low, hi), ends)]
    if dtype.signed:
        ranges.append(st.builds(lambda hi: (-min(hi, -int(dtype.min_value)), hi), ends))
    if dtype.is_float:
        ranges.append(st.just("finite"))  # type: ignore[arg-type]
    return st.one_of(ranges)


def inputs(
    program: Program | Function,
    *,
    facts: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
    function: str | None = None,
) -> st.SearchStrategy[dict[str, Any]]:
    """Draw inputs of a function by parameter name, as :func:`tilegg.run` takes them.

    Ranges that the program promises with ``assume`` are kept, and ``facts`` as :func:`assert_equivalent` takes them.
    Elements come from the boundaries of every dtype in the program. Dynamic dimensions are drawn unless ``dims`` has
    them. Raises TG030 for facts that fit no parameter.
    """
    session = Session(Setup(program, program, "exact", facts or {}, dims or {}, function))
    return _inputs(session)


@st.composite
def _inputs(draw: st.DrawFn, session: Session) -> dict[str, Any]:
    drawer = session.drawer
    sizes = {name: draw(st.sampled_from(SIZES)) for name in drawer.names} | session.dims
    out: dict[str, Any] = {}
    for p in session.fa.params:
        if p.direction != "Out" or isinstance(p.value.type, PtrType):
            value = draw(_input(session, p, sizes))
            if value is not None:
                out[p.value.name] = value
    return out


def _input(session: Session, p: Param, sizes: Mapping[str, int]) -> st.SearchStrategy[Any]:
    name, t = p.value.name, p.value.type
    domain, near = session.domains.get(name, FREE), session.drawer.others
    match t:
        case ScalarType(dtype=dtype):
            if name in sizes:
                return st.just(sizes[name])
            if dtype is INDEX:
                fits = [i for i in INDICES if domain.lo <= i <= domain.hi]
                return st.sampled_from(fits or [math.ceil(domain.lo)])
            return elements(dtype, fact=domain, near=near).map(lambda e: decode(np.array([e]), dtype)[0].item())
        case TensorType(dtype=dtype) | TileType(dtype=dtype):
            dims = t.valid_shape if isinstance(t, TileType) else t.shape
            known = [evaluate(d, sizes) for d in dims]
            shape = [SIZES[0] if n is None else max(n, 0) for n in known]
            return tiles(dtype, shape, fact=domain, near=near)
        case PtrType(dtype=dtype):
            return tiles(dtype, (POINTED,), fact=domain, near=near)
    return st.none()
