"""Loops, in SSA form as dumps have them or with names assigned again.

A name that a body assigns and that is read in a later round or after the loop becomes a carried value.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ..diagnostics import TileggError, error
from ..dtypes import INDEX
from ..infer import join_types, merge_types, type_of
from ..program import (
    Carried,
    Const,
    For,
    Operand,
    Statement,
    Value,
    While,
    Yield,
    index,
)
from ..types import OpaqueType, ScalarType, Type, scalar
from .branches import Branches
from .dataflow import output_sources
from .state import Frame, Unset, block

LOOPS = ("range", "parallel", "unroll", "pipeline", "spmd", "split_aiv")


@dataclass
class Control(Branches):
    """Reads loops."""

    # -- loops -------------------------------------------------------------------------------------------

    def for_(self, s: ast.For) -> None:
        """Read ``for i in pl.range(...)`` and its kin, or ``for (x,) in pl.while_(...)``."""
        if s.orelse:
            raise error("TG002", "else after a loop is outside the language", self.span(s.orelse[0]))
        call = s.iter
        name = self.module.dotted(call.func) or "" if isinstance(call, ast.Call) else ""
        kind = name.removeprefix("pl.") if name.startswith("pl.") else ""
        if kind == "while_" and isinstance(call, ast.Call):
            self._ssa_while(s, call)
        elif kind in LOOPS and isinstance(call, ast.Call):
            self._counted(s, call, kind)
        else:
            hint = "loops are: for i in pl.range(n), pl.parallel, pl.unroll, pl.pipeline, pl.spmd"
            raise error("TG002", "not a loop of the language", self.span(s.iter), hint=hint)

    def _counted(self, s: ast.For, call: ast.Call, kind: str) -> None:
        var, args = self._loop_names(s)
        self.target = var
        bounds = self._bounds(call)
        inits, attrs = self._loop_keywords(call)
        if len(inits) != len(args):
            raise error("TG014", f"{len(inits)} initial values for {len(args)} carried names", self.span(call))
        self.nest(s)
        saved = self._save(s, var, args)
        extra = self._carried_names(s, {var, *args}, s.body)
        inits += [self._current(n, s) for n in extra]
        escaping = self._escaping(s, {var, *args, *extra})
        extra += escaping
        inits += escaping.values()
        value = self.define(var, self._var_type(bounds))
        carried = self._carry([*args, *extra], inits, s)
        frame = Frame(kind, loop=True, carried=(*args, *extra))
        body = self.inner(s.body, frame)
        results = self._close_loop(s, frame, carried, args, extra, body, saved)
        self.depth -= 1
        self.out.append(For(kind, value, bounds, tuple(carried), block(body), results, attrs, self.span(s)))

    def _loop_names(self, s: ast.For) -> tuple[str, list[str]]:
        target = s.target
        if isinstance(target, ast.Name):
            return target.id, []
        if isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[0], ast.Name):
            return target.elts[0].id, self._plain_names(target.elts[1])
        raise error("TG002", "a loop is written: for i in ..., or for i, (acc,) in ...", self.span(target))

    def _plain_names(self, node: ast.expr) -> list[str]:
        items = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        names = [i.id for i in items if isinstance(i, ast.Name)]
        if len(names) != len(items) or len(set(names)) != len(names):
            raise error("TG002", "carried values are distinct plain names", self.span(node))
        return names

    def _bounds(self, call: ast.Call) -> tuple[Operand, Operand, Operand]:
        args = [self.integer(a) for a in call.args]
        named = {k.arg: k.value for k in call.keywords}
        if not args and "core_num" in named:
            args = [self.integer(named["core_num"])]
        if not 1 <= len(args) <= 3:
            raise error("TG005", f"a loop takes 1 to 3 bounds, got {len(args)}", self.span(call))
        if len(args) == 1:
            return index(0), args[0], index(1)
        if len(args) == 3 and isinstance(args[2], Const) and args[2].value == 0:
            raise error("TG008", "the loop's step is zero", self.span(call))
        return args[0], args[1], args[2] if len(args) == 3 else index(1)

    def _var_type(self, bounds: tuple[Operand, ...]) -> Type:
        for b in bounds:
            t = type_of(b)
            if isinstance(t, ScalarType) and t.dtype is not INDEX:
                return t
        return scalar(INDEX)

    def _loop_keywords(self, call: ast.Call) -> tuple[list[Operand], dict[str, Any]]:
        inits: list[Operand] = []
        attrs: dict[str, Any] = {}
        for kw in call.keywords:
            if kw.arg == "init_values":
                if not isinstance(kw.value, ast.Tuple | ast.List):
                    raise error("TG002", "init_values is a tuple", self.span(kw), hint="init_values=(a0,)")
                inits = [self._yielded(v) for v in kw.value.elts]
            elif kw.arg == "core_num":
                continue
            elif kw.arg is None:
                raise error("TG002", "** is outside the language", self.span(kw))
            elif kw.arg == "attrs" and isinstance(kw.value, ast.Dict):
                attrs["attrs"] = self.dictionary(kw.value)
            else:
                attrs[kw.arg] = self.module.text(kw.value, self.renames_in(kw.value))
        return inits, attrs

    def _save(self, s: ast.For | ast.While, *own: Any) -> dict[str, Operand | Unset | None]:
        names = dict.fromkeys(self.flow.assigned([s]))
        for item in own:
            names.update(dict.fromkeys([item] if isinstance(item, str) else item))
        return {n: self.names.get(n) for n in names}

    def _carried_names(self, s: ast.For | ast.While, own: set[str], body: list[ast.stmt]) -> list[str]:
        """Return the names defined before that the body assigns and that a later round or statement reads."""
        again = [n for n in self.flow.assigned(body) if n not in own and self._has_value(n)]
        if not again:
            return []
        live = self.flow.live_in_loop(s)
        return [n for n in again if n in live]

    def _escaping(self, s: ast.For | ast.While, own: set[str]) -> dict[str, Value]:
        """Return names first assigned in the body and read after the loop, with what they are before it.

        That is known of later versions of an output parameter: before the first round they are that parameter.
        """
        if not self.roots:
            return {}
        assigned = self.flow.assigned(s.body)
        new = [n for n in assigned if n not in own and not self._has_value(n)]
        live = self.flow.live_after(s) if new else set()
        sources = output_sources(self.flow, s.body, [n for n in new if n in live])
        found = {}
        for name, reads_of in sources.items():
            values = [self.names.get(r) for r in reads_of if r != name]
            outputs = {v.name: v for v in values if isinstance(v, Value) and v.name in self.roots}
            if len(outputs) == 1:
                found[name] = next(iter(outputs.values()))
        return found

    def _has_value(self, name: str) -> bool:
        found = self.names.get(name)
        return found is not None and not isinstance(found, Unset | tuple)

    def _carry(self, names: list[str], inits: list[Operand], s: ast.AST) -> list[Carried]:
        out = []
        for name, init in zip(names, inits):
            t = type_of(init)
            if t is None:
                raise error("TG014", f"{name} cannot be carried", self.span(s))
            arg = self.define(name, t)
            if isinstance(init, Value) and init.name in self.roots:
                self.roots[arg.name] = self.roots[init.name]
            out.append(Carried(arg, init))
        return out

    def _close_loop(
        self,
        s: ast.For | ast.While,
        frame: Frame,
        carried: list[Carried],
        args: list[str],
        extra: list[str],
        body: list[Statement],
        saved: dict[str, Operand | Unset | None],
    ) -> tuple[Value, ...]:
        """End a loop body with its yield, define the loop's results and restore the names outside."""
        given = frame.yielded
        names = list((given.names if given is not None else ()) or frame.names or args)
        if len(names) != len(args):
            message = f"{len(names)} values are yielded, {len(args)} are carried"
            raise error("TG014", message, self.span(s))
        if given is not None and len(given.operands) != len(args):
            message = f"{len(given.operands)} values are yielded, {len(args)} are carried"
            raise error("TG014", message, self.span(given.node))
        operands: list[Operand] = []
        if carried and not frame.jumped:
            operands = list(given.operands) if given is not None else [self._current(n, s) for n in args]
            operands += [self._current(n, s) for n in extra]
            body.append(Yield(tuple(operands), self.span(given.node if given is not None else s)))
        span = self.span(s)
        body_names = self.flow.assigned(s.body)
        written = given.types if given is not None else ()
        types = []
        for i, c in enumerate(carried):
            t: Type = c.arg.type
            if i < len(operands):
                t = self._round_type(c, operands[i], span)
            merged_type = merge_types(t, written[i] if i < len(written) else None, span)
            # Several results are written without annotations, so none may add to their types.
            types.append(merged_type if len(carried) == 1 else t)
        for name, old in saved.items():
            kept = old is not None and (name not in body_names or name in args)
            self.names[name] = old if kept else Unset("it is assigned inside a loop")
        results = []
        for i, name in enumerate([*names, *extra]):
            results.append(self.define(name, types[i]))
            if i < len(args) and args[i] != name and saved.get(args[i]) is None:
                self.names[args[i]] = results[-1]
            if carried[i].arg.name in self.roots:
                self.roots[results[-1].name] = self.roots[carried[i].arg.name]
        return tuple(results)

    def _round_type(self, c: Carried, operand: Operand, span: Any) -> Type:
        try:
            joined = join_types(c.arg.type, type_of(operand), span, f"the carried value {c.arg.name}")
        except TileggError as problem:
            if isinstance(c.init, Const):
                hint = "give the initial value its dtype: pl.const(0, pl.FP32)"
                first = problem.diagnostics[0]
                raise error(first.code, first.message, first.span, reason=first.reason, hint=hint) from None
            raise
        return c.arg.type if not isinstance(c.arg.type, OpaqueType) else joined

    # -- while -------------------------------------------------------------------------------------------

    def while_(self, s: ast.While) -> None:
        """Read ``while cond:``; names it assigns and reads again are carried."""
        if s.orelse:
            raise error("TG002", "else after a loop is outside the language", self.span(s.orelse[0]))
        self.nest(s)
        saved = self._save(s)
        extra = self._carried_names(s, set(), s.body)
        inits = [self._current(n, s) for n in extra]
        escaping = self._escaping(s, set(extra))
        extra += escaping
        carried = self._carry(extra, [*inits, *escaping.values()], s)
        outer, self.out = self.out, []
        try:
            self.target = "cond"
            cond = self.condition(s.test)
            head = self.out
        finally:
            self.out = outer
        frame = Frame("while", loop=True, carried=tuple(extra))
        body = self.inner(s.body, frame)
        results = self._close_loop(s, frame, carried, [], extra, body, saved)
        self.depth -= 1
        self.out.append(While(tuple(carried), block(head), cond, block(body), results, self.span(s)))

    def _ssa_while(self, s: ast.For, call: ast.Call) -> None:
        args = self._plain_names(s.target)
        self.target = args[0] if args else "cond"
        inits, attrs = self._loop_keywords(call)
        if call.args or attrs:
            raise error("TG005", "pl.while_ takes init_values only", self.span(call))
        if len(inits) != len(args):
            raise error("TG014", f"{len(inits)} initial values for {len(args)} carried names", self.span(call))
        at = next((i for i, b in enumerate(s.body) if self._is_condition(b)), None)
        if at is None:
            raise error("TG014", "a pl.while_ body starts with pl.cond(...)", self.span(s))
        test = s.body[at].value  # type: ignore[attr-defined]
        if len(test.args) != 1 or test.keywords:
            raise error("TG005", "pl.cond takes one condition", self.span(test))
        self.nest(s)
        saved = self._save(s, args)
        extra = self._carried_names(s, set(args), s.body)
        inits += [self._current(n, s) for n in extra]
        carried = self._carry([*args, *extra], inits, s)
        outer, self.out = self.out, []
        try:
            self.run(s.body[:at])
            self.target = "cond"
            cond = self.condition(test.args[0])
            head = self.out
        finally:
            self.out = outer
        frame = Frame("while", loop=True, carried=(*args, *extra))
        body = self.inner(s.body[at + 1 :], frame)
        results = self._close_loop(s, frame, carried, args, extra, body, saved)
        self.depth -= 1
        self.out.append(While(tuple(carried), block(head), cond, block(body), results, self.span(s)))

    def _is_condition(self, s: ast.stmt) -> bool:
        if not isinstance(s, ast.Expr) or not isinstance(s.value, ast.Call):
            return False
        return self.module.dotted(s.value.func) == "pl.cond"
