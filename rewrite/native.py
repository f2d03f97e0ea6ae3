"""egglog's compiled module alone: the package around it takes ten times as long to import and is not needed."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from typing import Any

_NAME = "egglog.bindings"


def bindings() -> Any:
    """Return the module ``egglog.bindings``.

    It is loaded without running ``egglog/__init__.py`` where its file is found beside it; a later
    ``import egglog`` works as usual and shares it.
    """
    if _NAME not in sys.modules and "egglog" not in sys.modules:
        spec = _spec()
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return sys.modules.setdefault(_NAME, module)
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    from egglog import bindings as found

    return found


def _spec() -> ModuleSpec | None:
    package = PathFinder.find_spec("egglog")
    places = package.submodule_search_locations if package is not None else None
    return PathFinder.find_spec(_NAME, places) if places is not None else None
