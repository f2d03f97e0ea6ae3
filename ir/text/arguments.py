"""Arguments: operands and attributes bound to a declared operation's parameters, or kept as they stand."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

from ..diagnostics import TileggError, error
from ..infer import check_operand
from ..op import Kind
from ..program import Const, Operand, Value, Verbatim
from ..types import ScalarType, TensorType, TileType
from .expressions import Expressions
from .module import NotLiteral
from .resolve import Plan, Slot
from .source import did_you_mean, first_span
from .words import is_worded, read_word

_MISSING: Any = object()
#: Classes an operand of a kind usually has: the check that is tried first.
_USUAL = {Kind.TILE: TileType, Kind.SCRATCH: TileType, Kind.TENSOR: TensorType, Kind.SCALAR: ScalarType}
#: Names the unified forms give their first parameter.
_SYNONYMS = {"target_type": "dtype", "dtype": "target_type"}
FIRST_NAMES = ("input", "tensor", "tile", "value", "src", "dst", "data", "lhs", "target")
#: Options the language has after the declared ones, whose meaning tilegg does not model.
_UNMODELLED = {
    "tile.create": ("transpose", "flat_layout"),
    "tile.slice": ("drop_dims", "pad_value"),
    "tensor.slice": ("pad_value", "clamp"),
}


class Unmodelled(Exception):
    """A call uses an option of the language that the operation's declaration leaves out."""


def _check_unmodelled(option: str, node: ast.expr) -> None:
    if not (isinstance(node, ast.Constant) and node.value in (None, False)):
        raise Unmodelled(option)


