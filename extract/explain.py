"""Explanations: for every instruction the rule that gave it, why that holds, and what else there was.

    print(explain(tilegg.lower(program, "a5")).render())
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..ir.diagnostics import Diagnostic, Span
from ..ir.op import OPS
from ..ir.ops.select import COMPARISONS
from ..ir.program import Const, Op, Operand, Value
from ..ir.types import ScalarType, TileType, shape_text
from ..rules.paths_error import apart_in_words, kind_in_words, lost_in_words
from ..rules.rule import Rule
from .describe import FactUsed
from .kbest import Alternative
from .lowered import Lowered, Totals
from .trajectory import Trajectory, derivation
from .trajectory_show import brief, headline, to_json


@dataclass(frozen=True)
class Explained:
    """One emitted instruction. ``rules`` lead from what the program wrote to it; empty: it is as written.

    ``part_of`` names the value that a chain's earlier hop helps to compute. ``proof`` says why a chain is exact,
    ``rate`` is the share of elements that an inexact one gives differently (measured).
    """

    text: str
    op: str
    result: str
    span: Span | None
    cycles: float
    rules: tuple[Rule, ...] = ()
    part_of: str = ""
    proof: str = ""
    facts: tuple[FactUsed, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    rate: float = 0.0

    @property
    def rule(self) -> str:
        """The name of the rule that made the instruction, "as written" if none did."""
        return self.rules[-1].name if self.rules else "as written"


@dataclass(frozen=True)
class Dropped:
    """A source operation that is gone, and why."""

    text: str
    op: str
    result: str
    span: Span | None
    why: str
    rules: tuple[Rule, ...] = ()


@dataclass
class ExplainedFunction:
    """One function's instructions in program order, and the operations that are gone."""

    name: str
    instructions: list[Explained] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)


