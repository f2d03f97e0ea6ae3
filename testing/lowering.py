"""Does a lowered program compute what the program says, and is its assembly well formed?"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from ..extract.audit import LoweringAudit, as_hardware
from ..extract.faithful import InexactCast, exact_form, inexact_casts, recipe_uses
from ..extract.lower import lower
from ..extract.lowered import Lowered
from ..ir.equivalence import Report, Samples, Setup
from ..ir.interp import entry
from ..ir.program import Op, Program, walk
from .assembly import AssemblyReport
from .exhaustive import LIMIT, every_input
from .fanout import Progress, compare_programs
from .measured import Measured, measure, unmeasured

#: Units in the last place that one fused instruction is expected to stay within.
_FEW = 2


@dataclass(frozen=True)
class LoweringReport:
    """What a test of a lowering found, by function.

    ``functions``: the program against the lowered one, in which the conversions and composites stand again that it
    computes another way on purpose (``inexact``, ``recipes``). ``acting``: the lowered program as written against what
    the target's instructions do with its casts; bit for bit. ``unknown``: casts the target does not have. The errors of
    ``recipes`` were measured on the same inputs. ``assembly``: what executing the assembly found, when that was
    asked for.
    """

    lowered: Lowered
    functions: dict[str, Report]
    acting: dict[str, Report]
    inexact: tuple[InexactCast, ...]
    recipes: tuple[Measured, ...]
    unknown: tuple[str, ...] = field(default=())
    assembly: AssemblyReport | None = None

    @property
    def ok(self) -> bool:
        """True when nothing differs and every recipe keeps its bound."""
        compared = (*self.functions.values(), *self.acting.values())
        return not self.unknown and not self.broken and all(r.equal for r in compared)

    @property
    def broken(self) -> list[Measured]:
        """The recipes whose results were farther away than they state."""
        return [m for m in self.recipes if m.wrong]

    def failed(self) -> list[tuple[str, Report]]:
        """Return what differs: the function with what was compared, and the report."""
        pairs = [(f"{n} and its lowering", r) for n, r in self.functions.items()]
        pairs += [(f"the lowered {n} and what the target does", r) for n, r in self.acting.items()]
        return [(what, r) for what, r in pairs if not r.equal]

    def advice(self, option: str) -> str:
        """Return how to admit what leaving roundings out may do, where nothing else is found; "" elsewhere.

        ``option``: how the reader gives the bound, with ``{}`` in its place.
        """
        apart = [r for _, r in self.failed()]
        if self.lowered.contract != "contracted" or not apart or self.unknown or self.broken:
            return ""
        found = [r.counterexample.difference if r.counterexample else None for r in apart]
        if not all(r.contract == "exact" for r in apart) or not all(d is not None and isfinite(d.ulp) for d in found):
            return ""
        few = all(d is not None and d.ulp <= _FEW for d in found)
        allowed = option.format(f"ulp:{_FEW}" if few else "ulp:N")
        rest = "" if few else ", with a large N where later steps cancel"
        return f"roundings that the contract contracted leaves out may do this: allow them with {allowed}{rest}"

    def render(self) -> str:
        """Return the text form."""
        arch = self.lowered.arch
        lines = [f"{name} on {arch}: {report.render()}" for name, report in self.functions.items()]
        lines += [f"{n} on {arch}, as the target acts: {r.render()}" for n, r in self.acting.items() if not r.equal]
        lines += list(self.unknown)
        for twice, why in ((True, "may round twice"), (False, "the target does not do as asked")):
            some = tuple(c for c in self.inexact if c.rounds_twice is twice)
            if some:
                lines.append(f"apart from {_count(some, 'cast')} that {why}:")
                lines += [f"  {c.span or c.function}: {c.render()}" for c in some]
        if self.recipes:
            lines.append(f"apart from {_count(self.recipes, 'composite')} computed by recipes:")
            lines += [f"  {m.use.span or m.use.function}: {m.render()}" for m in self.recipes]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the stable JSON object."""
        return {
            "schema": 1,
            "ok": self.ok,
            "arch": self.lowered.arch,
            "contract": self.lowered.contract,
            "functions": [{"name": name, **r.to_json()} for name, r in self.functions.items()],
            "acting": [{"name": name, **r.to_json()} for name, r in self.acting.items()],
            "inexact": [cast.to_json() for cast in self.inexact],
            "recipes": [m.to_json() for m in self.recipes],
        }


