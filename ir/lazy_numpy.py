"""NumPy by another name, imported when it is used first: programs are read, lowered and written without arrays.

``from . import lazy_numpy as np`` stands for ``import numpy as np`` in every module on the way from text to assembly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import *  # noqa: F403
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    #: An array of any elements, for annotations.
    Array = Any


def __getattr__(name: str) -> Any:
    # The import system and tools ask modules for such names, which are this module's own or nobody's.
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import numpy

    # From now on every name is found here, as quickly as in NumPy itself. The copy is made in one step: another thread
    # may be importing a part of NumPy, which adds names.
    names = dict(vars(numpy))
    globals().update((known, value) for known, value in names.items() if not known.startswith("__"))
    return getattr(numpy, name)
