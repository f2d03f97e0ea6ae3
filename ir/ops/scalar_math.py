"""Standard mathematics on scalars. Evaluated in double precision and rounded once to the dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..lanes import is_lanes
from ..op import Scalar, op
from ._scalar_result import FLOATS, SIGNED, binary, unary
from .scalars import FAMILY, plain

_ACCURACY = "LLVM leaves the accuracy to the target's library; here the double-precision result, rounded once"


def in_double(fn: Callable[..., Any], *values: Any) -> Any:
    """Apply a NumPy function to Python numbers or lanes, floating-point warnings silenced."""
    with np.errstate(all="ignore"):
        found = fn(*values)
    return found if is_lanes(*values) else float(found)


def magnitude(value: Any) -> Any:
    """The absolute value of numbers or lanes."""
    return np.abs(value) if is_lanes(value) else abs(value)


@op("scalar.abs", result=unary, family=FAMILY,
    scalar=plain("C", (*FLOATS, *SIGNED, "INDEX"), float="llvm.fabs", any="llvm.abs"))  # fmt: skip
def scalar_abs(value: Scalar) -> Any:
    """The magnitude; the least integer stays as it is."""
    return magnitude(value)


scalar_abs.facts(vs.absolute)


@op("scalar.sqrt", result=unary, family=FAMILY, scalar=plain("C", FLOATS, float="llvm.sqrt"))
def scalar_sqrt(value: Scalar) -> Any:
    """The square root, correctly rounded; NaN below zero."""
    return in_double(np.sqrt, value)


@op("scalar.exp", result=unary, family=FAMILY, target_defined="the last bit",
    scalar=plain("C", FLOATS, _ACCURACY, float="llvm.exp"))  # fmt: skip
def scalar_exp(value: Scalar) -> Any:
    """e to the power of value."""
    return in_double(np.exp, value)


@op("scalar.log", result=unary, family=FAMILY, target_defined="the last bit",
    scalar=plain("C", FLOATS, _ACCURACY, float="llvm.log"))  # fmt: skip
def scalar_log(value: Scalar) -> Any:
    """The natural logarithm; NaN below zero."""
    return in_double(np.log, value)


def power(base: Any, exponent: Any) -> Any:
    """base to the power of exponent, in double precision."""
    return in_double(np.power, base if is_lanes(base) else np.float64(base), exponent)


@op("scalar.pow", result=binary, family=FAMILY, target_defined="the last bit",
    scalar=plain("C", FLOATS, _ACCURACY, float="llvm.pow"))  # fmt: skip
def scalar_pow(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs to the power of rhs, as C's pow: 1 for a zero exponent, also of NaN."""
    return power(lhs, rhs)
