"""Chains of conversions for the tests of their proofs."""

from __future__ import annotations

import itertools

from tilegg.rules.paths_chain import Conversion


def conversions(dtypes: tuple, modes: tuple[str, ...], saturate: bool) -> tuple[Conversion, ...]:
    """Return the conversions through some dtypes; integers are clamped to, floats at the end if ``saturate``."""
    pairs = list(itertools.pairwise(dtypes))
    return tuple(Conversion(a, b, m, b.is_int or (saturate and b is dtypes[-1])) for (a, b), m in zip(pairs, modes))
