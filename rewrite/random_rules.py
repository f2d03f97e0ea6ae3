"""Left sides of rules as parts of random programs: terms of the pattern become operations, its variables values.

Dtypes, modes and shapes agree with the pattern and the rule's conditions on them. Values often keep the conditions
on values (a fact holds because of how the value is made) and sometimes just miss them (see ``random_sources``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.dtypes import DTYPES, FP32, INT32, DType
from ..ir.literals import misfit
from ..ir.op import OPS, Kind, OpDecl
from ..ir.ops._result import mask_of
from ..ir.program import Const, Operand, Value, index
from ..ir.types import TileType, tile
from ..rules.check import code_condition, code_variables, roles, saturations_fit
from ..rules.check_dims import OF_A_ROW, made_up_lists, window_rows
from ..rules.check_draw import sides_of
from ..rules.check_eval import Assignment, Role, attributes, operations_of
from ..rules.computed import COMPUTED, asked
from ..rules.facts import FACTS, GIVEN
from ..rules.rule import Condition, Pattern, Rule, Term, Var, variables
from ..rules.terms import (
    CODE_DTYPES,
    CODE_SATURATIONS,
    DTYPE_CODES,
    LITERAL,
    MODE_CODES,
    child_params,
    literal_value,
    signature,
)
from .random_calls import Refused
from .random_sources import make

if TYPE_CHECKING:
    from .random_programs import Maker

#: Draws of dtypes and operands until the pattern is a program, and how many of them are of every dtype.
_TRIES, _ANY_DTYPE = 30, 3
_COMMON = tuple(map(DTYPES.__getitem__, ("FP32", "FP16", "INT32", "BF16", "INT16", "INT8", "UINT8")))
#: Rules that speak of several windows of one tile are written for several.
_SEVERAL = frozenset({"windows"})


def write_left_side(m: Maker, rule: Rule) -> Value:
    """Append the left side of a rule and return its value; raises ``Refused``."""
    for turn in range(_TRIES):
        mark = m.mark()
        try:
            return _Instance(m, rule, turn >= _ANY_DTYPE).write()
        except Refused:
            m.back(mark)
    raise Refused(f"no operands suit the left side of {rule.name}")


class _Instance:
    """One way to write a rule's left side."""

    def __init__(self, m: Maker, rule: Rule, common: bool) -> None:
        self.m, self.rule, self.common = m, rule, common
        self.rng = np.random.default_rng(m.rng.getrandbits(32))
        self.codes = self._codes()
        self.sides = sides_of(rule)
        rows, cols = m.kind.shape
        plain = _shaped(rule.lhs) or m.rng.random() < 0.8
        self.base = tile((rows, cols), FP32, None if plain else m.valid)
        self.values: dict[Var, Operand] = {}
        self.made: dict[Pattern, Operand] = {}

    def _codes(self) -> Assignment:
        """Draw dtypes, modes and saturations that the rule's conditions admit, or now and then do not.

        Raises ``Refused``.
        """
        known = FACTS.keys() - GIVEN
        asked = [c for c in self.rule.when if c.relation in known or c.relation == "!="]
        if self.m.rng.random() < 0.08:
            asked = []
        for _ in range(_TRIES):
            codes = {v: self._code(v) for v in _code_variables(self.rule)}
            if saturations_fit(self.rule.lhs, codes) and all(code_condition(c, codes) for c in asked):
                return codes
        raise Refused

    def _code(self, v: Var) -> int:
        rng = self.m.rng
        match v.kind:
            case "dtype":
                palette = self.m.palette if rng.random() < 0.6 else _COMMON if self.common else self.m.known()
                return DTYPE_CODES[rng.choice(palette).name]
            case "mode":
                return rng.choice(list(MODE_CODES.values()))
            case "saturation":
                return rng.randrange(len(CODE_SATURATIONS))
            case "rest":
                return rng.randrange(OF_A_ROW)
            case _:
                return 0

    def write(self) -> Value:
        """Append the pattern, once or with other dims and modes again, its variables shared."""
        where = roles(self.rule, self.codes, self.rng)
        self._literals()
        for v, role in where.items():
            if v not in self.values:
                self.values[v] = self._value(v, role)
        root = self._term(self.rule.lhs)
        several = any(c.relation in _SEVERAL for c in self.rule.when)
        if several or self.m.rng.random() < 0.1:
            self.made.clear()
            for v in self.codes:
                if v.kind == "rest":
                    self.codes[v] += 1
            self._term(self.rule.lhs)
        if self.rule.meets:
            self._term(self.rule.rhs)
        assert isinstance(root, Value)
        self._convert(root)
        return root

    def _convert(self, root: Value) -> None:
        """Convert the result or an operand now and then: facts are asked for where something is converted."""
        tiles = [v for v in self.values.values() if isinstance(v, Value) and isinstance(v.type, TileType)]
        for v in (root, *tiles):
            if isinstance(v.type, TileType) and self.m.rng.random() < 0.15:
                self.m.any_cast(v, INT32 if v.type.dtype is FP32 and self.m.rng.random() < 0.5 else None)

    # -- variables -------------------------------------------------------------------------------------------------

    def _literals(self) -> None:
        """Give the literals of computed tables values that often have a row."""
        for c in self.rule.when:
            if c.relation not in COMPUTED:
                continue
            row = asked(c, lambda a: self.codes[a] if isinstance(a, Var) else int(a))
            drawn = row.table.example(self.rng, row.kinds[0])
            given = row.row(*drawn) or drawn
            for name, literal in zip(row.literals, drawn):
                self._bind(name, literal)
            for name, literal in zip(row.gives, given):
                self._bind(name, literal)

    def _bind(self, name: Any, literal: Const) -> None:
        if self.m.rng.random() < 0.15:
            off = self.m.rng.choice((1.0, 0.5)) if isinstance(literal.value, float) else 1
            other = Const(literal.value + off, literal.dtype)
            literal = literal if misfit(other, other.dtype) else other
        self.values.setdefault(name, literal)

    def _value(self, v: Var, role: Role) -> Operand:
        kind, dtype = role
        m = self.m
        if kind == "mask":
            return self._mask()
        if kind == "scalar":
            # What a comparison compares with has a dtype of its own, of which a number must be fit to become one.
            if any(c.relation == "argument" and v in c.args for c in self.rule.when):
                return m.scalar(dtype)
            must = any(c.relation in ("literal", "nonzero") and v in c.args for c in self.rule.when)
            must |= dtype.is_float and "tile.cmps" in operations_of(self.rule.lhs)
            literals = 0.15 if self.rule.lhs.op.startswith("scalar.") else 0.85
            return m.number(dtype) if must or m.rng.random() < literals else m.scalar(dtype)
        if self.rule.lhs.op == "tile.assume":
            return m.load(self._type(v, dtype))
        return make(m, self._type(v, dtype), self._asked(v))

    def _asked(self, v: Var) -> list[tuple[str, DType | None]]:
        """Return the facts that the rule asks of a variable or of a term with it, each with its dtype if any."""
        found = []
        for c in self.rule.when:
            subject = c.args[0] if c.args else None
            if subject == v or (isinstance(subject, Term) and v in variables(subject)):
                found.append((c.relation, self._dtype_in(c)))
        return found

    def _dtype_in(self, c: Condition) -> DType | None:
        codes = [self.codes.get(a) if isinstance(a, Var) else a for a in c.args[1:]]
        return CODE_DTYPES[codes[0]] if codes and isinstance(codes[0], int) and c.relation == "fits" else None

    def _type(self, v: Var, dtype: DType) -> TileType:
        rows, cols = self.m.kind.shape
        shape: tuple[Any, ...] = {"row": (window_rows(self.codes, rows), 1), "col": (1, cols)}.get(
            self.sides.get(v, ""), (rows, cols)
        )
        valid = None
        if self.base.valid is not None:
            valid = tuple(min(n, most) for n, most in zip(self.base.valid, shape))
        return tile(shape, dtype, valid)

    def _mask(self) -> Value:
        m = self.m
        known = [v for v in m.tiles if v.type == mask_of(self.base)]
        draw = m.rng.random()
        if known and draw < 0.4:
            return m.rng.choice(known)
        if draw < 0.6:
            return m.load(mask_of(self.base))
        dtype = m.rng.choice((FP32, INT32))
        x = make(m, tile(self.base.shape, dtype, self.base.valid), [])
        return m.emit("tile.cmps", lhs=x, rhs=m.number(dtype), cmp_type=m.rng.randrange(6))

    # -- terms -----------------------------------------------------------------------------------------------------

    def _term(self, p: Pattern) -> Operand:
        if isinstance(p, Var):
            return self.values[p]
        if p.op == LITERAL:
            return Const(*literal_value(*(int(a) for a in p.args)))  # type: ignore[arg-type]
        if p not in self.made:
            self.made[p] = self._operation(p)
        return self.made[p]

    def _operation(self, p: Term) -> Operand:
        decl = OPS[p.op]
        params = decl.operand_params
        given: dict[str, Any] = {params[i].name: self._term(c) for i, c in zip(child_params(decl), p.children)}
        if p.op == "tile.assume":
            return self._promise(given["tile"])
        args = [self.codes[a] if isinstance(a, Var) else a for a in p.args]
        seed = next((self.codes[a] for a in p.args if isinstance(a, Var) and a.kind == "rest"), 0)
        names = signature(decl)
        if "rest" in names and isinstance(p.args[names.index("rest")], Var):
            args[names.index("rest")] = -1
            given.update(self._rest(decl, seed, given))
        attrs = attributes(decl, args)
        if "dtype" in decl.by_name:
            attrs["dtype"] = CODE_DTYPES[args[0]]
        for name in ("mode", "saturation_mode"):
            if name in attrs and attrs[name] == decl.defaults.get(name):
                del attrs[name]
        if attrs.get("saturation_mode") == "on" and not CODE_DTYPES[args[0]].is_float:
            del attrs["saturation_mode"]
        return self.m.emit(p.op, **given, **attrs)

    def _rest(self, decl: OpDecl, seed: int, given: dict[str, Any]) -> dict[str, Any]:
        """Return list operands that suit the operation's tile, and flags."""
        tiles = [o.type for o in given.values() if isinstance(o, Value) and isinstance(o.type, TileType)]
        rows, cols = (tiles[0] if tiles else self.base).shape
        lists = made_up_lists(decl, seed, rows, cols)  # type: ignore[arg-type]
        out: dict[str, Any] = {}
        for q in decl.operand_params:
            if q.kind is Kind.DIMS and q.name in lists:
                out[q.name] = tuple(map(index, lists[q.name]))
        for q in decl.attr_params:
            if q.kind is Kind.FLAG:
                out[q.name] = self.m.rng.random() < 0.2
        return out

    def _promise(self, x: Any) -> Value:
        dtype: DType = x.type.dtype
        top = min(100, int(min(dtype.max_value, 100)))
        return self.m.promise(x, 0 if not dtype.signed else -top, top)


@lru_cache(maxsize=512)
def _code_variables(rule: Rule) -> list[Var]:
    return code_variables(rule)


def _shaped(p: Pattern) -> bool:
    """Tell whether a pattern has operations that take whole tiles only."""
    if isinstance(p, Var):
        return False
    return (p.op in OPS and any(q.kind is Kind.DIMS for q in OPS[p.op].operand_params)) or any(map(_shaped, p.children))


