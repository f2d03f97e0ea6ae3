"""What in a lowered program is near the source program's values and not equal to them, and the program without it.

Under the faithful contract a cast may take a legal chain of native casts that is not exact, and composites are computed
by recipes with a stated error under every contract. Everything else is bit for bit the source program;
:func:`exact_form` makes that testable by putting the one conversion, or the composite, back where such a chain or
recipe stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..ir.diagnostics import Span
from ..ir.dtypes import DType
from ..ir.op import OPS
from ..ir.program import Block, Op, Operand, Program, Statement, with_blocks
from ..rewrite.graph import Node
from ..rules.paths import Road
from ..rules.paths_rank import describe
from ..rules.rule import RULES, Rule, rule_names
from ..rules.terms import child_params
from .chains import Request, conversion, is_cast, requests, road_behind
from .lowered import Instruction, Lowered, RegionResult
from .rebuild import is_approx

_MAX_HOPS = 4


@dataclass(frozen=True)
class InexactCast:
    """A chain of native casts that stands for one conversion without being equal to it everywhere.

    ``last`` is the chain's last operation, ``direct`` the conversion it stands for; ``road`` tells how the two
    differ (``None`` when it is no longer among the listed ones).
    """

    function: str
    last: Op
    direct: Op
    road: Road | None

    @property
    def rounds_twice(self) -> bool:
        """False when the chain rounds once, but in another way than asked: the target ignores the request."""
        return self.road is None or self.road.rounds_twice

    @property
    def span(self) -> Span | None:
        """The place of the cast in the source."""
        return self.last.span

    def render(self) -> str:
        """Return the text form: what was asked, what was chosen, how the two differ."""
        src, dst = _dtype(self.direct.operands[0]), _dtype(self.direct.result)
        chosen = f"{self.road}, {describe(self.road)}" if self.road else "a chain that is not exact"
        why = f"; {self.road.remark}" if self.road and self.road.remark else ""
        return f"{src.name} to {dst.name}: {chosen}{why}"

    def to_json(self) -> dict[str, Any]:
        """Return the stable JSON object."""
        error = self.road.error.to_json() if self.road else {}
        return {
            "function": self.function,
            "result": self.last.result.name,
            "src": _dtype(self.direct.operands[0]).name,
            "dst": _dtype(self.direct.result).name,
            "mode": self.direct.attrs.get("mode", "round"),
            "saturation": self.direct.attrs.get("saturation_mode"),
            "chain": [hop.dst.name for hop in self.road.hops] if self.road else None,
            **{key: error.get(key) for key in ("rate", "max_ulp", "not_finite")},
            "span": self.span._asdict() if self.span else None,
        }


@dataclass(frozen=True)
class RecipeUse:
    """A recipe that stands for a composite: ``last`` is its last operation, ``direct`` the composite."""

    function: str
    last: Op
    direct: Op
    rule: Rule

    @property
    def span(self) -> Span | None:
        """The place of the composite in the source."""
        return self.last.span

    def render(self) -> str:
        """Return the text form: the composite, the recipe, the error it states."""
        return f"{self.direct.name} by {self.rule.name}: {self.rule.bound}"

    def to_json(self) -> dict[str, Any]:
        """Return the stable JSON object."""
        errors = self.rule.bound.errors if self.rule.bound else ()
        return {
            "function": self.function,
            "result": self.last.result.name,
            "operation": self.direct.name,
            "rule": self.rule.name,
            "errors": [{"limit": limit, "error": e} for limit, e in errors],
            "span": self.span._asdict() if self.span else None,
        }


def recipe_uses(lowered: Lowered) -> tuple[RecipeUse, ...]:
    """Return the recipes of a lowered program, in program order."""
    found: list[RecipeUse] = []
    for report in lowered.functions:
        for number, region in enumerate(report.regions):
            here = [i for i in report.instructions if i.region == number]
            found += _recipes_in(report.name, here, region)
    return tuple(found)


def _recipes_in(function: str, instructions: list[Instruction], region: RegionResult) -> Iterator[RecipeUse]:
    picked = {c: region.graph.classes[c][i] for c, i in region.solution.picks.items()}
    # A recipe's last operation goes by the class of the composite, or by its own.
    ends = {k: c for c, node in picked.items() if is_approx(node) for k in (c, node.children[0])}
    if not ends:
        return
    operands = _operands(instructions, picked)
    for i in instructions:
        if i.eclass in ends:
            rule, written = _composite(region, ends[i.eclass], picked)
            assert written.decl is not None
            given: list[Operand] = [None] * len(written.decl.operand_params)
            for at, k in zip(child_params(written.decl), written.children):
                given[at] = operands[k]
            direct = Op(written.decl.name, tuple(given), dict(written.attrs), i.op.results)
            yield RecipeUse(function, i.op, direct, rule)


def _operands(instructions: list[Instruction], picked: dict[int, Node]) -> dict[int, Operand]:
    """Return by its class what the instructions of a region read."""
    found: dict[int, Operand] = {}
    for i in instructions:
        node = picked.get(i.eclass)
        if node is not None and is_approx(node):
            node = picked[node.children[0]]
        if node is not None and node.decl is not None:
            found.update((k, i.op.operands[at]) for at, k in zip(child_params(node.decl), node.children))
    return found


def _composite(region: RegionResult, c: int, picked: dict[int, Node]) -> tuple[Rule, Node]:
    """Return the recipe's rule and the composite that a class is the value of."""
    rule = RULES[rule_names()[picked[c].rule]]
    nodes = region.graph.classes[c]
    return rule, next(n for n in nodes if n.decl is not None and n.decl.name == rule.lhs.op)


