"""The state of reading one function: what each source name stands for now, names taken, statements so far."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..diagnostics import Diagnostic, Span, TileggError, error
from ..literals import literal
from ..predicates import Predicates
from ..program import Block, Const, Operand, Statement, Value, index
from ..types import Dim, OpaqueType, ScalarType, TensorType, Type
from .annotations import TypeReader
from .dataflow import Dataflow
from .module import Module
from .source import did_you_mean, first_span

#: A reading stops after this many errors.
MAX_ERRORS = 20

_SUFFIX = re.compile(r"__ssa_v\d+$|__arg_tmp_v\d+$")


@dataclass(frozen=True)
class Unset:
    """A source name that has no value here, and why."""

    reason: str


@dataclass
class Yielded:
    """What a ``pl.yield_`` at the end of a block hands on."""

    names: tuple[str, ...]
    operands: tuple[Operand, ...]
    types: tuple[Type | None, ...]
    node: ast.stmt


@dataclass
class Frame:
    """A branch or loop body being read."""

    kind: str
    loop: bool
    carried: tuple[str, ...] = ()
    yielded: Yielded | None = None
    #: Names that a yield before a jump gives the loop's results.
    names: tuple[str, ...] = ()
    jumped: bool = False


class TooManyErrors(Exception):
    """Enough errors have been collected."""


@dataclass
class State:
    """Per-function reading state; the classes that derive from it add the readers."""

    module: Module
    types: TypeReader
    flow: Dataflow
    errors: list[Diagnostic]
    names: dict[str, Operand | Unset] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    out: list[Statement] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    #: Scalar values by their own names, which dynamic sizes refer to.
    sizes: dict[str, Value] = field(default_factory=dict)
    #: Where a tensor value comes from: the Out or InOut parameter it is a later version of.
    roots: dict[str, str] = field(default_factory=dict)
    predicates: Predicates = field(default_factory=Predicates)
    #: What generated names start with: the source name being assigned.
    target: str = "t"

    # -- names -------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """Take a name for a value: the name itself, or its next free version."""
        used = self.used
        if name not in used:
            used[name] = 0
            return name
        return self._version(_SUFFIX.sub("", name), "__ssa_v")

    def temporary(self) -> str:
        """Take a name for a nested expression's value."""
        return self._version(_SUFFIX.sub("", self.target), "__arg_tmp_v")

    def _version(self, base: str, suffix: str) -> str:
        used = self.used
        stem = base + suffix
        n = used.get(stem, 1 if suffix == "__ssa_v" else 0)
        while f"{stem}{n}" in used:
            n += 1
        used[stem] = n + 1
        used[f"{stem}{n}"] = 0
        return f"{stem}{n}"

    def define(self, name: str, t: Type) -> Value:
        """Make a value for a source name and bind the name to it."""
        value = Value(self.unique(name), t)
        self.names[name] = value
        if t.__class__ is ScalarType:
            self.sizes[value.name] = value
        return value

    def lookup(self, node: ast.Name) -> Operand:
        """Return what a name stands for; raises TG003 or TG009."""
        found = self.names.get(node.id, _MISSING)
        if found is _MISSING:
            return self._outer_name(node)
        if found.__class__ is Unset:
            reason = found.reason
            raise error("TG009", f"{node.id} has no value here", self.span(node), reason=reason)
        return found  # type: ignore[return-value]

    def _outer_name(self, node: ast.Name) -> Operand:
        found = self.module.constants.get(node.id)
        if found is not None and not isinstance(found, ast.AST):
            return self.python_value(found, node)
        if node.id in self.module.dynamic:
            return Value(self.module.dynamic[node.id], _INDEX)
        if isinstance(found, ast.AST):
            hint = "nothing is executed: write the value itself at module level"
            raise error("TG006", f"{node.id} is not a literal constant", self.span(node), hint=hint)
        if node.id == "None":
            return None
        known = [*self.names, *self.module.constants]
        hint = did_you_mean(node.id, known) if len(known) < 2000 else ""
        raise error("TG003", f"unknown name {node.id[:80]}", self.span(node), hint=hint)

    def dim_name(self, node: ast.Name) -> Dim:
        """Return the dimension a name in a shape stands for; an undefined one is dynamic, with a warning."""
        found = self.names.get(node.id)
        if isinstance(found, Value):
            if isinstance(found.type, ScalarType | OpaqueType):
                return found.name
            if node.id not in self.module.dynamic:
                raise error("TG006", f"{node.id} is no size, but a {found.type}", self.span(node))
        if isinstance(found, Const) and type(found.value) is int:
            return found.value
        lost = isinstance(found, Unset) or (found is None and node.id in self.used)
        if lost and node.id not in self.module.dynamic:
            raise error("TG009", f"{node.id} has no value here", self.span(node), reason=getattr(found, "reason", ""))
        return outer_dim(self.module, node)

    def renames(self) -> dict[str, str]:
        """Return the source names that stand for values of other names."""
        return {k: v.name for k, v in self.names.items() if v.__class__ is Value and v.name != k}

    # -- literals ----------------------------------------------------------------------------------------

    def python_value(self, value: object, node: ast.AST) -> Operand:
        """Return the operand of a Python literal; raises TG006 or TG011."""
        if isinstance(value, tuple):
            return tuple(self.python_value(v, node) for v in value)
        if isinstance(value, bool | int | float):
            return literal(value, None, self.span(node))
        raise error("TG006", "a number is expected here", self.span(node))

    # -- diagnostics -------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        """Return the place of a node."""
        return self.module.source.span(node)

    def collect(self, problem: TileggError, node: ast.AST) -> None:
        """Note an error and go on; raises :class:`TooManyErrors` when there are enough."""
        self.errors.extend(first_span(problem, self.span(node)).diagnostics)
        if len(self.errors) >= MAX_ERRORS:
            raise TooManyErrors


_MISSING = Unset("")
_INDEX = index(0).type


def outer_dim(module: Module, node: ast.Name) -> Dim:
    """Return the dimension a name stands for outside any function; an unknown one is taken as dynamic."""
    name = node.id
    found = module.constants.get(name)
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    if name in module.dynamic:
        return module.dynamic[name]
    module.remark(
        "TG016",
        f"{name} is not defined and was taken as a dynamic dimension",
        node,
        hint=did_you_mean(name, [*module.constants, *module.dynamic]) or f'declare it: {name} = pl.dynamic("{name}")',
        severity="warning",
        once=name,
    )
    module.declare_dynamic(name)
    return name


def tensor_root(state: State, operands: Sequence[Operand]) -> str | None:
    """Return the output parameter one of the operands is a version of."""
    for o in operands:
        if o.__class__ is Value and o.name in state.roots and isinstance(o.type, TensorType):
            return state.roots[o.name]
    return None


def block(statements: Sequence[Statement]) -> Block:
    """Return the statements as a block."""
    return Block(tuple(statements))
