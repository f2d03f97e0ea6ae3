"""Calls: declared operations, unified spellings, functions of the program, unknown operations."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..diagnostics import error
from ..infer import merge_types, result_types, stored_attrs, type_of
from ..literals import literal
from ..op import Kind, kind_accepts
from ..program import Const, Op, Operand, Value, Verbatim
from ..types import UNKNOWN, OpaqueType, ScalarType, TensorType, TileType, TupleType, Type
from .arguments import FIRST_NAMES, Arguments, Unmodelled
from .functions import call_results
from .resolve import Plan, Target, resolve
from .source import did_you_mean

_MISSING: Any = object()
#: Calls that have a meaning only in certain places, and where.
_MISPLACED = {
    "pl.yield_": "a yield is the last statement of a loop body or branch",
    "pl.cond": "pl.cond(...) is the first statement of a pl.while_ body",
    "pl.range": "loops are written: for i in pl.range(n):",
    "pl.while_": "loops are written: for (x,) in pl.while_(init_values=(x0,)):",
}

#: Calls that are no operations.
_SPECIAL = frozenset(
    ("pl.const", "min", "max", "float", "pl.dynamic", *_MISPLACED)
    + tuple(f"{prefix}{kind}" for prefix in ("", "pl.") for kind in ("parallel", "unroll", "pipeline"))
)

#: Unified spellings that take their scalar first, too: the operation on the tile and the scalar that means it.
_FIRST_SCALAR = {
    "add": "tile.adds", "sub": "tile.subs", "mul": "tile.muls", "div": "tile.rdivs", "maximum": "tile.maximums",
    "minimum": "tile.minimums", "and_": "tile.ands", "or_": "tile.ors", "xor": "tile.xors",
}  # fmt: skip


@dataclass
class Calls(Arguments):
    """Reads calls into operations."""

    targets: dict[str, Target] = field(default_factory=dict)

    def call(self, node: Any, name: str | None, written: Type | None) -> Operand:
        """Read a call whose value is used; raises TG006 when it has none or several."""
        results = self.call_results(node, None if name is None else (name,), written)
        if len(results) == 1:
            only: Operand = results[0]
            return only
        if not results:
            raise error("TG006", "the call has no result", self.span(node))
        if name is not None:
            self.names[name] = tuple(results)
        return tuple(results)

    def call_results(
        self, node: ast.Call, names: tuple[str, ...] | None, written: Type | None, used: bool = True
    ) -> list[Any]:
        """Read a call and return its results.

        ``names`` are the source names they get; one name for several results makes a tuple of values. With
        ``used`` false the call stands alone and its results are dropped.
        """
        text = self.module.dotted(node.func)
        if text is None:
            return self._call_of_value(node, names, written, used)
        target = self.targets.get(text)
        if target is None:
            # Near misses are looked for in programs, not in floods of unknown words.
            target = self.targets[text] = resolve(text, hints=len(self.targets) < 200)
        if len(target.plans) == 1 and not target.unified:
            return self._declared(target.plans[0], node, (), names, written, used)
        special = self._special(text, node)
        if special is not _MISSING:
            return [special]
        if target.plans:
            return self._unified(target, node, names, written, used)
        callee = self._callee(text, node)
        if callee is not None:
            return self._function(callee, node, names, written, used)
        return self._unknown(target, node, names, written, used)

    def _special(self, text: str, node: ast.Call) -> Any:
        if text not in _SPECIAL:
            return _MISSING
        if text == "pl.const":
            return self._const(node)
        if text in ("min", "max") and len(node.args) == 2 and not node.keywords:
            values = [self.value(a) for a in node.args]
            return self.emit(f"scalar.{text}", tuple(values), {}, node, None, None)
        if text == "float":
            hint = "write the number out, or math.inf / math.nan"
            raise error("TG002", "nothing is executed: float(...) is no constant", self.span(node), hint=hint)
        if text in _MISPLACED or text.removeprefix("pl.") in ("parallel", "unroll", "pipeline"):
            hint = _MISPLACED.get(text, f"loops are written: for i in {text}(n):")
            raise error("TG002", f"{text} does not stand here", self.span(node), hint=hint)
        if text == "pl.dynamic":
            raise error("TG002", "pl.dynamic(...) stands in shapes and at module level", self.span(node))
        return _MISSING

    def _const(self, node: ast.Call) -> Const:
        if len(node.args) != 2 or node.keywords:
            hint = "pl.const(42, pl.INT64)"
            raise error("TG005", "pl.const takes a value and a dtype", self.span(node), hint=hint)
        dtype = self.types.dtype(node.args[1])
        value = self.literal_of(node.args[0])
        if not isinstance(value, bool | int | float):
            raise error("TG006", "pl.const takes a number", self.span(node))
        written_out = value not in (float("inf"), float("-inf")) or isinstance(
            node.args[0], ast.Attribute | ast.UnaryOp
        )
        if not written_out:
            raise error("TG011", f"the constant does not fit {dtype.name}", self.span(node))
        return literal(value, dtype, self.span(node))

    # -- declared operations -----------------------------------------------------------------------------

    def _declared(
        self,
        plan: Plan,
        node: ast.Call,
        ready: tuple[Operand, ...],
        names: tuple[str, ...] | None,
        written: Type | None,
        used: bool,
    ) -> list[Any]:
        decl = plan.decl
        span = self.span(node)
        mark = len(self.out)
        try:
            operands, attrs = self._bind(plan, node, ready)
        except Unmodelled as missing:
            # The language has the option, tilegg does not know its meaning: the call is kept as it stands.
            del self.out[mark:]
            hint = f"{decl.name} is known without {missing}"
            return self._unknown(Target(f"pl.{decl.name}", (), hint=hint), node, names, written, used, ready)
        self.predicates.check(decl, operands, span)
        types = result_types(decl, operands, attrs, span)
        if attrs:
            attrs = stored_attrs(decl, attrs)
        if types is not None and len(types) == 1 and (names is None or len(names) == 1):
            if not used:
                self.out.append(Op(decl.name, operands, attrs, (), span))
                return []
            t = types[0] if written is None else merge_types(types[0], written, span)
            return [self.finish(decl.name, operands, attrs, t, names[0] if names else None, span)]
        return self.finish_many(decl.name, operands, attrs, types, names, written, used, node)

    # -- unified spellings -------------------------------------------------------------------------------

    def _unified(
        self, target: Target, node: ast.Call, names: tuple[str, ...] | None, written: Type | None, used: bool
    ) -> list[Any]:
        node = _leading_positional(target, node)
        ready = self._leading(target, node)
        fitting = self._fitting(target, ready)
        if fitting is None and any(isinstance(type_of(o), TensorType | OpaqueType) for o in ready):
            fitting = next((p for p in target.plans if self._may_be(p, ready, written)), None)
        if fitting is None and _scalar_and_tile(node, ready) and any(p.first is Kind.TILE for p in target.plans):
            form = _FIRST_SCALAR.get(target.text.rpartition(".")[2], "")
            name = names[0] if names else None
            return [self.scalar_first(form, target.text, ready[0], ready[1], node, name, written)]
        # A form that takes the first operand tells best what is wrong with the others.
        if fitting is None and ready:
            fitting = self._fitting(target, ready[:1])
        if fitting is not None:
            return self._declared(fitting, node, ready, names, written, used)
        # Tensor forms of the ordinary operations may be unknown; those of the distributed ones are all declared.
        unknowable = OpaqueType if target.text.startswith("pld.") else TensorType | OpaqueType
        if any(isinstance(type_of(o), unknowable) for o in ready):
            return self._unknown(target, node, names, written, used, ready)
        got = ", ".join(str(type_of(o) or "a list") for o in ready) or "nothing"
        forms = "; ".join(
            f"{p.decl.name}({', '.join(s.param.kind.value for s in p.slots if s.index >= 0)})" for p in target.plans
        )
        code = "TG006" if ready else "TG005"
        raise error(code, f"{target.text} does not take {got}", self.span(node), hint=f"it takes {forms}")

    def _leading(self, target: Target, node: ast.Call) -> tuple[Operand, ...]:
        """Evaluate the operands that decide which form is meant: at most the first two."""
        return tuple([self.argument(target.text, arg) for arg in node.args[: target.leading]])

    def _fitting(self, target: Target, ready: tuple[Operand, ...]) -> Plan | None:
        """Return the first form that takes the operands."""
        for plan in target.plans:
            if self._fits(plan, ready):
                return plan
        return None

    def _fits(self, plan: Plan, ready: tuple[Operand, ...]) -> bool:
        for slot, operand in zip(plan.slots, ready):
            if operand.__class__ is Value:
                if not kind_accepts(slot.param.kind, operand.type):
                    return False
                continue
            kind, t = slot.param.kind, type_of(operand)
            if isinstance(operand, Verbatim) or (operand is None and not slot.param.required):
                continue
            if kind is Kind.DIMS:
                if not isinstance(operand, tuple):
                    return False
            elif t is None or not kind_accepts(kind, t):
                return False
        return len(ready) > 0 or all(s.index < 0 or not s.param.required for s in plan.slots[:1])

    def _may_be(self, plan: Plan, ready: tuple[Operand, ...], written: Type | None) -> bool:
        """Return whether an operand of unknown type may be what the annotation's kind suggests."""
        if not isinstance(written, TileType) or not plan.decl.name.startswith("tile."):
            return False
        return all(
            isinstance(type_of(o), OpaqueType) or ((t := type_of(o)) is not None and kind_accepts(s.param.kind, t))
            for s, o in zip(plan.slots, ready)
        )

    # -- functions of the program ------------------------------------------------------------------------

    def _callee(self, text: str, node: ast.Call) -> str | None:
        owner, _, short = text.rpartition(".")
        if owner not in ("", "self", self.module.class_name):
            return None
        if short in self.module.signatures:
            return short
        if not owner and isinstance(self.names.get(short), Value):
            raise error("TG002", f"{short} is a value, not a function", self.span(node))
        hint = did_you_mean(short, self.module.signatures) or "functions have @pl.function; nothing is executed"
        raise error("TG003", f"unknown function {short[:80]}", self.span(node), hint=hint)

    def _function(
        self, callee: str, node: ast.Call, names: tuple[str, ...] | None, written: Type | None, used: bool
    ) -> list[Any]:
        params = [p.value.name for p in self.module.signatures[callee].params]
        bound: dict[str, Operand] = {}
        extra: list[tuple[str, Operand]] = []
        attrs: dict[str, Any] = {"callee": callee}
        if len(node.args) > len(params):
            message = f"{callee} takes {len(params)} arguments, got {len(node.args)}"
            raise error("TG005", message, self.span(node), hint=f"its parameters: {', '.join(params) or 'none'}")
        for param, arg in zip(params, node.args):
            bound[param] = self.value(arg)
        for kw in node.keywords:
            if kw.arg in bound:
                raise error("TG005", f"{callee}: {kw.arg!r} is given twice", self.span(kw))
            if kw.arg in params:
                bound[kw.arg or ""] = self.value(kw.value)
            else:
                self.loose_keyword(kw, extra, attrs)
        missing = [p for p in params if p not in bound]
        if missing:
            raise error("TG005", f"{callee}: no argument for {', '.join(missing)}", self.span(node))
        operands = tuple(bound[p] for p in params)
        types = call_results(self.module, callee, operands, self.span(node))
        if types == () and used:
            raise error("TG006", f"{callee} returns nothing", self.span(node))
        if extra:
            attrs["keywords"] = tuple(k for k, _ in extra)
        operands += tuple(o for _, o in extra)
        return self.finish_many("call", operands, attrs, types, names, written, used, node)

    # -- unknown operations ------------------------------------------------------------------------------

    def _unknown(
        self,
        target: Target,
        node: ast.Call,
        names: tuple[str, ...] | None,
        written: Type | None,
        used: bool,
        ready: tuple[Operand, ...] = (),
    ) -> list[Any]:
        if not target.text.startswith(("pl.", "pld.")):
            raise error("TG003", f"unknown function {target.text[:80]}", self.span(node),
                        hint="operations start with pl. or pld.; nothing is executed")  # fmt: skip
        if target.plans and any(isinstance(type_of(o), OpaqueType) for o in ready):
            self.note_untyped(target.text, node)
        else:
            self.note_unknown(target.text, node, target.hint)
        operands = [*ready, *(self.loose(a) for a in node.args[len(ready) :])]
        extra: list[tuple[str, Operand]] = []
        attrs: dict[str, Any] = {}
        for kw in node.keywords:
            self.loose_keyword(kw, extra, attrs)
        if extra:
            attrs["keywords"] = tuple(k for k, _ in extra)
        operands += [o for _, o in extra]
        return self.finish_many(target.text, tuple(operands), attrs, None, names, written, used, node)

    def finish_many(
        self,
        full: str,
        operands: tuple[Operand, ...],
        attrs: dict[str, Any],
        types: tuple[Type, ...] | None,
        names: tuple[str, ...] | None,
        written: Type | None,
        used: bool,
        node: ast.AST,
    ) -> list[Any]:
        """Add an operation with any number of results and return them; TG005 when the counts differ."""
        span = self.span(node)
        if not used:
            self.out.append(Op(full, operands, attrs, (), span))
            return []
        if isinstance(written, TupleType) and types is not None and len(types) == len(written.items) > 1:
            # Several results are written without annotations, so that these can only agree.
            for a, b in zip(types, written.items):
                merge_types(a, b, span)
        elif types is None or len(types) < 2:
            if names is None or len(names) == 1:
                t = merge_types(types[0] if types else None, written, span)
                return [self.finish(full, operands, attrs, t, names[0] if names else None, span)]
            types = (UNKNOWN,) * len(names) if types is None else types
        if names is not None and len(names) == len(types):
            values = [self.define(n, t) for n, t in zip(names, types)]
        elif names is None or len(names) == 1:
            stem = names[0] if names else self.target
            values = [Value(self.unique(f"{stem}_{i}"), t) for i, t in enumerate(types)]
        else:
            raise error("TG005", f"the call gives {len(types)} results for {len(names)} names", span)
        self.out.append(Op(full, operands, attrs, tuple(values), span))
        self.keep_roots(operands, values)
        return values

    def keep_roots(self, operands: tuple[Operand, ...], values: list[Value]) -> None:
        """Note that tensor results are later versions of an output parameter among the operands."""
        if not self.roots:
            return
        known = [self.roots[o.name] for o in operands if isinstance(o, Value) and o.name in self.roots]
        for value in values:
            if known and isinstance(value.type, TensorType | OpaqueType):
                self.roots[value.name] = known[0]

    def _call_of_value(
        self, node: ast.Call, names: tuple[str, ...] | None, written: Type | None, used: bool
    ) -> list[Any]:
        raise error("TG002", "only operations and functions can be called", self.span(node))


def _scalar_and_tile(node: ast.Call, ready: Sequence[Operand]) -> bool:
    """Return whether a call's only arguments are a scalar and a tile, in this order."""
    if len(node.args) != 2 or len(ready) != 2 or node.keywords:
        return False
    return isinstance(type_of(ready[0]), ScalarType) and isinstance(type_of(ready[1]), TileType)


def _leading_positional(target: Target, node: ast.Call) -> ast.Call:
    """Return the call with the operands that decide its form in front, should they stand as keywords."""
    if len(node.args) > 1 or not node.keywords:
        return node
    args, keywords = list(node.args), list(node.keywords)
    for i in range(len(args), 2):
        names = {p.slots[i].param.name for p in target.plans if len(p.slots) > i and p.slots[i].index >= 0}
        if i == 0:
            names.update(FIRST_NAMES)
        found = next((k for k in keywords if k.arg in names), None)
        if found is None:
            break
        args.append(found.value)
        keywords.remove(found)
    if len(args) == len(node.args):
        return node
    return ast.copy_location(ast.Call(node.func, args, keywords), node)
