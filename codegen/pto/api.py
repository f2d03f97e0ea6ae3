"""The public face of the dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .build import PtoBuilder
from .dialect import OPS, pto_context, pto_dialect
from .elements import element
from .module import FunctionBuilder, ModuleBuilder
from .printing import PtoPrinter, location_of, print_pto, span_of
from .types import (
    DYNAMIC,
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    TileBufType,
    partition_type,
    ptr_type,
    tensor_view_type,
    tile_type,
)
from .verify import verify_module, verify_pto
from .words import word

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

__all__ = [
    "DYNAMIC",
    "OPS",
    "FunctionBuilder",
    "ModuleBuilder",
    "PartitionTensorViewType",
    "PtoBuilder",
    "PtoPrinter",
    "PtrType",
    "TensorViewType",
    "TileBufType",
    "element",
    "location_of",
    "parse_pto",
    "partition_type",
    "print_pto",
    "pto_context",
    "pto_dialect",
    "ptr_type",
    "span_of",
    "tensor_view_type",
    "tile_type",
    "verify_module",
    "verify_pto",
    "word",
]


def parse_pto(text: str, filename: str | None = None) -> ModuleOp:
    """Read a module from assembly text, as :func:`.parsing.parse_pto` says, which is loaded by the first text."""
    from .parsing import parse_pto as parse

    return parse(text, filename)