@dataclass
class Explanation:
    """What :func:`explain` gives back; ``answer`` are the lines that answer its question.

    ``derivation``: the rule applications that lead from what was written to what was chosen.
    """

    arch: str
    objective: str
    contract: str
    totals: Totals
    plain: Totals
    optimum: Any
    functions: list[ExplainedFunction]
    remarks: list[Diagnostic]
    derivation: Trajectory
    answer: list[str] = field(default_factory=list)

    def render(self) -> str:
        """Return the text form, for a terminal."""
        lines = [_headline(self)]
        for f in self.functions:
            lines += ["", f"{f.name}:", *_function_lines(f, self.objective)]
        if self.derivation.steps or self.derivation.missing:
            lines += ["", f"{headline(self.derivation)}:", *brief(self.derivation)]
        if self.remarks:
            lines += ["", *(d.render() for d in self.remarks)]
        if self.answer:
            lines += ["", *self.answer]
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form (``docs/json.md``)."""
        return {
            "schema": 1,
            "arch": self.arch,
            "objective": self.objective,
            "contract": self.contract,
            "totals": _totals(self.totals),
            "plain": _totals(self.plain),
            "optimum": self.optimum,
            "functions": [_function_json(f) for f in self.functions],
            "remarks": [d.to_json() for d in self.remarks],
            "answer": self.answer,
            "derivation": to_json(self.derivation),
        }

    def _repr_html_(self) -> str:
        from .notebook import explanation_html

        return explanation_html(self)


def explain(
    lowered: Lowered, *, why_not: str | None = None, alternatives: int = 4, samples: int = 0
) -> Explanation:
    """Explain a lowered program: up to ``alternatives`` other choices an instruction, costs by re-extraction.

    ``samples``: inputs on which the interpreter runs every step of the derivation again (0: none).

    ``why_not`` asks about one thing: a chain of dtypes (``fp32>fp16>int8``), an operation (``tile.adds``) or a
    value of the program by name. Raises TG004 for a chain with an unknown dtype and TG003 for a question about
    nothing in the program.
    """
    from .explain_find import explain_function
    from .why_not import answer

    if not isinstance(lowered, Lowered):
        hint = "tilegg.lower(tilegg.parse(text, name), arch) gives it for text"
        raise TypeError(f"explain takes a Lowered, not {type(lowered).__name__}: {hint}")
    derived = derivation(lowered, samples=samples)
    functions = [explain_function(lowered, f, alternatives, derived.steps) for f in lowered.functions]
    answered = answer(lowered, why_not) if why_not is not None else []
    return Explanation(
        lowered.arch, lowered.objective, lowered.contract, lowered.totals, lowered.plain, lowered.optimum,
        functions, lowered.remarks, derived, answered,
    )  # fmt: skip


# -- operations as short text ------------------------------------------------------------------------------


def op_text(op: Op) -> str:
    """Return ``o = cast(h) FP16 → INT8, trunc`` or ``q = row_expand_mul(t, s2) FP32 [16, 64]``."""
    name = op.name.removeprefix("tile.")
    operands = ", ".join(_operand(o) for o in op.operands if o is not None)
    left = f"{op.results[0].name} = " if op.results else ""
    if op.name == "tile.cast":
        source, result = op.operands[0], op.result
        words = [str(op.attrs.get("mode", "round"))]
        words += [f"saturation {op.attrs['saturation_mode']}"] if "saturation_mode" in op.attrs else []
        src, dst = _dtype(source), _dtype(result)
        return f"{left}cast({_operand(source)}) {src} → {dst}, {', '.join(words)}"
    decl = OPS.get(op.name)
    how = f"[{COMPARISONS[int(op.attrs.get('cmp_type', 0))]}]" if decl and "cmp_type" in decl.by_name else ""
    return f"{left}{name}{how}({operands}){_type_text(op)}"


def _type_text(op: Op) -> str:
    t = op.results[0].type if op.results else None
    if isinstance(t, ScalarType):
        return f" {t.dtype.name}"
    return f" {t.dtype.name} {shape_text(t.shape)}" if isinstance(t, TileType) else ""


def _operand(o: Operand) -> str:
    if isinstance(o, Value):
        return o.name
    if isinstance(o, Const):
        return f"{o.value:g}" if isinstance(o.value, float) else str(o.value)
    if isinstance(o, tuple):
        return f"[{', '.join(map(_operand, o))}]"
    return str(getattr(o, "text", o))


def _dtype(o: Operand) -> str:
    return str(getattr(getattr(o, "type", None), "dtype", "?"))


# -- text --------------------------------------------------------------------------------------------------


def _headline(e: Explanation) -> str:
    plain, totals = e.plain, e.totals
    ratio = totals.against(plain)
    saved = f" ({ratio * 100:+.1f} %)" if ratio is not None else ""
    cost = f"{plain.instructions}, {plain.cycles:.0f}" if plain.legal else str(plain)
    optimum = "proved" if e.optimum == "proved" else f"within {e.optimum['gap']:.2%} of a proved bound"
    return (
        f"{e.arch}, objective {e.objective}, contract {e.contract}: {totals.instructions} instructions, "
        f"{totals.cycles:.0f} cycles{saved}; plain lowering {cost}; "
        f"optimum {optimum}"
    )


_INDENT = " " * 17


def _function_lines(f: ExplainedFunction, objective: str) -> Iterator[str]:
    yield "  line  cycles  instruction"
    for i in f.instructions:
        yield f"{_line(i.span):>6} {i.cycles:>7.0f}  {i.text}"
        yield from (_INDENT + detail for detail in _details(i, objective))
    if f.dropped:
        yield "  gone:"
    for d in f.dropped:
        yield f"{_line(d.span):>6} {'':>7}  {d.text}"
        yield f"{_INDENT}{d.why}"


def _details(i: Explained, objective: str) -> Iterator[str]:
    if i.part_of:
        yield f"on the way to {i.part_of}"
        return
    for rule in i.rules:
        yield f"by {rule.name}: {rule.reason}"
        if rule.bound is not None:
            yield f"promised: {rule.bound}; {rule.bound.special}"
    if i.proof:
        yield f"exact: {i.proof}"
    yield from (f"knowing {fact}" for fact in i.facts)
    width = max((len(a.text) for a in i.alternatives), default=0)
    for a in i.alternatives:
        yield f"not {a.text:<{width}}  {alternative_text(a, objective)}".rstrip()


def alternative_text(a: Alternative, objective: str) -> str:
    """Return why an alternative was not taken: its extra cost, its error, or why it is illegal."""
    error = "" if a.road is None or a.road.exact else f"; {error_text(a)}"
    if a.extra is None:
        return f"illegal: {a.refusal}{error}"
    parts = [f"{a.extra.cycles:+.0f} cycles", f"{a.extra.instructions:+d} instructions"]
    if objective == "instructions":
        parts.reverse()
    shown = ", ".join(p for p in parts if not p.startswith("+0")) or "same cost"
    return f"{shown}{error}"


def error_text(a: Alternative) -> str:
    """Return ``inexact: 1.2 % differ, up to 1 ulp``."""
    assert a.road is not None
    measured = a.road.error
    words = measured.to_json()
    what = kind_in_words(words)
    if not measured.differing:
        seen = "not proved exact" if a.road.witness is None else f"inexact, none of {measured.samples} {what} differs"
        return seen + lost_in_words(words, "")
    part = _share(measured.not_finite.rate) + f" {what}" if measured.not_finite else ""
    return f"inexact: {_share(measured.rate)} {what} differ{apart_in_words(words)}{lost_in_words(words, part)}"


def _share(rate: float) -> str:
    """Return ``1.16% of``; where two decimals would leave too little of it, ``7.6e-06 of all``."""
    return f"{rate:.2%} of" if rate >= 0.001 else f"{rate:.2g} of all"


def _line(span: Span | None) -> str:
    return str(span.line) if span else "-"


# -- JSON --------------------------------------------------------------------------------------------------


def _totals(t: Totals) -> dict[str, Any] | None:
    if not t.legal:
        return None
    return {"instructions": t.instructions, "cycles": round(t.cycles, 3), "inexact": t.inexact}


def _function_json(f: ExplainedFunction) -> dict[str, Any]:
    return {
        "name": f.name,
        "instructions": [_instruction_json(i) for i in f.instructions],
        "dropped": [
            {
                "op": d.op, "result": d.result, "text": d.text, "line": d.span.line if d.span else None,
                "why": d.why, "rules": [r.name for r in d.rules],
            }
            for d in f.dropped
        ],
    }  # fmt: skip


def _instruction_json(i: Explained) -> dict[str, Any]:
    return {
        "op": i.op,
        "result": i.result,
        "text": i.text,
        "line": i.span.line if i.span else None,
        "cycles": round(i.cycles, 3),
        "rule": i.rule,
        "rules": [{"name": r.name, "equation": r.equation, "reason": r.reason} for r in i.rules],
        "part_of": i.part_of,
        "proof": i.proof,
        "facts": [{"value": f.value, "known": f.known, "origin": f.origin, "line": f.line} for f in i.facts],
        "alternatives": [alternative_json(a) for a in i.alternatives],
    }


def alternative_json(a: Alternative) -> dict[str, Any]:
    """Return an alternative as a JSON object; costs are differences of the whole region's totals."""
    measured = a.road.error if a.road is not None and not a.road.exact else None
    return {
        "text": a.text,
        "rule": a.rule,
        "legal": a.legal,
        "cycles": round(a.extra.cycles, 3) if a.extra else None,
        "instructions": a.extra.instructions if a.extra else None,
        "inexact": a.extra.inexact if a.extra else None,
        "error": {k: measured.to_json()[k] for k in ("rate", "max_ulp", "not_finite")} if measured else None,
        "refusal": a.refusal,
    }
