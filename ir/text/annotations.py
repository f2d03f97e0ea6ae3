"""Type annotations: ``pl.Tile[[16, n], pl.FP32, pl.Mem.Vec, pl.TileView(...)]`` and the like."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ..diagnostics import TileggError, error
from ..dtypes import DTYPES, DType
from ..infer import POSITIVE
from ..op import Kind
from ..types import (
    ADDRESS_SPACES,
    UNKNOWN,
    Dim,
    OpaqueType,
    PtrType,
    TensorType,
    TupleType,
    Type,
    scalar,
    shape_text,
    tile,
)
from .layout import DEFAULT_TENSOR_LAYOUT, TENSOR_LAYOUTS, is_implied
from .module import Module
from .source import did_you_mean, is_name
from .words import read_dtype, read_word

#: Turns a name inside a shape into a dimension.
DimName = Callable[[ast.Name], Dim]

_WORLD_SIZE = ("pld.system.world_size", "pld.world_size")
_OPAQUE = ("pl.Ptr", "pl.UnknownType", "pl.Array", "pld.CommCtxType", "pl.MemRefType")
_KNOWN = (
    "Tensor",
    "Tile",
    "Scalar",
    "DistributedTensor",
    "Tuple",
    "Ptr",
    "UnknownType",
    "Array",
    "Out",
    "InOut",
)
_DIM_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


class TypeReader:
    """Reads annotations of one file; equal static annotations are read once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._cache: dict[str, Type] = {}
        self._named = False

    def read(self, node: ast.expr, names: DimName) -> Type:
        """Return the type; ``names`` resolves names in shapes. Raises TG002, TG004 or TG006."""
        text = self.module.source.slice(node)
        if text is not None:
            found = self._cache.get(text)
            if found is not None:
                return found
        self._named = False
        result = self._type(node, names)
        if text is not None and not self._named:
            self._cache[text] = result
        return result

    def _fail(self, code: str, message: str, node: ast.AST, hint: str = "") -> TileggError:
        return error(code, message, self.module.span(node), hint=hint)

    def _type(self, node: ast.expr, names: DimName) -> Type:
        if isinstance(node, ast.Subscript):
            return self._subscript(node, names)
        name = self._dotted(node)
        if name is None:
            raise self._fail("TG002", "not a type", node, "types are pl.Tensor, pl.Tile, pl.Scalar, ...")
        last = name.rpartition(".")[2]
        if last in DTYPES:
            return scalar(DTYPES[last])
        if name in _OPAQUE:
            return UNKNOWN if name == UNKNOWN.text else OpaqueType(name)
        if last in ("Tensor", "Tile", "Scalar", "DistributedTensor"):
            raise self._fail("TG002", f"{name} needs a shape and a dtype", node, f"{name}[[16, 64], pl.FP32]")
        return self._opaque(name, last, node)

    def _opaque(self, name: str, last: str, node: ast.expr) -> Type:
        hint = "" if name in _OPAQUE else did_you_mean(last, [*_KNOWN, *DTYPES], name[: -len(last)])
        if hint or not name.startswith(("pl.", "pld.")):
            raise self._fail("TG004", f"unknown type {name[:80]}", node, hint or "types are pl.Tensor, pl.Tile, ...")
        return OpaqueType(self.module.text(node))

    def _dotted(self, node: ast.expr) -> str | None:
        name = self.module.dotted(node)
        if name is not None and isinstance(self.module.constants.get(name), ast.AST):
            return self.module.dotted(self.module.constants[name])
        return name

    def _subscript(self, node: ast.Subscript, names: DimName) -> Type:
        name = self._dotted(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        match name:
            case "pl.Tile":
                return self._tile(node, parts, names)
            case "pl.Tensor" | "pld.DistributedTensor" | "pl.DistributedTensor":
                return self._tensor(node, parts, names, name.rpartition(".")[2])
            case "pl.Scalar":
                if len(parts) != 1:
                    raise self._fail("TG002", "pl.Scalar takes one dtype", node)
                return scalar(self.dtype(parts[0]))
            case "pl.Ptr":
                return self._pointer(node, parts)
            case "tuple" | "pl.Tuple" | "Tuple":
                if len(parts) == 1 and isinstance(parts[0], ast.List):
                    parts = parts[0].elts
                return TupleType(tuple(self._type(p, names) for p in parts))
            case "pl.Out" | "pl.InOut":
                raise self._fail("TG002", f"{name} is for parameters only", node)
            case None:
                raise self._fail("TG002", "not a type", node)
        return self._opaque(name, name.rpartition(".")[2], node)

    def _pointer(self, node: ast.Subscript, parts: Sequence[ast.expr]) -> Type:
        space = parts[1].value if len(parts) == 2 and isinstance(parts[1], ast.Constant) else "gm"
        if len(parts) > 2 or space not in ADDRESS_SPACES:
            raise self._fail("TG004", "a pointer has a dtype and an address space", node, 'pl.Ptr[pl.FP32, "ub"]')
        return PtrType(self.dtype(parts[0]), str(space))

    def dtype(self, node: ast.expr) -> DType:
        """Return the dtype named by ``pl.FP32``, ``"fp32"`` or a module-level name. Raises TG004."""
        if isinstance(node, ast.Name):
            node = self._constant(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return read_dtype(node.value, self.module.span(node))
        name = self.module.dotted(node)
        if name is None:
            raise self._fail("TG004", "a dtype is expected here", node, "e.g. pl.FP32")
        return read_dtype(name.rpartition(".")[2], self.module.span(node))

    def _constant(self, node: ast.Name) -> ast.expr:
        found = self.module.constants.get(node.id)
        if isinstance(found, ast.expr):
            return found
        return ast.copy_location(ast.Constant(found), node) if isinstance(found, str) else node

    # -- shapes ------------------------------------------------------------------------------------------

    def _shape(self, node: ast.expr, names: DimName) -> tuple[Dim, ...]:
        if isinstance(node, ast.List | ast.Tuple):
            return tuple(self.dim(d, names) for d in node.elts)
        if isinstance(node, ast.Name):
            found = self.module.constants.get(node.id)
            if isinstance(found, tuple) and all(isinstance(d, int) for d in found):
                return found
        raise self._fail("TG002", "a shape is a list of dimensions", node, "e.g. [16, 64]")

    def dim(self, node: ast.expr, names: DimName) -> Dim:
        """Return a dimension: an int, a name, or the text of an expression over names."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return self._extent(node.value, node)
        replaced = self._replace(node, names)
        value = _number(replaced)
        return ast.unparse(replaced) if value is None else self._extent(value, node)

    def _extent(self, value: int, node: ast.AST) -> int:
        if not 0 <= value < 2**63:
            raise self._fail("TG008", f"{value} is no size", node)
        return value

    def _replace(self, node: ast.expr, names: DimName) -> ast.expr:
        """Return the expression with constants folded and names as they stand in the program."""
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return node
            case ast.Name():
                self._named = True
                found = names(node)
                return ast.Constant(found) if isinstance(found, int) else _parsed(found)
            case ast.Call(func=func, args=args, keywords=[]):
                return self._replace_call(node, self.module.dotted(func) or "", args, names)
            case ast.UnaryOp(op=ast.USub() as op, operand=inner):
                part = self._replace(inner, names)
                known = _number(part)
                return ast.UnaryOp(op, part) if known is None else ast.Constant(-known)
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _DIM_OPERATORS):
                a, b = self._replace(left, names), self._replace(right, names)
                x, y = _number(a), _number(b)
                if x is not None and y is not None:
                    return ast.Constant(self.module.fold_binary(op, x, y, node))
                return ast.BinOp(a, op, b)
        raise self._fail("TG002", "not a dimension", node, "dimensions are ints, names and integer expressions")

    def _replace_call(self, node: ast.expr, name: str, args: list[ast.expr], names: DimName) -> ast.expr:
        if name == "pl.dynamic" and len(args) == 1 and isinstance(args[0], ast.Constant):
            text = str(args[0].value)
            self._named = True
            if is_name(text):
                self.module.declare_dynamic(text)
                return ast.Name(text)
        if name == "pl.const" and len(args) == 2:
            return self._replace(args[0], names)
        if name == "pl.cast" and len(args) == 2:
            # A size is an integer whatever its width.
            return self._replace(args[0], names)
        if name in _WORLD_SIZE and not args:
            # Dumps write the number of ranks out where it is a size; what the operation gives decides.
            self._named = True
            return ast.Name("world_size")
        if name.removeprefix("pl.") in ("min", "max") and len(args) == 2:
            parts = [self._replace(a, names) for a in args]
            numbers = [n for p in parts if (n := _number(p)) is not None]
            if len(numbers) == 2:
                return ast.Constant(min(numbers) if name.endswith("min") else max(numbers))
            return ast.Call(_parsed(name), parts, [])
        raise self._fail("TG002", "not a dimension", node, "dimensions are ints, names and integer expressions")

    # -- tiles and tensors -------------------------------------------------------------------------------

    def _head(self, node: ast.Subscript, parts: list[ast.expr], names: DimName) -> tuple[tuple[Dim, ...], DType]:
        if len(parts) < 2:
            raise self._fail("TG002", "a shape and a dtype are needed", node, "e.g. [[16, 64], pl.FP32]")
        return self._shape(parts[0], names), self.dtype(parts[1])

    def _tile(self, node: ast.Subscript, parts: list[ast.expr], names: DimName) -> Type:
        shape, dtype = self._head(node, parts, names)
        if 0 in shape:
            raise self._fail("TG008", f"a tile of shape {shape_text(shape)} has no elements", node, POSITIVE)
        memory: str | None = None
        memref: str | None = None
        view: ast.Call | None = None
        for extra in parts[2:]:
            resolved = self._resolved(extra)
            name = self._callee(resolved) or ""
            if name.startswith(("pl.Mem.", "pl.MemorySpace.")):
                memory = str(read_word(Kind.MEMORY, name.rpartition(".")[2], self.module.span(extra)))
            elif name == "pl.TileView" and isinstance(resolved, ast.Call):
                view = resolved
            elif name == "pl.MemRef":
                memref = self._memref(extra, resolved)
            else:
                raise self._fail("TG002", "not part of a tile type", extra, "pl.MemRef, pl.Mem.X or pl.TileView")
        if view is None:
            return tile(shape, dtype, None, memory, (), memref)
        valid, layout = self._tile_view(view, names)
        self._within(valid, shape, view)
        kept = [(k, v) for k, v in layout if not is_implied(k, v, memory, shape)]
        return tile(shape, dtype, valid, memory, tuple(sorted(kept)), memref)

    def _resolved(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name):
            return self._constant(node)
        return node

    def _callee(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Subscript):
            node = self._resolved(node.value)
        return self.module.dotted(node.func if isinstance(node, ast.Call) else node)

    def _memref(self, written: ast.expr, resolved: ast.expr) -> str:
        base = written.value if isinstance(written, ast.Subscript) else written
        if isinstance(base, ast.Name) and isinstance(resolved, ast.Call) and not resolved.args:
            # A declaration bound to a variable takes the variable's name.
            keywords = "".join(f", {k.arg}={self.module.text(k.value)}" for k in resolved.keywords)
            return f'pl.MemRef("{base.id}"{keywords})'
        if isinstance(written, ast.Subscript) and isinstance(base, ast.Name):
            declared = self._resolved(base)
            return f"{self._memref(base, declared)}[{self.module.text(written.slice)}]"
        return self.module.text(resolved)

    def _tile_view(self, view: ast.Call, names: DimName) -> tuple[tuple[Dim, ...] | None, list[tuple[str, str]]]:
        valid: tuple[Dim, ...] | None = None
        layout: list[tuple[str, str]] = []
        order = ("valid_shape", "stride", "start_offset", "blayout", "slayout", "fractal", "pad")
        for key, value in [*zip(order, view.args), *((k.arg, k.value) for k in view.keywords)]:
            if key == "valid_shape":
                shape = self._shape(value, names)
                valid = shape or None
            elif key is not None:
                name = self.module.dotted(value)
                layout.append((key, name.rpartition(".")[2] if name else self.module.text(value)))
        return valid, layout

    def _tensor(self, node: ast.Subscript, parts: list[ast.expr], names: DimName, kind: str) -> Type:
        shape, dtype = self._head(node, parts, names)
        stride: tuple[Dim, ...] | None = None
        valid: tuple[Dim, ...] | None = None
        layout: str | None = None
        memref: str | None = None
        for extra in parts[2:]:
            resolved = self._resolved(extra)
            name = self._callee(resolved) or ""
            if name == "pl.TensorView" and isinstance(resolved, ast.Call):
                stride, layout, valid = self._tensor_view(resolved, names)
            elif name == "pl.MemRef":
                memref = self._memref(extra, resolved)
            elif name.startswith("pl."):
                layout = self._tensor_layout(name, extra)
            elif not isinstance(resolved, ast.Constant):
                raise self._fail("TG002", "not part of a tensor type", extra, "a layout, pl.TensorView or pl.MemRef")
        self._within(valid, shape, node)
        if stride is not None and len(stride) != len(shape):
            raise self._fail("TG008", f"strides {shape_text(stride)} for a tensor {shape_text(shape)}", node)
        valid = None if valid == shape else valid
        return TensorType(shape, dtype, stride, layout, valid, kind, memref)

    def _within(self, valid: tuple[Dim, ...] | None, shape: tuple[Dim, ...], node: ast.AST) -> None:
        """Check that a valid shape has the rank of the shape and lies inside it, as far as the numbers are known."""
        if valid is None:
            return
        over = any(isinstance(v, int) and isinstance(n, int) and v > n for v, n in zip(valid, shape))
        if len(valid) != len(shape) or over:
            raise self._fail("TG008", f"valid_shape {shape_text(valid)} is no part of {shape_text(shape)}", node)

    def _tensor_layout(self, name: str, node: ast.expr) -> str | None:
        word = name.rpartition(".")[2]
        if word not in TENSOR_LAYOUTS:
            hint = did_you_mean(word, TENSOR_LAYOUTS) or f"known: {', '.join(TENSOR_LAYOUTS)}"
            raise self._fail("TG004", f"unknown tensor layout {word[:60]!r}", node, hint)
        return None if word == DEFAULT_TENSOR_LAYOUT else word

    def _tensor_view(
        self, view: ast.Call, names: DimName
    ) -> tuple[tuple[Dim, ...] | None, str | None, tuple[Dim, ...] | None]:
        stride = valid = None
        layout = None
        for key, value in [
            *zip(("stride", "layout", "valid_shape"), view.args),
            *((k.arg, k.value) for k in view.keywords),
        ]:
            if key == "stride":
                stride = self._shape(value, names) or None
            elif key == "valid_shape":
                valid = self._shape(value, names) or None
            elif key == "layout":
                layout = self._tensor_layout(self.module.dotted(value) or "", value)
            else:
                raise self._fail("TG005", f"pl.TensorView has no field {key!r}", view)
        return stride, layout, valid


def _number(node: ast.expr) -> int | None:
    """Return the integer a node is, if it is one."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
