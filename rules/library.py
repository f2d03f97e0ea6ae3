"""Every rule file, imported in the order in which rules are numbered."""

from . import casts, select
from .recipes import sincos

__all__ = ["casts", "select", "sincos"]
