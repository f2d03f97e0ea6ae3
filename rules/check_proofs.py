"""Proofs of integer and mask rules with Z3: both sides as expressions of one element, equal for every operand.

Elements of integer tiles are bit vectors, bits of masks truth values. FP32 numbers occur as exact fractions, an integer
over a power of two: an operation on them is taken only where its exact result is shown to be a number of FP32, so
that nothing is rounded. A rule that holds for one element this way holds for tiles: every operation here computes each
element of its result from the elements at that place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..ir.dtypes import DTYPES, FP32, DType
from ..ir.op import OPS
from ..ir.program import Const
from .check import code_condition, code_variables
from .check_eval import Assignment, operations_of, scalar_variables
from .check_words import INTEGER, SAME, Bits, Exact, Unproved, Words
from .computed import COMPUTED, asked, of_integers
from .facts import FACTS, MAGNITUDE
from .rule import Condition, Pattern, Rule, Term, Var
from .terms import CODE_DTYPES, CODE_MODES, DTYPE_CODES, LITERAL, literal_value, signature

#: Dtypes that a dtype variable stands for in proofs.
_INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
#: Operations that read or make masks.
_MASKS = frozenset({"tile.cmp", "tile.cmps", "tile.sel", "tile.sels", "tile.select", "tile.mask_not"})
_LARGEST = 2**24
#: Steps of the solver a query, some thirty seconds: steps, unlike seconds, are the same on every machine.
_STEPS = 500_000_000


@dataclass(frozen=True)
class Proof:
    """The outcome for one rule: ``dtypes`` it is proved for (all of which occur in it), or why it is not.

    ``floats``: the rule's conditions admit no integer dtype, so that there is nothing to prove.
    """

    rule: str
    dtypes: tuple[str, ...] = ()
    reason: str = ""
    floats: bool = False

    @property
    def ok(self) -> bool:
        return not self.reason


def available() -> bool:
    """Tell whether Z3 can be imported."""
    try:
        _z3()
    except ImportError:
        return False
    return True


def _z3() -> Any:
    return import_module("z3")


def to_prove(rule: Rule) -> bool:
    """Tell whether a rule is about integers or masks: it compares or selects, names an integer dtype, asks for numbers
    that only integers have, or does without what a target lacks on one.

    Recipes with a stated error are measured instead, composed conversions compared with the conversion, which rounds.
    """
    if rule.bound is not None or rule.phase == "compose":
        return False
    if (operations_of(rule.lhs) | operations_of(rule.rhs)) & _MASKS:
        return True
    asks = any(c.relation == "lacking" or of_integers(c) for c in rule.when)
    asks |= {c.relation for c in rule.when} == {"is_integer"}
    return asks or any(map(_named_integers, (rule.lhs, rule.rhs)))


def _named_integers(p: Pattern) -> list[str]:
    if isinstance(p, Var) or p.op == LITERAL:
        return []
    positions = [i for i, name in enumerate(signature(OPS[p.op])) if name in ("dtype", "source")]
    codes = [p.args[i] for i in positions]
    mine = [CODE_DTYPES[c].name for c in codes if isinstance(c, int) and CODE_DTYPES[c].is_int]
    return list(dict.fromkeys([*mine, *(name for child in p.children for name in _named_integers(child))]))


def prove(rule: Rule) -> Proof:
    """Prove a rule for every integer dtype its conditions admit; needs Z3."""
    done: list[str] = []
    unknown = [c.relation for c in rule.when if c.relation not in FACTS and c.relation != "!="]
    if unknown:
        return Proof(rule.name, (), f"nothing is said here of {unknown[0]}")
    try:
        for codes in _instances(rule):
            for values in _literals(rule, codes):
                _Lane(rule, codes, values).prove()
                done += _integer_names(rule, codes)
    except Unproved as problem:
        return Proof(rule.name, tuple(dict.fromkeys(done)), str(problem))
    except _z3().Z3Exception as problem:
        return Proof(rule.name, tuple(dict.fromkeys(done)), f"the sides have no common expression: {problem}")
    if not done:
        return Proof(rule.name, (), "no integer dtype satisfies its conditions", True)
    return Proof(rule.name, tuple(dict.fromkeys(done)))


def _instances(rule: Rule) -> Iterator[Assignment]:
    """Yield assignments of code variables: an integer dtype for each dtype variable, no two alike, every round mode."""
    variables = code_variables(rule)
    modes = [v for v in variables if v.kind == "mode"]
    names = _INTEGERS if any(v.kind == "dtype" for v in variables) or _free(rule) else ("INT32",)
    dtypes = [v for v in variables if v.kind == "dtype"]
    for i, name in enumerate(names):
        for mode in range(len(CODE_MODES)) if modes else (0,):
            codes: Assignment = dict.fromkeys(variables, 0)
            codes.update({v: DTYPE_CODES[_INTEGERS[(i + k) % len(_INTEGERS)]] for k, v in enumerate(dtypes)})
            codes.update(dict.fromkeys(modes, mode))
            codes[_FREE] = DTYPE_CODES[name]
            if all(code_condition(c, codes) for c in rule.when):
                yield codes


#: The dtype of what is only compared.
_FREE = Var("compared", "dtype")


def _free(rule: Rule) -> bool:
    return bool(operations_of(rule.lhs) & {"tile.cmp", "tile.cmps"})


def _integer_names(rule: Rule, codes: Assignment) -> list[str]:
    named = [CODE_DTYPES[c].name for v, c in codes.items() if v.kind == "dtype"]
    if _free(rule) or any(v.kind == "dtype" for v in code_variables(rule)):
        return named
    return _named_integers(rule.lhs) or _named_integers(rule.rhs) or ["INT32"]


def _literals(rule: Rule, codes: Assignment) -> Iterator[dict[Var, int | float]]:
    """Yield the literals of a rule's computed tables: every power of two they have, else variables."""
    tables = [c for c in rule.when if c.relation in COMPUTED]
    if not tables:
        yield {}
        return
    if len(tables) > 1:
        raise Unproved("literals of several tables have no expression here")
    (c,) = tables
    if c.relation in _SYMBOLIC or c.relation == "ascending":
        yield {}
        return
    row = asked(c, lambda a: codes[a] if isinstance(a, Var) else int(a))
    dtype = row.kinds[0]
    if row.table.inputs != 1 or not isinstance(dtype, DType):
        raise Unproved(f"the literals of {c.relation} have no expression here")
    for exponent in range(-31, 32):
        for number in (2.0**exponent, 2.0**exponent - 1):
            if number == int(number) or dtype.is_float:
                literal = Const(number if dtype.is_float else int(number), dtype)
                given = row.row(literal)
                if given is not None:
                    names, found = (*row.literals, *row.gives), (literal, *given)
                    yield {v: k.value for v, k in zip(names, found) if isinstance(v, Var)}


