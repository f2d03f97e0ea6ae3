"""Operations whose bodies see nothing from outside, checked without the library's own walk over the bodies.

Whoever goes through a body anyway, and forgets outside values on entering it, finds every use of one on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from inspect import getclosurevars

from xdsl.ir import Operation, OpTraits
from xdsl.irdl import IRDLOperation, OpDef
from xdsl.traits import IsolatedFromAbove

Check = Callable[[Operation], None]


@cache
def checks_of(cls: type[Operation]) -> tuple[Check, ...] | None:
    """Return what a class's ``verify_`` does beside the walk; None for a class whose body may use outside values.

    The library's decorator makes ``verify_`` of a definition's checks and those written in the class, and it is asked
    for both; a class that was made otherwise is treated as one that is not isolated. The classes that assembly is
    written with have checks of their own only.
    """
    if not cls.has_trait(IsolatedFromAbove):
        return None
    if not issubclass(cls, IRDLOperation):
        return (cls.verify_,)
    parts = dict(getclosurevars(cls.verify_).nonlocals)
    definition, own = parts.pop("op_def", None), parts.pop("custom_verify", None)
    if not isinstance(definition, OpDef) or parts:
        return None
    others = tuple(t for t in definition.traits if not isinstance(t, IsolatedFromAbove))
    rest = replace(definition, traits=OpTraits(lambda: others))
    return (rest.verify,) if own is None else (rest.verify, own)
