"""Every rule file, imported in the order in which rules are numbered."""

from . import casts, select  # isort: split

from . import arithmetic, fusion, integers, shapes  # isort: split

from . import activations, clamps, exponentials, folding, identities, lines, narrow  # isort: split

from .recipes import sincos  # isort: split

from . import scalars  # isort: split

from . import compares, lacking, mirrors, signs

__all__ = [
    "activations", "arithmetic", "casts", "clamps", "compares", "exponentials", "folding", "fusion", "identities",
    "integers", "lacking", "lines", "mirrors", "narrow", "scalars", "select", "shapes", "signs", "sincos",
]  # fmt: skip