#: Tables whose rows are stated as an equation between variables: outputs by inputs.
_SYMBOLIC: dict[str, Callable[[Any], Any]] = {
    "minus": lambda c: -c, **dict.fromkeys(("whole", "as_held", "as_signed"), lambda c: c),
}  # fmt: skip


class _Lane:
    """One element of a rule's both sides."""

    def __init__(self, rule: Rule, codes: Assignment, literals: dict[Var, int | float]) -> None:
        self.z3, self.rule, self.codes = _z3(), rule, codes
        self.solver = self.z3.Solver()
        self.solver.set("rlimit", _STEPS)
        self.known: dict[Pattern, Any] = {}
        self.read_as: dict[Pattern, DType] = {}
        self.literals = literals
        self.scalars = scalar_variables(rule.lhs)

    def prove(self) -> None:
        """Raise :class:`Unproved` unless both sides are equal."""
        self._tables()
        left = self.value(self.rule.lhs)
        self._premises()
        right = self.value(self.rule.rhs)
        if isinstance(left, Exact | Bits) and type(left) is not type(right):
            raise Unproved("the sides are of different kinds")
        if isinstance(left, Exact):
            left, right = self._aligned(left, right)
        elif isinstance(left, Bits):
            left, right = left.bits, right.bits
        self._must(left == right, "the sides differ")

    def _must(self, claim: Any, why: str) -> None:
        """Check that a claim follows from the premises so far; it is one from then on."""
        self.solver.push()
        self.solver.add(self.z3.Not(claim))
        found = self.solver.check()
        shown = str(self.solver.model())[:160] if found == self.z3.sat else "undecided"
        self.solver.pop()
        if found != self.z3.unsat:
            raise Unproved(f"{why}: {shown}")
        self.solver.add(claim)

    # -- premises ------------------------------------------------------------------------------------------------

    def _tables(self) -> None:
        """Give the outputs of symbolic tables their value by the inputs."""
        for c in self.rule.when:
            if c.relation in _SYMBOLIC:
                source, target = (a for a in c.args if isinstance(a, Var) and a.kind == "value")
                self.known[source] = number = self.z3.BitVec(source.name, self._bits_of(c))
                self.known[target] = _SYMBOLIC[c.relation](number)
                if c.relation == "whole":
                    self.solver.add(number >= -MAGNITUDE, number <= MAGNITUDE)

    def _bits_of(self, c: Condition) -> int:
        (dtype,) = asked(c, lambda a: self.codes[a] if isinstance(a, Var) else int(a)).kinds
        assert isinstance(dtype, DType)
        return dtype.bits

    def _premises(self) -> None:
        for c in self.rule.when:
            if c.relation in ("index", "positive"):
                self._fact(c)
            elif c.relation == "ascending":
                lo, hi = (self.known[a] for a in c.args[:2])  # type: ignore[index]
                self.solver.add(self.z3.Not(Words(self.z3, self._dtype(self.rule.lhs)).less(hi, lo)))

    def _fact(self, c: Condition) -> None:
        subject = c.args[0]
        assert isinstance(subject, Var | Term)
        value = self.value(subject)
        number = value.number if isinstance(value, Exact) else value
        if c.relation == "positive":
            self.solver.add(number >= 0)
        elif isinstance(value, Exact) and value.shift == 0:
            self.solver.add(number >= -MAGNITUDE, number <= MAGNITUDE)

    # -- values --------------------------------------------------------------------------------------------------

    def value(self, p: Pattern) -> Any:
        """Return the expression of a pattern: a bit vector, a truth value or an :class:`Exact`."""
        if p not in self.known:
            self.known[p] = self._variable(p, None) if isinstance(p, Var) else self._term(p)
        return self.known[p]

    def _variable(self, v: Var, dtype: DType | None) -> Any:
        if v in self.literals:
            return self.literals[v]
        if dtype is None:
            raise Unproved(f"nothing tells what {v.name} is")
        if dtype is FP32:
            number = self.z3.BitVec(v.name, 32)
            facts = {c.relation for c in self.rule.when if c.args[0] == v}
            if "index" not in facts:
                return Bits(number)
            self.solver.add(number >= (0 if "positive" in facts else -MAGNITUDE), number <= MAGNITUDE)
            return Exact(number)
        if not dtype.is_int:
            raise Unproved(f"{v.name} is no integer")
        return self.z3.BitVec(v.name, dtype.bits)

    def _operand(self, p: Pattern, dtype: DType) -> Any:
        """Return an operand that the operation reads as the dtype; literals become such numbers."""
        if isinstance(p, Var) and p not in self.known:
            self.known[p] = self._variable(p, dtype)
            self.read_as[p] = dtype
        found = literal_value(*(int(a) for a in p.args))[0] if _is_literal(p) else self.value(p)  # type: ignore[arg-type,union-attr]
        if isinstance(found, int | float):
            if dtype is not FP32:
                return self.z3.BitVecVal(int(found), dtype.bits)
            top, bottom = float(found).as_integer_ratio()
            return Exact(self.z3.BitVecVal(top, 32), bottom.bit_length() - 1)
        if dtype is FP32 and not isinstance(found, Exact | Bits):
            return Exact(found)
        return found

    def _dtype(self, p: Term, name: str = "dtype") -> DType:
        a = p.args[signature(OPS[p.op]).index(name)]
        return CODE_DTYPES[self.codes[a] if isinstance(a, Var) else a]

    def _term(self, p: Term) -> Any:
        name = p.op.removeprefix("tile.")
        if p.op in _MASKS:
            return self._selection(name, p)
        if name == "cast":
            return self._cast(p)
        dtype = self._dtype(p)
        if name in SAME:
            return self._operand(p.children[SAME[name]], dtype)
        if name == "reinterpret_view":
            return self._reinterpreted(p, dtype)
        operands = [self._operand(c, dtype) for c in p.children]
        name = name.removeprefix("row_expand_").removeprefix("col_expand_")
        if dtype is FP32:
            return self._exact(name, operands)
        meaning = INTEGER.get(name.removesuffix("s") if name not in INTEGER else name)
        if meaning is None or not dtype.is_int:
            raise Unproved(f"{p.op} on {dtype.name} has no expression here")
        return meaning(Words(self.z3, dtype), *operands)

    def _reinterpreted(self, p: Term, dtype: DType) -> Any:
        child = p.children[0]
        if dtype is FP32:
            return Bits(self._operand(child, DTYPES["INT32"]))
        source = self.read_as.get(child, FP32) if isinstance(child, Var) else self._dtype(child)
        value = self._operand(child, source)
        if isinstance(value, Bits):
            value = value.bits
        elif not source.is_int:
            raise Unproved(f"the bits of {source.name} have no expression here")
        if not dtype.is_int or source.bits != dtype.bits:
            raise Unproved(f"{source.name} seen as {dtype.name} has no expression here")
        return value

    # -- masks ---------------------------------------------------------------------------------------------------

    def _selection(self, name: str, p: Term) -> Any:
        if name == "mask_not":
            return self.z3.Not(self._bit(p.children[0]))
        if name in ("cmp", "cmps"):
            return self._comparison(p)
        dtype = self._dtype(p)
        mask, *sides = p.children
        bit = self._bit(mask)
        values = [self._operand(s, dtype) for s in sides]
        if all(isinstance(v, Exact) for v in values):
            return Exact(self.z3.If(bit, *self._aligned(*values)), values[0].shift)
        return self.z3.If(bit, *values)

    def _bit(self, p: Pattern) -> Any:
        if isinstance(p, Var):
            return self.known.setdefault(p, self.z3.Bool(p.name))
        return self.value(p)

    def _comparison(self, p: Term) -> Any:
        dtype = self._compared(p)
        a, b = (self._operand(c, dtype) for c in p.children)
        how = p.args[2]
        if isinstance(a, Exact):
            a, b = self._aligned(a, b)
            words = Words(self.z3, self._width_as(a))
        else:
            words = Words(self.z3, dtype)
        less, more = words.less(a, b), words.less(b, a)
        return (a == b, a != b, less, self.z3.Not(more), more, self.z3.Not(less))[int(how)]  # type: ignore[arg-type]

    def _compared(self, p: Term) -> DType:
        """Return the dtype of what a comparison compares: an operation's, or the one drawn for the rule."""
        for c in p.children:
            if isinstance(c, Term) and c.op != LITERAL:
                return self._dtype(c)
            if c in self.read_as and c not in self.literals:
                return self.read_as[c]
        dtypes = [v for v in self.codes if v.kind == "dtype" and v is not _FREE]
        typed = [c.args[1] for c in self.rule.when if c.relation == "typed" and c.args[0] in p.children]
        if typed:
            return CODE_DTYPES[self.codes[typed[0]] if isinstance(typed[0], Var) else int(typed[0])]  # type: ignore[arg-type]
        return CODE_DTYPES[self.codes[dtypes[0] if dtypes else _FREE]]

    def _width_as(self, number: Any) -> DType:
        """Return the signed or unsigned dtype in which exact numbers made from the rule's integers are compared."""
        name = CODE_DTYPES[self.codes[_FREE]].name
        dtype = DTYPES[name]
        return dtype if dtype.bits == number.size() else DTYPES[f"INT{number.size()}"]

    # -- exact fractions -----------------------------------------------------------------------------------------

    def _aligned(self, a: Exact, b: Exact) -> tuple[Any, Any]:
        if a.shift != b.shift:
            raise Unproved("numbers of unlike fractions meet")
        return a.number, b.number

    def _exact(self, name: str, operands: list[Any]) -> Exact | Bits:
        """Return an FP32 operation whose exact result is shown to be a number of FP32."""
        z3, name = self.z3, name.removesuffix("s")
        if any(isinstance(o, Bits) for o in operands):
            return self._signed(name, operands)
        a, b = operands
        if name in ("add", "sub"):
            x, y = self._aligned(a, b)
            made = Exact(x + y if name == "add" else x - y, a.shift)
            fits = z3.And(z3.BVAddNoOverflow(x, y, True), z3.BVAddNoUnderflow(x, y)) if name == "add" else z3.And(
                z3.BVSubNoOverflow(x, y), z3.BVSubNoUnderflow(x, y, True))  # fmt: skip
        elif name == "mul":
            made = Exact(a.number * b.number, a.shift + b.shift)
            fits = z3.And(z3.BVMulNoOverflow(a.number, b.number, True), z3.BVMulNoUnderflow(a.number, b.number))
        else:
            raise Unproved(f"tile.{name} on FP32 has no expression here")
        small = z3.And(fits, made.number >= -_LARGEST, made.number <= _LARGEST)
        if any(c.relation == "index" and isinstance(c.args[0], Term) for c in self.rule.when):
            # The rounded result is an integer of at most MAGNITUDE, a number of FP32. Rounding is monotone and
            # integers up to there are numbers of FP32 as well, so the exact result, an integer, is no larger.
            self.solver.add(fits, made.number >= -MAGNITUDE, made.number <= MAGNITUDE)
        self._must(small, f"tile.{name} may round")
        return made

    def _signed(self, name: str, operands: list[Any]) -> Bits:
        """Return the product with a number that is shown to be 1 or -1: nothing but the sign changes, NaN aside."""
        if name != "mul" or not all(isinstance(o, Bits) for o in operands):
            raise Unproved(f"tile.{name} on any FP32 number has no expression here")
        a, b = (o.bits for o in operands)
        one, sign = 0x3F800000, 0x80000000
        self._must(self.z3.Or(b == one, b == one | sign), "the second factor may be other than 1 and -1")
        return Bits(a ^ (b & sign))

    def _cast(self, p: Term) -> Any:
        source, dtype = self._dtype(p, "source"), self._dtype(p)
        if source.is_int and dtype is FP32:
            return self._to_float(p, source)
        if source is FP32 and dtype.is_int:
            return self._to_integer(p, dtype)
        if source.is_int and dtype.is_int:
            if self._held(p):
                return self._resized(self._operand(p.children[0], source), source, dtype)
            mode, saturation = (self.codes[a] if isinstance(a, Var) else a for a in p.args[3:5])
            return self._function(mode, saturation, dtype, source)(self._operand(p.children[0], source))
        raise Unproved(f"a cast of {source.name} to {dtype.name} has no expression here")

    def _held(self, p: Term) -> bool:
        """Tell whether the rule asks that a conversion's dtype holds what is converted."""
        return any(c.relation == "fits" and c.args == (p.children[0], p.args[0]) for c in self.rule.when)

    def _resized(self, value: Any, source: DType, dtype: DType) -> Any:
        """Return an integer in another dtype that holds it."""
        wide = max(source.bits, dtype.bits) + 1
        number = Words(self.z3, source).extended(value, wide)
        made = self.z3.Extract(dtype.bits - 1, 0, number)
        self.solver.add(Words(self.z3, dtype).extended(made, wide) == number)
        return made

    def _to_float(self, p: Term, source: DType) -> Exact:
        value = self._operand(p.children[0], source)
        if not self._held(p):
            self._must(self.z3.And(value >= -_LARGEST, value <= _LARGEST), "the conversion to FP32 may round")
        return Exact(value)

    def _to_integer(self, p: Term, dtype: DType) -> Any:
        value = self._operand(p.children[0], FP32)
        if isinstance(value, Bits):
            # Any number: the conversion is some function of it, one for each mode and saturation.
            which, saturation = (self.codes[a] if isinstance(a, Var) else a for a in p.args[3:5])
            return self._function(which, saturation, dtype)(value.bits)
        if value.shift == 0:
            return value.number
        mode = CODE_MODES[self.codes[p.args[3]] if isinstance(p.args[3], Var) else p.args[3]]
        if mode not in ("floor", "trunc"):
            raise Unproved(f"a fraction is converted in mode {mode}")
        return self._floor(value, mode)

    def _floor(self, value: Exact, mode: str) -> Any:
        """Return the integer below a fraction, by what that means: q * 2**k <= n < (q + 1) * 2**k."""
        n, k = value.number, value.shift
        if mode == "trunc":
            self._must(n >= 0, "truncation rounds negative numbers up")
        q = self.z3.BitVec(f"floor_{len(self.known)}", 32)
        wide, below = self.z3.SignExt(32, n), self.z3.SignExt(32, q) << k
        self.solver.add(below <= wide, wide < below + (1 << k), q >= -_LARGEST, q <= _LARGEST)
        return q

    def _function(self, mode: int, saturation: int, dtype: DType, source: DType = FP32) -> Any:
        """Return a conversion as some function of the source's bits: alike wherever it is written alike."""
        name = f"{source.name}_{dtype.name}_{mode}_{saturation}"
        return self.z3.Function(name, self.z3.BitVecSort(source.bits), self.z3.BitVecSort(dtype.bits))


def _is_literal(p: Pattern) -> bool:
    return isinstance(p, Term) and p.op == LITERAL