@dataclass
class Arguments(Expressions):
    """Reads the arguments of calls."""

    def _bind(
        self, plan: Plan, node: ast.Call, ready: tuple[Operand, ...]
    ) -> tuple[tuple[Operand, ...], dict[str, Any]]:
        """Return operands in declared order and attributes as written; raises TG003 to TG006."""
        slots, args = plan.slots, node.args
        if len(args) > plan.positional:
            self._check_extra(plan, node)
            args = args[: plan.positional]
        operands: list[Operand] = [None] * plan.operands
        attrs: dict[str, Any] = {}
        known = len(ready)
        i = 0
        for place, arg in enumerate(args):
            slot = slots[i]
            if slot.param.kind is Kind.TILE and not slot.param.required and isinstance(arg, ast.List):
                # Dumps leave an optional tile out where a list follows.
                i += 1
                slot = slots[i] if i < len(slots) else slot
            self._take(plan, slot, arg, ready[place] if place < known else _MISSING, operands, attrs)
            i += 1
        if node.keywords or i < plan.enough:
            seen = set(plan.names[:i])
            for kw in node.keywords:
                self._keyword(plan, kw, node, seen, operands, attrs)
            for slot in plan.required:
                if slot.param.name not in seen:
                    raise error(
                        "TG005", f"{plan.decl.name}: {slot.param.name!r} is missing", self.span(node),
                        hint=f"its operands: {', '.join(s.param.name for s in slots)}",
                    )  # fmt: skip
        return tuple(operands), attrs

    def argument(self, call: str, arg: ast.expr) -> Operand:
        """Return an argument's operand; a literal that does not fit is reported with the call it stands in."""
        try:
            return self.value(arg)
        except TileggError as problem:
            if not isinstance(arg, ast.Constant | ast.UnaryOp):
                raise
            raise TileggError(*(replace(d, message=f"{call}: {d.message}") for d in problem.diagnostics)) from None

    def _check_extra(self, plan: Plan, node: ast.Call) -> None:
        """Check positional arguments beyond the declared ones: options that are not modelled, or too many."""
        options = _UNMODELLED.get(plan.decl.name, ())
        extra = node.args[plan.positional :]
        if len(extra) > len(options):
            raise self._too_many(plan, node)
        for option, arg in zip(options, extra):
            _check_unmodelled(option, arg)

    def _too_many(self, plan: Plan, node: ast.Call) -> TileggError:
        message = f"{plan.decl.name} takes {plan.positional} positional operands, got {len(node.args)}"
        hint = f"its operands: {', '.join(s.param.name for s in plan.slots)}"
        return error("TG005", message, self.span(node), hint=hint)

    def _keyword(
        self,
        plan: Plan,
        kw: ast.keyword,
        node: ast.Call,
        seen: set[str],
        operands: list[Operand],
        attrs: dict[str, Any],
    ) -> None:
        word = kw.arg
        if word == "attrs" and isinstance(kw.value, ast.Dict):
            attrs["attrs"] = self.dictionary(kw.value)
            return
        slot = plan.by_name.get(word or "") or plan.by_name.get(_SYNONYMS.get(word or "", ""))
        if slot is None and word in FIRST_NAMES and plan.slots and plan.slots[0].param.name not in seen:
            slot = plan.slots[0]
        if slot is None and word in _UNMODELLED.get(plan.decl.name, ()):
            _check_unmodelled(word or "", kw.value)
            return
        if slot is None:
            hint = did_you_mean(word or "**", plan.by_name) or f"it takes: {', '.join(plan.by_name)}"
            raise error("TG005", f"{plan.decl.name} has no operand {word or '**'!r}", self.span(kw), hint=hint)
        if slot.param.name in seen:
            raise error("TG005", f"{plan.decl.name}: {slot.param.name!r} is given twice", self.span(kw))
        seen.add(slot.param.name)
        self._take(plan, slot, kw.value, _MISSING, operands, attrs)

    def dictionary(self, node: ast.Dict) -> tuple[tuple[str, str], ...]:
        """Return a dump's ``attrs={...}`` as pairs of key and value text."""
        out = []
        for key, value in zip(node.keys, node.values):
            word = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
            if word is None:
                raise error("TG002", "attrs keys are strings", self.span(node))
            out.append((word, self.module.text(value, self.renames_in(value))))
        return tuple(out)

    def _take(
        self,
        plan: Plan,
        slot: Slot,
        arg: ast.expr,
        ready: Any,
        operands: list[Operand],
        attrs: dict[str, Any],
    ) -> None:
        param = slot.param
        if slot.index < 0:
            attrs[param.name] = self.attribute(param.kind, arg)
            return
        operand = self.argument(f"pl.{plan.decl.name}", arg) if ready is _MISSING else ready
        if param.name == "indices" and param.kind is Kind.DIMS and isinstance(operand, Value | Const):
            # One index of a rank-1 tensor may stand without its list.
            operand = (operand,)
        operands[slot.index] = operand
        if operand.__class__ is Value and operand.type.__class__ is _USUAL.get(param.kind):
            return
        if operand is None and not param.required:
            return
        try:
            check_operand(plan.decl, param, operand, None)
        except TileggError as problem:
            raise first_span(problem, self.span(arg)) from None

    # -- attributes --------------------------------------------------------------------------------------

    def attribute(self, kind: Kind, node: ast.expr) -> Any:
        """Return the kept form of a compile-time argument; raises TG002, TG004 or TG006."""
        if isinstance(node, ast.Name) and isinstance(self.module.constants.get(node.id), ast.expr):
            node = self.module.constants[node.id]
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        if kind is Kind.DTYPE:
            return self.types.dtype(node)
        if isinstance(node, ast.Attribute):
            return self._dotted_attribute(kind, node)
        value = self.literal_of(node)
        if is_worded(kind):
            if kind is Kind.PAD and isinstance(value, float):
                value = {float("inf"): "max", float("-inf"): "min", 0.0: "zero"}.get(value, str(value))
            elif kind is Kind.PAD and value == 0:
                value = "zero"
            if not isinstance(value, str | int):
                raise error("TG006", f"a {kind.value} is expected here", self.span(node))
            return read_word(kind, value, self.span(node))
        return self._plain_attribute(kind, value, node)

    def _dotted_attribute(self, kind: Kind, node: ast.Attribute) -> Any:
        word = node.attr
        if is_worded(kind):
            dotted = self.module.dotted(node)
            if dotted == "math.inf" and kind is Kind.PAD:
                return "max"
            return read_word(kind, word, self.span(node))
        if kind is Kind.WORD:
            return word
        if kind is Kind.NUMBER:
            return self.literal_of(node)
        raise error("TG006", f"a {kind.value} is expected here", self.span(node))

    def _plain_attribute(self, kind: Kind, value: Any, node: ast.expr) -> Any:
        match kind:
            case Kind.FLAG if value in (0, 1):
                return bool(value)
            case Kind.INT if isinstance(value, int) and not isinstance(value, bool):
                return int(value)
            case Kind.NUMBER if isinstance(value, int | float):
                return float(value)
            case Kind.WORD if isinstance(value, str | int | tuple):
                return value
        raise error("TG006", f"a {kind.value} is expected here", self.span(node))

    def literal_of(self, node: ast.expr) -> Any:
        """Return the Python value of a literal (``math.inf`` included); raises TG006."""
        sign = 1.0
        inner = node
        if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.USub):
            sign, inner = -1.0, inner.operand
        special = {"math.inf": float("inf"), "math.nan": float("nan")}.get(self.module.dotted(inner) or "")
        if special is not None:
            return sign * special
        try:
            return self.module.fold(node)
        except NotLiteral:
            pass
        found = self.value(node) if isinstance(node, ast.Name) else None
        if isinstance(found, Const):
            return found.value
        raise error("TG006", "a literal is expected here", self.span(node), hint="nothing is executed")

    # -- arguments of operations tilegg does not know --

    def loose_keyword(self, kw: ast.keyword, extra: list[tuple[str, Operand]], attrs: dict[str, Any]) -> None:
        """Add a keyword of an operation tilegg does not know: as an operand when it names values."""
        if kw.arg is None:
            raise error("TG002", "** is outside the language", self.span(kw))
        if kw.arg in ("callee", "keywords"):
            raise error("TG005", f"a keyword cannot be called {kw.arg}", self.span(kw))
        if kw.arg == "attrs" and isinstance(kw.value, ast.Dict):
            attrs["attrs"] = self.dictionary(kw.value)
            return
        found = self.loose(kw.value)
        if isinstance(found, Verbatim):
            attrs[kw.arg] = found.text
        else:
            extra.append((kw.arg, found))

    def loose(self, node: ast.expr) -> Operand:
        """Return an operand where it is one that can be understood, else its text."""
        if isinstance(node, ast.Name):
            if node.id in self.names or (
                node.id not in self.module.signatures and not isinstance(self.module.constants.get(node.id), ast.AST)
            ):
                found = self.value(node)
                return Verbatim("None") if found is None else found
        elif isinstance(node, ast.Constant):
            return self.value(node) if isinstance(node.value, bool | int | float) else Verbatim(self.module.text(node))
        elif isinstance(node, ast.List):
            return tuple(self.loose(i) for i in node.elts)
        elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.Subscript):
            if self.mentions_values(node) or not isinstance(node, ast.Subscript):
                return self.value(node)
        elif isinstance(node, ast.Call):
            text = self.module.dotted(node.func) or ""
            if text == "pl.const" or self.mentions_values(node):
                return self.value(node)
        if isinstance(node, ast.Name) and node.id not in self.module.signatures:
            constant = self.module.constants[node.id]
            if not (self.module.dotted(getattr(constant, "func", constant)) or "").startswith("pl"):
                return self.value(node)
            node = constant
        return Verbatim(self.module.text(node, self.renames_in(node)))

    # -- names inside verbatim text ----------------------------------------------------------------------

    def mentions_values(self, node: ast.AST) -> bool:
        """Return whether an expression names a value of the function."""
        return any(isinstance(n, ast.Name) and n.id in self.names for n in ast.walk(node))

    def renames_in(self, node: ast.AST) -> dict[str, str]:
        """Return the names in an expression whose values are called otherwise."""
        out = {}
        for n in ast.walk(node):
            if isinstance(n, ast.Name):
                found = self.names.get(n.id)
                if isinstance(found, Value) and found.name != n.id:
                    out[n.id] = found.name
        return out
