"""Verification of whole modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from ...ir.diagnostics import Diagnostic, TileggError, error
from .archchecks import branch, check_elements
from .base import PtoOp
from .dps import DpsOp
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
    found: list[Diagnostic] = []
    _check_op(module, target, set(), found)
    return found


def verify_pto(module: ModuleOp, arch: str | None = None) -> None:
    """Check a module as :func:`verify_module` does.

    Raises:
        TileggError: TG023, or TG055 and TG056 for a place in or outside of SIMT code, with the message and location
            of each finding.
    """
    found = verify_module(module, arch)
    if found:
        raise TileggError(*found)


def _check_op(op: Operation, arch: str | None, visible: set[SSAValue], found: list[Diagnostic]) -> None:
    try:
        for value in op.operands:
            if value not in visible:
                raise VerifyException(
                    f"an operand is not defined before its use ({value.name_hint or 'unnamed'})"
                )
        _check_alone(op)
        if arch is not None and isinstance(op, PtoOp):
            if isinstance(op, DpsOp):
                check_elements(op, arch)
            op.verify_arch(arch)
    except VerifyException as problem:
        message = f"{op.name}: {str(problem).strip()}"
        code = problem.code if isinstance(problem, MisplacedError) else "TG023"
        found.append(Diagnostic(code, message, span_of(op.location)))
    for region in op.regions:
        for block in region.blocks:
            _check_block(block, arch, visible, found)


def _check_alone(op: Operation) -> None:
    """Check one operation without its regions.

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
    if isinstance(op, PtoOp) and not op.regions:
        for trait in op.traits:
            trait.verify(op)
        _once(op, type(op).get_irdl_definition().verify)
        op.verify_own()
    elif isinstance(op, arith.ConstantOp):
        _once(op, arith.ConstantOp.verify_)
    else:
        op.verify_()


#: Shapes of operations that were found right: what the classes ask of types and attributes, which repeat all the time.
#: Objects are known by their numbers, so that each entry keeps its own alive.
_RIGHT: dict[tuple[object, ...], tuple[object, ...]] = {}
_REMEMBERED = 20_000


def _once(op: Operation, check: Callable[[Any], None]) -> None:
    """Check what an operation's class says of numbers and types of operands and results, and of attributes."""
    types = [v.type for v in op.operands]
    given = [r.type for r in op.results]
    named = (*op.properties.values(), *op.attributes.values())
    names = (*op.properties, None, *op.attributes)
    key = (type(op), *map(id, types), None, *map(id, given), names, *map(id, named))
    if key in _RIGHT:
        return
    check(op)
    if len(_RIGHT) >= _REMEMBERED:
        _RIGHT.clear()
    _RIGHT[key] = (types, given, named)


def _check_block(block: Block, arch: str | None, visible: set[SSAValue], found: list[Diagnostic]) -> None:
    here: list[SSAValue] = list(block.args)
    visible.update(here)
    for op in block.ops:
        if len(found) >= LIMIT:
            break
        _check_op(op, arch, visible, found)
        here.extend(op.results)
        visible.update(op.results)
    visible.difference_update(here)
