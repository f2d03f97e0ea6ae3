"""Verification of whole modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator, NoTerminator, OpTrait
from xdsl.utils.exceptions import VerifyException

from ...ir.diagnostics import Diagnostic, TileggError, error
from .archchecks import branch, check_elements
from .base import PtoOp, constant_attribute, spelled
from .dps import DpsOp
from .isolation import checks_of
from .printing import span_of
from .simt_scopes import MisplacedError

#: After this many findings the rest of a module is not looked at.
LIMIT = 20


def verify_module(module: ModuleOp, arch: str | None = None) -> list[Diagnostic]:
    """Return what the assembler would refuse in a module, in program order, at most :data:`LIMIT` findings.

    Args:
        module: the module to check.
        arch: ``"a2"``, ``"a3"``, ``"a2a3"`` or ``"a5"``; None takes the module's ``pto.target_arch``, and
            without that only what holds for every target is checked.

    Raises:
        TileggError: TG040, not a known arch.
    """
    named = module.attributes.get("pto.target_arch")
    if arch is None and isinstance(named, StringAttr):
        arch = named.data
    try:
        target = None if arch is None else branch(arch)
    except ValueError as problem:
        raise error("TG040", str(problem)) from None
    seen = _Seen(target)
    _check_op(module, seen)
    return seen.found


def verify_pto(module: ModuleOp, arch: str | None = None) -> None:
    """Check a module as :func:`verify_module` does.

    Raises:
        TileggError: TG023, or TG055 and TG056 for a place in or outside of SIMT code, with the message and location
            of each finding.
    """
    found = verify_module(module, arch)
    if found:
        raise TileggError(*found)


class _Seen:
    """The values that are defined at a place, by number, each with what a check may ask about it."""

    def __init__(self, arch: str | None) -> None:
        self.arch = arch
        self.found: list[Diagnostic] = []
        self.values: dict[int, int] = {}


def _check_op(op: Operation, seen: _Seen) -> None:
    values = seen.values
    traits = _TRAITS.get(op.__class__) or _traits(op.__class__)
    given: Sequence[int] | None = None
    try:
        operands = op._operands
        numbers = [id(v) for v in operands]
        try:
            known = [values[n] for n in numbers]
        except KeyError:
            raise VerifyException(_undefined(operands, values)) from None
        if op._next_op is None or op.regions:
            _check_ends(op)
        if traits.alone and not op.regions:
            if len(set(numbers)) != len(numbers):
                known += [-1 - numbers.index(n) for n in numbers]
            given = _once(op, traits, known, seen.arch)
        else:
            _check_all(op, traits, seen.arch)
    except VerifyException as problem:
        message = f"{op.name}: {str(problem).strip()}"
        code = problem.code if isinstance(problem, MisplacedError) else "TG023"
        seen.found.append(Diagnostic(code, message, span_of(op.location)))
    if op.regions:
        _check_regions(op, seen)
    if op.results:
        for r, number in zip(op.results, given if given is not None else map(_known, op.results)):
            values[id(r)] = number


def _check_regions(op: Operation, seen: _Seen) -> None:
    outside = seen.values
    if checks_of(type(op)) is not None:
        seen.values = {}
    for region in op.regions:
        for block in region.blocks:
            _check_block(block, seen)
    seen.values = outside


def _undefined(operands: Sequence[SSAValue], values: Mapping[int, int]) -> str:
    value = next(v for v in operands if id(v) not in values)
    return f"an operand is not defined before its use ({value.name_hint or 'unnamed'})"


def _check_ends(op: Operation) -> None:
    """Check that a block ends in a terminator: the one an operation is the last of, and those inside of it.

    The library's own ``verify`` writes the whole module into each message, which makes many findings slow and
    unreadable, so its parts are called here.
    """
    block = op.parent
    if block is not None and block.last_op is op:
        owner = block.parent_op()
        if owner is not None and not owner.has_trait(NoTerminator) and not op.has_trait(IsTerminator):
            raise VerifyException("the last operation of a block must be a terminator")
    for region in op.regions:
        if not op.has_trait(NoTerminator) and any(block.is_empty for block in region.blocks):
            raise VerifyException("a block must end in a terminator")


def _check_all(op: Operation, traits: _Traits, arch: str | None) -> None:
    """Check what an operation's class says, beside its regions."""
    if traits.pto and not op.regions:
        assert isinstance(op, PtoOp)
        for trait in op.traits:
            trait.verify(op)
        type(op).get_irdl_definition().verify(op)
        op.verify_own()
    else:
        for check in checks_of(type(op)) or (type(op).verify_,):
            check(op)
    if arch is not None and isinstance(op, PtoOp):
        if isinstance(op, DpsOp):
            check_elements(op, arch)
        op.verify_arch(arch)


class _Traits(NamedTuple):
    """What is asked of a class again and again: whether it is of this dialect, and whether it is checked alone."""

    pto: bool
    alone: bool


_TRAITS: dict[type[Operation], _Traits] = {}
#: Dialects of the library whose checks ask about an operation's own operands, results and attributes only.
_ALONE = ("arith", "math")


def _traits(cls: type[Operation]) -> _Traits:
    if not issubclass(cls, PtoOp):
        return _TRAITS.setdefault(cls, _Traits(False, cls.name.partition(".")[0] in _ALONE))
    plain = all(type(t).verify is OpTrait.verify for t in cls.traits)
    return _TRAITS.setdefault(cls, _Traits(True, plain and not cls.PLACED))


#: What was found right: class, architecture, types, attributes, which operands are the same, and of each operand what
#: defines it. All that repeats all the time. Objects are known by their numbers, so each entry keeps its own alive.
_RIGHT: dict[tuple[object, ...], tuple[Sequence[int], object]] = {}
_REMEMBERED = 20_000


def _once(op: Operation, traits: _Traits, known: Sequence[int], arch: str | None) -> Sequence[int]:
    """Check an operation unless one like it was found right; return what is known of its results.

    ``known``: what is known of the operands, and which of them are the same.
    """
    given = [r._type for r in op.results]
    key = (op.__class__, arch, *known, None, *map(id, given), *spelled(op))
    right = _RIGHT.get(key)
    if right is not None:
        return right[0]
    _check_all(op, traits, arch)
    if len(_RIGHT) >= _REMEMBERED:
        _RIGHT.clear()
        _KNOWN.clear()
    made = [_known(r) for r in op.results]
    _RIGHT[key] = (made, (given, *op.properties.values(), *op.attributes.values()))
    return made


#: A number for what checks may ask about a value beside its place: its type, the class of the operation that defines
#: it, and the constant it is. Numbers are not given twice.
_KNOWN: dict[tuple[object, ...], tuple[int, object]] = {}
_NUMBERS = count(1)


def _known(value: SSAValue) -> int:
    owner = value.owner
    type_, cls, constant = value.type, owner.__class__, constant_attribute(value)
    key = (id(type_), cls, id(constant))
    found = _KNOWN.get(key)
    if found is None:
        found = _KNOWN[key] = (next(_NUMBERS), (type_, constant))
    return found[0]


def _check_block(block: Block, seen: _Seen) -> None:
    values = seen.values
    here: list[SSAValue] = list(block.args)
    for arg in here:
        values[id(arg)] = _known(arg)
    op = block.first_op
    while op is not None and len(seen.found) < LIMIT:
        _check_op(op, seen)
        here += op.results
        op = op._next_op
    for value in here:
        values.pop(id(value), None)
