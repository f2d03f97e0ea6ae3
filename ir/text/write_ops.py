"""Operations as calls and operators: one printer per operation, made from its declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..dtypes import BOOL, FP32, INDEX
from ..op import OPS, Kind
from ..ops.scalars import INFIX, PREFIX
from ..program import Const, Op, Operand, Value, Verbatim
from .layout import WORD_PREFIX
from .resolve import Slot, plan
from .words import quoted, show_attr, show_float

#: Attributes that are written even when they have their default.
_ALWAYS = (Kind.DTYPE, Kind.MEMORY, Kind.MODE, Kind.COMPARE)

Render = Callable[[Op, Callable[[Operand], str]], str]


def print_operand(o: Operand) -> str:
    """Return the text of an operand."""
    if o.__class__ is Value:
        return o.name
    if o.__class__ is tuple:
        return "[" + ", ".join([print_operand(i) for i in o]) + "]"
    if o.__class__ is Const:
        return print_const(o)
    return o.text if isinstance(o, Verbatim) else "None"


def print_const(c: Const) -> str:
    """Return the text of a literal: bare where the bare form has the same dtype, else ``pl.const``."""
    if c.dtype is INDEX and c.value.__class__ is int:
        return str(c.value)
    if c.dtype is FP32:
        return show_float(float(c.value))
    if c.dtype is BOOL:
        return str(bool(c.value))
    return typed_const(c)


def typed_const(c: Const) -> str:
    """Return the ``pl.const(value, dtype)`` form of a literal."""
    text = show_float(float(c.value)) if c.dtype.is_float else str(c.value)
    return f"pl.const({text}, pl.{c.dtype.name})"


def renderer(name: str) -> Render:
    """Return the printer of an operation's right-hand side."""
    found = _RENDERERS.get(name)
    if found is None:
        found = _RENDERERS[name] = _make(name)
    return found


_RENDERERS: dict[str, Render] = {}


def _make(name: str) -> Render:
    if name in INFIX:
        return _infix(INFIX[name])
    if name in PREFIX:
        return _prefix(PREFIX[name])
    if name == "getitem":
        return lambda op, text: f"{text(op.operands[0])}[{', '.join(map(text, op.operands[1:]))}]"
    if name == "setitem":
        return _set_item
    if name == "call":
        return lambda op, text: _loose(f"self.{op.attrs['callee']}", op, text)
    if name in OPS:
        return _declared(name)
    return lambda op, text: _loose(name, op, text)


def _set_item(op: Op, text: Callable[[Operand], str]) -> str:
    base, value, *indices = op.operands
    return f"{text(base)}[{', '.join(map(text, indices))}] = {text(value)}"


def _infix(symbol: str) -> Render:
    def render(op: Op, text: Callable[[Operand], str]) -> str:
        a, b = op.operands
        left = text(a)
        if isinstance(a, Const) and isinstance(b, Const):
            # Two bare literals would be folded when they are read.
            left = typed_const(a)
        return f"{_atom(a, left)} {symbol} {_atom(b, text(b))}"

    return render


def _atom(o: Operand, text: str) -> str:
    return f"({text})" if isinstance(o, Verbatim) else text


def _prefix(symbol: str) -> Render:
    def render(op: Op, text: Callable[[Operand], str]) -> str:
        x = op.operands[0]
        return symbol + (typed_const(x) if isinstance(x, Const) else _atom(x, text(x)))

    return render


def _declared(name: str) -> Render:
    p = plan(name)
    space, _, short = name.partition(".")
    scalar = space == "scalar"
    call = f"pl.{short}" if scalar else name if space == "pld" else f"pl.{name}"
    leading: list[int] = []
    for slot in p.slots:
        if slot.index < 0 or slot.param.keyword_only:
            break
        leading.append(slot.index)
    rest = p.slots[len(leading) :]
    fixed = {s.param.name: _default_text(s) for s in rest if s.index < 0 and s.param.kind in _ALWAYS}
    if scalar:
        fixed = {k: v for k, v in fixed.items() if p.by_name[k].param.kind is Kind.DTYPE}
    names = {s.index: s.param.name for s in p.slots if s.index >= 0}

    def render(op: Op, text: Callable[[Operand], str]) -> str:
        operands, attrs = op.operands, op.attrs
        parts: list[str] = []
        gap = False
        for i in leading:
            o = operands[i]
            if o is None:
                gap = True
            elif gap:
                parts.append(f"{names[i]}={text(o)}")
            else:
                parts.append(text(o))
        for slot in rest:
            key = slot.param.name
            if slot.index >= 0:
                if operands[slot.index] is not None:
                    parts.append(f"{key}={text(operands[slot.index])}")
            elif key in attrs:
                value = _attr_text(slot, attrs[key])
                parts.append(value if scalar and key in fixed else f"{key}={value}")
            elif fixed.get(key) is not None:
                parts.append(f"{key}={fixed[key]}")
        if "attrs" in attrs:
            parts.append(print_dictionary(attrs["attrs"]))
        return f"{call}({', '.join(parts)})"

    return render


def _default_text(slot: Slot) -> str | None:
    param = slot.param
    return None if param.required or param.default is None else _attr_text(slot, param.default)


def _attr_text(slot: Slot, value: Any) -> str:
    if slot.param.kind is Kind.WORD and isinstance(value, str) and slot.param.name in WORD_PREFIX:
        return WORD_PREFIX[slot.param.name] + value
    return show_attr(slot.param.kind, value)


def print_dictionary(pairs: Any) -> str:
    """Return the ``attrs={...}`` argument of a dump."""
    return "attrs={" + ", ".join(f"{quoted(k)}: {v}" for k, v in pairs) + "}"


def _loose(call: str, op: Op, text: Callable[[Operand], str]) -> str:
    attrs: Mapping[str, Any] = op.attrs
    keywords = attrs.get("keywords", ())
    plain = len(op.operands) - len(keywords)
    parts = [text(o) for o in op.operands[:plain]]
    parts += [f"{k}={text(o)}" for k, o in zip(keywords, op.operands[plain:])]
    for key, value in attrs.items():
        if key == "attrs":
            parts.append(print_dictionary(value))
        elif key not in ("callee", "keywords"):
            parts.append(f"{key}={value}")
    return f"{call}({', '.join(parts)})"
