"""The PTO dialect in xDSL: types, operations, printing, parsing and verification.

The names are those of :mod:`tilegg.codegen.pto.api`, which is imported on first use because it loads xDSL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    # ``from . import api`` asks this module for ``api`` first, so the import is made by full name.
    api = import_module(f"{__name__}.api")
    if name in api.__all__:
        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