def _count(things: tuple[Any, ...], noun: str) -> str:
    return f"{len(things)} {noun}{'s' * (len(things) != 1)}"


def check_lowering(
    program: Program,
    arch: str = "",
    *,
    lowered: Lowered | None = None,
    objective: str = "cycles",
    contract: str = "faithful",
    within: str | None = None,
    inputs: int = 64,
    seed: int = 0,
    facts: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
    function: str | None = None,
    exhaustive: bool = False,
    limit: int = LIMIT,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> LoweringReport:
    """Lower a program for a target and compare it with its lowering, every function that no other calls.

    ``lowered``: what :func:`tilegg.lower` gave for the program, when it is there already; else it is lowered for the
    ``objective`` under the ``contract``. ``within``: how near results have to be, ``exact`` (the default) or ``ulp:N``;
    the contract ``contracted`` leaves roundings out, so that it needs the latter.
    Recipes are watched on the same inputs: what they give may be no farther from the real function than they state.
    The rest is as for :func:`~tilegg.testing.fanout.compare_programs`. Facts that name no parameter of a function are
    left out for that function.

    Raises what lowering raises for what the target cannot do.
    """
    made = lower(program, arch, objective=objective, contract=contract) if lowered is None else lowered
    ideal = exact_form(made)
    acting, unknown = _acting(made)
    names = entry_names(program, function)
    functions: dict[str, Report] = {}
    acted: dict[str, Report] = {}
    known = {n: {p.value.name for p in program.function(n).params} for n in names}
    measured = unmeasured(recipe_uses(made))
    for name in names:
        # A fact for another function is left out here; one for none stays, and is refused.
        others = set().union(*known.values()) - known[name]
        options: dict[str, Any] = {
            "inputs": inputs, "seed": seed, "dims": dims, "function": name, "exhaustive": exhaustive, "limit": limit,
            "executor": executor, "progress": progress,
            "facts": {k: v for k, v in (facts or {}).items() if k not in others},
        }  # fmt: skip
        functions[name] = compare_programs(program, ideal, contract="exact" if within is None else within, **options)
        if acting is not None and functions[name].equal:
            acted[name] = compare_programs(made.program, acting, promises=program, **options)
        if measured and functions[name].equal:
            setup = Setup(program, made.program, "exact", options["facts"], dims or {}, name)
            measure(setup, lambda s: every_input(s, limit) if exhaustive else Samples(inputs, seed), measured)
    return LoweringReport(made, functions, acted, inexact_casts(made), tuple(measured.values()), unknown)


def entry_names(program: Program, name: str | None) -> list[str]:
    """Return the functions to test: the named one, or all that no other calls."""
    if name is not None:
        return [entry(program, name).name]
    ops = [s for f in program.functions for s in walk(f.body) if isinstance(s, Op)]
    called = {s.attrs.get("callee") for s in ops if s.name in ("call", "pto.simt_launch")}
    return [f.name for f in program.functions if f.name not in called] or [f.name for f in program.functions]


def _acting(made: Lowered) -> tuple[Program | None, tuple[str, ...]]:
    """Return the lowered program with what the target's conversions do in place of what is asked of them."""
    target = made.target
    if target is None or not any(s.name == "tile.cast" for f in made.program.functions for s in _ops(f.body)):
        return None, ()
    found = LoweringAudit()
    functions = tuple(as_hardware(f, target, found) for f in made.program.functions)
    if found.problems:
        return None, tuple(found.problems)
    program = replace(made.program, functions=functions)
    return (None if program == made.program else program), ()


def _ops(body: Any) -> list[Op]:
    return [s for s in walk(body) if isinstance(s, Op)]
