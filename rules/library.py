"""Every rule file, imported in the order in which rules are numbered."""

from . import casts, select  # isort: split

from . import arithmetic, fusion, integers, shapes  # isort: split

from .recipes import sincos

__all__ = ["arithmetic", "casts", "fusion", "integers", "select", "shapes", "sincos"]