def inexact_casts(lowered: Lowered) -> tuple[InexactCast, ...]:
    """Return the inexact chains of a lowered program, in program order."""
    found = []
    for report in lowered.functions:
        for instruction in report.instructions:
            if instruction.inexact:
                here = [i for i in report.instructions if i.region == instruction.region]
                found.append(_inexact(lowered, report.name, instruction, report.regions, here))
    return tuple(found)


def exact_form(lowered: Lowered) -> Program:
    """Return the lowered program with one conversion in the place of every inexact chain, composites for recipes.

    It is bit for bit the source program when the lowering is right.
    """
    direct = {id(cast.last): cast.direct for cast in inexact_casts(lowered)}
    direct.update((id(use.last), use.direct) for use in recipe_uses(lowered))
    functions = tuple(replace(f, body=_replaced(f.body, direct)) for f in lowered.program.functions)
    return replace(lowered.program, functions=functions)


def _inexact(
    lowered: Lowered,
    function: str,
    instruction: Instruction,
    regions: list[RegionResult],
    beside: list[Instruction],
) -> InexactCast:
    """Return the chain that ends in an instruction; ``beside`` are the instructions of its region."""
    region, c, last = regions[instruction.region], instruction.eclass, instruction.op
    picked = {k: region.graph.classes[k][i] for k, i in region.solution.picks.items()}
    road = road_behind(region, c, picked[c], lowered.target) if lowered.target else None
    asked = list(requests(region, c))
    operands = _operands(beside, picked)
    for here in _back(region, c):
        request = next((r for r in asked if r.source == here and here in operands), None)
        if request is not None:
            direct = replace(last, operands=(operands[here], *last.operands[1:]), attrs=_attrs(request))
            return InexactCast(function, last, direct, road)
    raise AssertionError(f"no conversion stands behind the chain that ends in {last.result.name}")


def _attrs(request: Request) -> dict[str, Any]:
    attrs: dict[str, Any] = {"target_type": request.dst}
    if request.mode != OPS["tile.cast"].defaults["mode"]:
        attrs["mode"] = request.mode
    if request.saturation is not None:
        attrs["saturation_mode"] = request.saturation
    return attrs


def _back(region: RegionResult, c: int) -> Iterator[int]:
    """Yield the classes that the hops of the chain that ends in a class read, from the last hop back.

    A hop may be made of several instructions.
    """
    picks = region.solution.picks
    for hop in range(_MAX_HOPS):
        node = region.graph.classes[c][picks[c]]
        node = conversion(region.graph, picks, c, node) if hop else node
        if hop and not is_cast(node):
            return
        c = node.children[0]
        yield c
        if c not in picks:
            return


def _dtype(value: Any) -> DType:
    dtype: DType = value.type.dtype
    return dtype


def _replaced(block: Block, new: dict[int, Op]) -> Block:
    return Block(tuple(_statement(s, new) for s in block.statements))


def _statement(s: Statement, new: dict[int, Op]) -> Statement:
    return new.get(id(s), s) if isinstance(s, Op) else with_blocks(s, lambda block: _replaced(block, new))
