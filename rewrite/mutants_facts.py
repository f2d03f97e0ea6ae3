"""Wrong facts: conditions that hold too often, value sets that are too small.

Not made, since they are no mistakes: sets of operations whose bounds are wide anyway (``exp``, ``sqrt``) with
a bound moved by one step, flags that an operation never sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..ir import valueset as vs
from ..ir.dtypes import FP32, INDEX
from ..ir.op import OPS
from ..ir.program import Const, For
from ..ir.valueset import ValueSet
from ..rules import check, facts
from ..rules.computed import COMPUTED
from ..rules.rule import RULES
from . import amax, knowledge, saturate
from .mutate import Mutant


def fact_mutants() -> list[Mutant]:
    """Return the mutants of fact tables, transfer functions, the value-set primitives and the walk over programs."""
    return [*_conditions(), *_tables(), *_literals(), *_transfers(), *_primitives(), *_walk()]


# -- conditions --------------------------------------------------------------------------------------------


def _conditions() -> Iterator[Mutant]:
    """``fits`` and ``finite`` rows that look away from a part of the value set."""
    holds = facts.value_fits
    variants: dict[str, Callable[[ValueSet, Any], bool]] = {
        "always": lambda v, d: True,
        "without NaN": lambda v, d: holds(replace(v, nan=False), d),
        "without infinities": lambda v, d: holds(replace(v, inf=False), d),
        "without negative zero": lambda v, d: holds(replace(v, negative_zero=False), d),
        "whatever the grid": lambda v, d: holds(replace(v, grid=max(v.grid, 0)), d),
        "whatever the significand": lambda v, d: holds(replace(v, sig=min(v.sig, 3)), d),
        "of the upper bound only": lambda v, d: holds(replace(v, lo=max(v.lo, 0), hi=max(v.hi, 0)), d),
        "of the lower bound only": lambda v, d: holds(replace(v, hi=min(v.hi, 0), lo=min(v.lo, 0)), d),
        "by width": lambda v, d: v.bits <= d.bits,
        "of half the range": lambda v, d: holds(replace(v, lo=_half(v.lo), hi=_half(v.hi)), d),
    }
    for name, fn in variants.items():
        yield Mutant(f"fits: {name}", "fact", ((saturate, "value_fits", fn),))
    always: Any = lambda v, *code: True  # noqa: E731
    for name in ("finite", "index", "positive", "ordered", "one_zero", "within"):
        yield Mutant(f"{name}: always", "fact", ((saturate, f"value_{name}", always),), aim=_asking(name))
    index, positive = facts.value_index, facts.value_positive
    others: dict[str, tuple[str, Callable[[ValueSet], bool]]] = {
        "index: halves too": ("value_index", lambda v: index(replace(v, grid=max(v.grid, 0)))),
        "index: with NaN": ("value_index", lambda v: index(replace(v, nan=False))),
        "index: with infinities": ("value_index", lambda v: index(replace(v, inf=False, sign=0))),
        "index: of any size": ("value_index", lambda v: index(replace(v, lo=max(v.lo, 0), hi=min(v.hi, 1)))),
        "positive: by the upper bound": ("value_positive", lambda v: positive(replace(v, lo=v.hi))),
    }
    for name, (where, wrong) in others.items():
        yield Mutant(name, "fact", ((saturate, where, wrong),), aim=_asking(name.split(":")[0]))


def _asking(relation: str) -> tuple[str, ...]:
    """Return the rules that ask for a fact: programs with their left sides show whether it is right."""
    return tuple(r.name for r in RULES.values() if any(c.relation == relation for c in r.when))


def _half(x: Any) -> Any:
    return x // 2 if isinstance(x, int) else x / 2


def _tables() -> Iterator[Mutant]:
    """Dtype tables with rows too many; rules that read them are checked with the same tables."""
    right = facts.dtype_holds

    def variant(relation: str, fn: Callable[..., bool]) -> Any:
        return lambda name, dtypes: fn(*dtypes) if name == relation else right(name, dtypes)

    narrows: dict[str, Callable[..., bool]] = {
        "the other way round": lambda a, b: right("narrows", (b, a)),
        "any integers": lambda a, b: a.is_int and b.is_int,
        "by bits": lambda a, b: a.is_int and b.is_int and b.bits <= a.bits,
        "floats too": lambda a, b: a.min_value <= b.min_value and b.max_value <= a.max_value,
        "upper ends only": lambda a, b: a.is_int and b.is_int and b.max_value <= a.max_value,
    }
    for name, fn in narrows.items():
        table = variant("narrows", fn)
        patches = ((facts, "dtype_holds", table), (check, "dtype_holds", table))
        yield Mutant(f"narrows: {name}", "table", patches, rule="cast.fuse.integer-narrowing")
    floats_too = variant("is_integer", lambda d: True)
    patches = ((facts, "dtype_holds", floats_too), (check, "dtype_holds", floats_too))
    yield Mutant("is_integer: floats too", "table", patches, rule="cast.mode.irrelevant-integer")
    always: Any = lambda dtype, saturation: True  # noqa: E731
    patches = ((facts, "infinity_kept", always), (check, "infinity_kept", always))
    yield Mutant("keeps_infinity: always", "table", patches, rule="cast.identity")
    by_word: Any = lambda dtype, saturation: saturation != 2  # noqa: E731
    patches = ((facts, "infinity_kept", by_word), (check, "infinity_kept", by_word))
    yield Mutant("keeps_infinity: on for off", "table", patches, rule="cast.fuse.exact-first")


def _literals() -> Iterator[Mutant]:
    """Tables of literals with wrong rows; the first rule that asks for each is checked, then programs for all."""
    wrong: dict[str, tuple[str, Callable[..., Any]]] = {
        "inverse: of every number": ("inverse", lambda c, d: _one(1 / c.value, d) if c.value and d.is_float else None),
        "minus: the number itself": ("minus", lambda c, d: (c,)),
        "power: one bit more": ("power", _changed("power", lambda k, mask: (Const(k.value + 1, INDEX), mask))),
        "power: the number as mask": ("power", _changed("power", lambda k, m: (k, Const(m.value + 1, INDEX)))),
        "signed_power: a bit below the sign": (
            "signed_power", _changed("signed_power", lambda k, m, n: (k, m, Const(n.value - 1, INDEX))),
        ),
        "as_signed: one more": ("as_signed", _changed("as_signed", lambda n: (Const(n.value + 1, INDEX),))),
        "whole: of every number": ("whole", lambda c, d: (Const(int(c.value), INDEX),) if abs(c.value) < 1e6 else None),
        "halving: one bit more": ("halving", _changed("halving", lambda k: (Const(k.value + 1, INDEX),))),
        "product: a sum": ("product", lambda a, b, d: _one(a.value + b.value, d)),
    }
    for name, (table, fn) in wrong.items():
        patch = (COMPUTED, table, replace(COMPUTED[table], function=fn))
        yield Mutant(name, "table", (patch,), rule=_asking(table)[0], aim=_asking(table))


def _one(value: float, dtype: Any) -> tuple[Const, ...]:
    return (Const(float(value), FP32),)


def _changed(table: str, change: Callable[..., Any]) -> Callable[..., Any]:
    right = COMPUTED[table].function

    def function(*given: Any) -> Any:
        row = right(*given)
        return None if row is None else change(*row)

    return function


# -- transfer functions ------------------------------------------------------------------------------------

Change = Callable[[ValueSet], ValueSet]

_CHANGES: dict[str, Change] = {
    "upper bound one step too low": lambda v: replace(v, hi=_down(v.hi)) if v.lo < v.hi else v,
    "lower bound one step too high": lambda v: replace(v, lo=-_down(-v.lo)) if v.lo < v.hi else v,
    "without NaN": lambda v: replace(v, nan=False),
    "without infinities": lambda v: replace(v, inf=False),
    "without negative zero": lambda v: replace(v, negative_zero=False),
    "grid too coarse": lambda v: replace(v, grid=v.grid + 1),
    "significand too short": lambda v: replace(v, sig=max(v.bits - 1, 0)),
    "positive": lambda v: replace(v, lo=max(v.lo, 0), hi=max(v.hi, 0)),
}
_SPECIALS = ("without NaN", "without infinities", "without negative zero")
_TIGHT = ("tile.cast", "tile.maximum", "tile.minimum", "tile.neg", "tile.row_max", "tile.col_min", "tile.transpose",
          "tile.concat", "tile.col_expand", "tile.full", "tile.row_expand_max", "tile.maximums")  # fmt: skip
_EXACT_SUMS = ("tile.add", "tile.sub", "tile.adds")


def _down(x: Any) -> Any:
    return x - 1 if isinstance(x, int) else math.nextafter(x, -math.inf)


def _transfers() -> Iterator[Mutant]:
    """The set of one operation changed."""
    for name in _TIGHT:
        for what in _CHANGES:
            if not (name == "tile.concat" and what in _SPECIALS):
                yield _transfer(name, what)
    for name in _EXACT_SUMS:
        for what in ("without NaN", "without infinities", "without negative zero", "positive"):
            yield _transfer(name, what)
    for name in ("tile.mul", "tile.muls", "tile.row_expand_mul"):
        for what in ("without NaN", "without infinities", "without negative zero", "positive", "grid too coarse"):
            yield _transfer(name, what)
    for name, changes in {
        "tile.exp": ("without NaN", "without infinities"),
        "tile.sqrt": _SPECIALS,
        "tile.relu": ("without NaN", "without infinities", "upper bound one step too low", "grid too coarse"),
        "tile.abs": ("without NaN", "without infinities", "upper bound one step too low"),
        "tile.shrs": ("positive", "upper bound one step too low"),
        "tile.ci": ("upper bound one step too low", "positive"),
        "scalar.add": ("positive",),
        "scalar.min": ("upper bound one step too low",),
    }.items():
        for what in changes:
            yield _transfer(name, what)
    maximum = OPS["tile.maximum"].transfer[0]
    yield _replaced("tile.minimum", "the maximum's", maximum)
    yield _replaced("tile.abs", "the operand's", vs.same)
    yield _replaced("tile.neg", "the operand's", vs.same)
    yield _replaced("tile.sub", "the sum's", vs.add)
    yield _replaced("tile.maximums", "the scalar as written", vs.maximum)


def _transfer(name: str, what: str) -> Mutant:
    right, change = OPS[name].transfer[0], _CHANGES[what]
    return _replaced(name, what, lambda *sets, call: change(right(*sets, call=call)))


def _replaced(name: str, what: str, fn: Any) -> Mutant:
    return Mutant(f"values of {name}: {what}", "values", ((OPS[name].transfer, 0, fn),), operation=name)


# -- value-set primitives ----------------------------------------------------------------------------------


def _primitives() -> Iterator[Mutant]:
    """Casts of value sets that forget a case."""
    cast_to, to_int, to_float = vs.cast_to, vs._to_int, vs._to_float

    def keeps_when_fitting(v: ValueSet, dtype: Any, mode: str, saturate: Any = None) -> ValueSet:
        return v if vs.representable(v, dtype) else cast_to(v, dtype, mode, saturate)

    variants: dict[str, tuple[str, Any]] = {
        "clamped infinities forgotten": ("cast_to", keeps_when_fitting),
        "modes ignored": ("_to_int", lambda v, d, m, c: to_int(v, d, "trunc", c)),
        "always clamped": ("_to_int", lambda v, d, m, c: to_int(v, d, m, True)),
        "NaN to integer forgotten": ("_to_int", lambda v, d, m, c: to_int(replace(v, nan=False), d, m, c)),
        "infinity to integer forgotten": ("_to_int", lambda v, d, m, c: to_int(replace(v, inf=False), d, m, c)),
        "overflow to infinity forgotten": ("_to_float", lambda v, d, m, s: replace(to_float(v, d, m, s), inf=v.inf)),
        "underflow to -0 forgotten": (
            "_to_float", lambda v, d, m, s: replace(to_float(v, d, m, s), negative_zero=v.negative_zero)),
        "rounding outward forgotten": ("_outward", lambda x, dtype, direction: x),
        "significand kept": ("_to_float", lambda v, d, m, s: replace(to_float(v, d, m, s), sig=v.sig)),
    }  # fmt: skip
    for name, (where, fn) in variants.items():
        yield Mutant(f"value sets of casts: {name}", "values", ((vs, where, fn),), operation="tile.cast")


# -- the walk over a program -------------------------------------------------------------------------------


def _walk() -> Iterator[Mutant]:
    """Loop counters, loop-carried values, branches and amax scaling."""
    loop = knowledge.Knowledge._define_loop

    def short_counter(self: Any, s: For) -> None:
        loop(self, s)
        known = self._known[s.var.name]
        self._known[s.var.name] = replace(known, hi=max(known.lo, known.hi - 1))

    def late_counter(self: Any, s: For) -> None:
        loop(self, s)
        known = self._known[s.var.name]
        self._known[s.var.name] = replace(known, lo=min(known.lo + 1, known.hi))

    def carried_as_first(self: Any, s: For) -> None:
        loop(self, s)
        for c, result in zip(s.carried, s.results):
            self._known[c.arg.name] = self._known[result.name] = self.of(c.init)

    def one_branch(then: ValueSet, orelse: ValueSet, *, call: Any) -> ValueSet:
        return then

    walk = knowledge.Knowledge
    yield Mutant("loops: counter ends early", "values", ((walk, "_define_loop", short_counter),))
    yield Mutant("loops: counter starts late", "values", ((walk, "_define_loop", late_counter),))
    yield Mutant("loops: carried as at the start", "values", ((walk, "_define_loop", carried_as_first),))
    yield Mutant("branches: the first side only", "values", ((vs, "union", one_branch),))
    bound = amax.scaled_bound

    def halved(op: Any, ops: Any) -> Any:
        found = bound(op, ops)
        return found and (found[0] / 2, found[1])

    def always_finite(op: Any, ops: Any) -> Any:
        found = bound(op, ops)
        return found and (found[0], True)

    yield Mutant("amax: half the bound", "values", ((knowledge, "scaled_bound", halved),))
    yield Mutant("amax: always finite", "values", ((knowledge, "scaled_bound", always_finite),))
    yield Mutant("amax: any axis", "values", ((amax, "_amax", _any_axis),))


def _any_axis(value: Any, axis: str, dtype: Any, ops: Any) -> Any:
    op = amax._definition(value, ops)
    inner = amax._definition(op.operands[0], ops) if op is not None else None
    return (1.0, inner.operands[0]) if inner is not None and inner.operands else (0.0, None)
