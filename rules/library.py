"""Every rule file, imported in the order in which rules are numbered."""

from . import casts, select  # isort: split

from . import arithmetic, fusion, integers, shapes  # isort: split

from . import activations, clamps, exponentials, folding, identities, lines, narrow  # isort: split

from .recipes import sincos  # isort: split

from . import scalars

__all__ = [
    "activations", "arithmetic", "casts", "clamps", "exponentials", "folding", "fusion", "identities", "integers",
    "lines", "narrow", "scalars", "select", "shapes", "sincos",
]  # fmt: skip
