"""Answers to "why not?": about a chain of dtypes, an operation, or a value of the program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ..ir.convert import parse_mode
from ..ir.diagnostics import error
from ..ir.dtypes import DType, parse_dtype
from ..ir.op import OPS
from ..ir.types import TileType
from ..ir.valueset import ValueSet, clamp, of_dtype
from ..rules.cost import Instr, cycles
from ..rules.paths import MAX_HOPS, Road, roads
from ..rules.paths_rank import describe
from ..rules.target import Target
from ..rules.terms import CODE_DTYPES
from .chains import Chain, Request, chain, conversion, emitted_values, is_cast, requests
from .explain import alternative_text, op_text
from .kbest import Alternative, alternatives, class_name
from .lower import lower_for
from .lowered import FunctionReport, Instruction, Lowered
from .price import pricer_for
from .remarks import chain_cycles
from .why_needs import needs

#: Alternatives and roads looked at for one answer.
MANY = 64

_ASK = "name a value of the program, an operation, or a chain such as fp32>fp16>int8"
#: A stop with the round mode of the hop to it.
_IN_MODE = re.compile(r"(\w+)\s*\(\s*(\w+)\s*\)")
#: Operations in the text of a form, its operands' too.
_CALLED = re.compile(r"[\w.]+(?=\()")
_ARROW = re.compile(r"\s*(?:->|=>|→|>)\s*")


def answer(lowered: Lowered, question: str) -> list[str]:
    """Return the lines that answer a question (see :func:`.explain.explain`)."""
    parts = _ARROW.split(question.strip())
    lines = [f"why not {question.strip():.200}?"]
    if not all(parts):
        what = "is no chain of dtypes: beside an arrow stands nothing" if len(parts) > 1 else "asks for nothing"
        raise error("TG003", f"{question!r:.80} {what}", hint=_ASK)
    if len(parts) > 1:
        stops, modes = zip(*map(_stop, parts))
        if modes[0] is not None:
            raise error("TG003", f"no hop leads to {parts[0]!r:.80}, which comes first", hint=_ASK)
        found = list(_about_chain(lowered, list(stops), modes))
        if not found:
            pair = f"from {stops[0].name} to {stops[-1].name}"
            raise error("TG003", f"no cast {pair} is in the program", hint="ask about a chain between its dtypes")
        return lines + found
    found = list(_about_name(lowered, question.strip()))
    if not found:
        raise error("TG003", f"nothing in the program is called {question.strip()!r:.80}", hint=_ASK)
    return lines + found


# -- chains ------------------------------------------------------------------------------------------------


def _stop(part: str) -> tuple[DType, str | None]:
    """Read ``BF16`` or ``BF16 (odd)``: a dtype, and the round mode of the hop to it."""
    found = _IN_MODE.fullmatch(part)
    return (parse_dtype(found[1]), parse_mode(found[2])) if found else (parse_dtype(part), None)


def _about_chain(lowered: Lowered, stops: list[DType], modes: Sequence[str | None]) -> Iterator[str]:
    for f in lowered.functions:
        for i in f.instructions:
            here = _chain_of(f, i)
            if here is None or not _same_ends(f, i, here, stops):
                continue
            where = f"  {f.name}{_line(i)}, {i.op.result.name} = {here}: "
            if any(modes):
                yield where + _in_modes(lowered, f, i, here, stops, modes)
                continue
            if _stops(here) != stops:
                yield from _plain_chain(lowered, f, i, here, stops, where)
                continue
            yield f"{where}it is what was chosen"
            asked = _asked(f, i, stops)
            plain = _plain_road(lowered, f, i, stops)
            if i.inexact:
                yield from _promise(lowered, f, i, stops)
            elif asked is not None and lowered.target is not None and not (plain is not None and plain.exact):
                title = f"{' → '.join(d.name for d in stops)}, native casts in mode {asked.mode}"
                yield from _plain_chain(lowered, f, i, here, stops, f"    {title}: ")


def _plain_chain(
    lowered: Lowered, f: FunctionReport, i: Instruction, here: Chain, stops: list[DType], where: str
) -> Iterator[str]:
    """Say why the chain of native casts in the mode that was asked for was not chosen; after it others of its stops."""
    text = " → ".join(d.name for d in stops)
    plain = _plain_road(lowered, f, i, stops)
    same = [a for a in alternatives(lowered, f, i, MANY) if a.stops == text]
    # Modes of hops that round nothing, or are not the target's to choose, tell no chains apart: where the plain chain
    # is exact, so are all of its stops; and what is not exact is the plain one.
    alike = _asked(f, i, stops) is None or (plain is not None and plain.exact)
    known = [a for a in same if alike or a.text == text or not a.exact]
    # Each chain once, in its best form: chains may also run on tiles laid out as one row.
    yield where + (_verdict(lowered, known[0]) if known else _not_offered(lowered, f, i, stops))
    others = {a.text: a for a in reversed(same) if a not in known and a.text != str(here)}
    yield from (f"    {a.text}: {_verdict(lowered, a)}" for a in reversed(others.values()))
    if not any(a.legal and a.exact for a in known):
        yield from _promise(lowered, f, i, stops)


def _in_modes(
    lowered: Lowered, f: FunctionReport, i: Instruction, here: Chain, stops: list[DType], modes: Sequence[str | None]
) -> str:
    """Say why a chain in modes that the question names was not chosen."""
    hops = zip(stops[1:], modes[1:])
    text = stops[0].name + "".join(f" → {d.name}" + (f" ({m})" if m not in (None, modes[-1]) else "") for d, m in hops)
    if str(here) == text:
        return "it is what was chosen"
    known = next((a for a in alternatives(lowered, f, i, MANY) if a.text == text), None)
    if known is not None:
        return _verdict(lowered, known)
    asked, target = _asked(f, i, stops), lowered.target
    if asked is None or target is None:
        return _not_offered(lowered, f, i, stops)
    values = f.regions[i.region].graph.values.get(asked.source)
    every = roads(target, asked.src, asked.dst, asked.mode, asked.saturation, values, k=MANY)
    road = next((r for r in every if str(r) == text), None)
    if road is not None:
        return _not_taken(lowered, i, road)
    return f"not looked at: modes other than {asked.mode} are, where they make a chain exact"


def _asked(f: FunctionReport, i: Instruction, stops: list[DType]) -> Request | None:
    """Return the conversion between a chain's ends that an instruction's value is asked for by."""
    every = requests(f.regions[i.region], i.eclass)
    return next((r for r in every if (r.src, r.dst) == (stops[0], stops[-1])), None)


def _plain_road(lowered: Lowered, f: FunctionReport, i: Instruction, stops: list[DType]) -> Road | None:
    """Return the legal chain of native casts through the stops, each in the mode that was asked for."""
    asked = _asked(f, i, stops)
    if asked is None or lowered.target is None:
        return None
    values = f.regions[i.region].graph.values.get(asked.source)
    return _plain_of(lowered.target, asked, values, stops)


def _plain_of(target: Target, asked: Request, values: ValueSet | None, stops: list[DType]) -> Road | None:
    every = roads(target, asked.src, asked.dst, asked.mode, asked.saturation, values, k=MANY)
    return next((r for r in every if list(r.stops) == stops and _is_plain(r)), None)


def _is_plain(road: Road) -> bool:
    return road.native and all(hop.mode == road.hops[-1].mode for hop in road.hops)


def _chain_of(f: FunctionReport, i: Instruction) -> Chain | None:
    if i.region < 0:
        return None
    result = f.regions[i.region]
    if i.eclass not in result.graph.op_class:
        return None
    graph, picks = result.graph, result.solution.picks
    node = conversion(graph, picks, i.eclass, graph.classes[i.eclass][picks[i.eclass]])
    return chain(graph, picks, i.eclass, node, emitted_values(result)) if is_cast(node) else None


def _stops(c: Chain) -> list[DType]:
    return [CODE_DTYPES[c.nodes[0].key[2]], *(CODE_DTYPES[n.key[0]] for n in c.nodes)]


def _same_ends(f: FunctionReport, i: Instruction, here: Chain, stops: list[DType]) -> bool:
    """Whether the question's ends are those of the chain, or of a conversion the value was asked for by."""
    if [_stops(here)[0], _stops(here)[-1]] == [stops[0], stops[-1]]:
        return True
    return _asked(f, i, stops) is not None


def _verdict(lowered: Lowered, a: Alternative) -> str:
    if a.legal and a.exact and a.extra is not None and not any(a.extra.rank("cycles")):
        return "it costs the same; ties go to the first in the order of roads"
    return alternative_text(a, lowered.objective)


def _not_offered(lowered: Lowered, f: FunctionReport, i: Instruction, stops: list[DType]) -> str:
    target = lowered.target
    if target is None:
        return "there is no target"
    missing = [(a, b) for a, b in pairwise(stops) if target.cast(a.name, b.name) is None]
    if missing:
        pairs = ", ".join(f"{a.name} to {b.name}" for a, b in missing)
        return f"illegal: {target.name} has no native conversion from {pairs}"
    asked = _asked(f, i, stops)
    if asked is None:
        return "illegal: the value is asked for by no conversion between these dtypes"
    if len(stops) - 1 > MAX_HOPS:
        return f"longer than the {MAX_HOPS} hops that are looked at"
    road = _plain_road(lowered, f, i, stops)
    return _not_taken(lowered, i, road) if road is not None else f"illegal: {_lost(stops)}"


def _lost(stops: list[DType]) -> str:
    inner = ", ".join(d.name for d in stops[1:-1]) or stops[-1].name
    return f"values that {stops[-1].name} can hold are lost on the way through {inner}"


def _not_taken(lowered: Lowered, i: Instruction, road: Road) -> str:
    if not road.exact and lowered.contract == "exact":
        return f"the contract exact admits no double rounding; {describe(road)}"
    t = i.op.result.type
    assert isinstance(t, TileType)
    pricer = pricer_for(lowered.target, False)
    return f"legal, {chain_cycles(pricer, road, t):.0f} cycles by itself; {describe(road)}"


#: Magnitudes up to which the floats hold every integer.
_WHOLE = {"FP8E4M3FN": 2**4, "FP8E5M2": 2**3, "HF8": 2**3, "BF16": 2**8, "FP16": 2**11, "FP32": 2**24}


def _promise(lowered: Lowered, f: FunctionReport, i: Instruction, stops: list[DType]) -> Iterator[str]:
    """Yield the range that would make a chain exact, if the value it reads could be promised to lie in one."""
    result, target = f.regions[i.region], lowered.target
    asked = _asked(f, i, stops)
    if asked is None or target is None:
        return
    values = result.graph.values.get(asked.source, of_dtype(asked.src))
    limits = {m for d in stops[1:] if (m := d.max_value if d.is_int else _WHOLE.get(d.name)) is not None}
    for limit in sorted((m for m in limits if m < values.hi), reverse=True):
        narrow = clamp(values, max(values.lo, -limit), limit)
        finite = replace(narrow, nan=False, inf=False)
        road = _plain_of(target, asked, finite, stops)
        if road is not None and road.exact:
            name = class_name(result, asked.source)
            span = f"[{finite.lo:.10g}, {finite.hi:.10g}]"
            yield f"    it needs a fact: it would be exact if {name} were in {span} (tile.assume)"
            return


# -- names -------------------------------------------------------------------------------------------------


def _about_name(lowered: Lowered, name: str) -> Iterator[str]:
    """Answer about a value by name, or about an operation by its name or mnemonic."""
    name = name.removeprefix("pl.")
    listed = False
    wanted = {n for n, d in OPS.items() if name in (n, n.split(".")[-1], d.pto, f"pto.{d.pto}")}
    for f in lowered.functions:
        for i in f.instructions:
            if i.op.results and i.op.results[0].name == name:
                yield f"  {f.name}{_line(i)}: {op_text(i.op)} was chosen; instead"
                found = alternatives(lowered, f, i, MANY)
                yield from (f"    {a.text}: {_verdict(lowered, a)}" for a in found)
                if not found:
                    yield "    no rule offers anything else"
            elif wanted and i.op.name not in wanted:
                for a in alternatives(lowered, f, i, MANY):
                    if wanted.intersection(_CALLED.findall(a.text)):
                        listed = True
                        yield f"  {f.name}{_line(i)}, {op_text(i.op)}: {a.text}: {_verdict(lowered, a)}"
    yield from _gone(lowered, name)
    if wanted:
        yield from _unoffered(lowered, wanted, name, listed)


def _gone(lowered: Lowered, name: str) -> Iterator[str]:
    from .explain_find import explain_function

    for f in lowered.functions:
        for d in explain_function(lowered, f, 0).dropped:
            if d.result == name:
                yield f"  {f.name}: {d.text} is gone: {d.why}"


def _unoffered(lowered: Lowered, wanted: set[str], name: str, listed: bool) -> Iterator[str]:
    """Say where an operation is used, or what it lacks; ``listed``: some values have forms with it, told before."""
    used = [i for f in lowered.functions for i in f.instructions if i.op.name in wanted]
    if used:
        yield f"  it is used: {', '.join(sorted({op_text(i.op) for i in used}))}"
    elif not any(i.region >= 0 for f in lowered.functions for i in f.instructions):
        yield "  the program has no instruction that anything could stand for"
    elif not listed:
        yield f"  no value of the program has a form with {name}"
    lacking = [*_lacking(lowered.target, wanted), *_gained(lowered, wanted)]
    yield from lacking or needs(lowered, wanted, bool(used) or listed)


#: The tile on which an instruction that the assembler lacks is priced.
_SAMPLE = (64, 64)


def _lacking(target: Target | None, wanted: set[str]) -> Iterator[str]:
    """Tell of instructions that only the instruction set has, and what they would cost."""
    for mnemonic in sorted({OPS[n].pto or "" for n in wanted}):
        info = target.ops.get(mnemonic) if target is not None else None
        if target is None or info is None or info.assembler:
            continue
        dtype = "FP32" if "FP32" in info.isa else min(info.isa)
        price = cycles(target, Instr(mnemonic, (dtype, dtype), *_SAMPLE, _SAMPLE[1]))
        rows, cols = _SAMPLE
        yield (
            f"  the instruction set of {target.name} has {mnemonic}, the assembler has not; with it a [{rows}, {cols}] "
            f"{dtype} tile would take {price:.0f} cycles"
        )


def _gained(lowered: Lowered, wanted: set[str]) -> Iterator[str]:
    """Tell what the program would gain if the assembler took instructions that only the instruction set has."""
    target = lowered.target
    mnemonics = [OPS[n].pto or "" for n in sorted(wanted)]
    infos = [target.ops.get(m) for m in mnemonics] if target is not None else []
    if target is None or not any(info is not None and not (info.assembler and info.asm) for info in infos):
        return
    found = lower_for(lowered.source, target.with_assembler(mnemonics), "contracted")
    now = lower_for(lowered.source, target, "contracted")
    used = [i for f in found.functions for i in f.instructions if i.op.name in wanted]
    if used:
        yield (
            f"  with it ({len(used)} x {', '.join(mnemonics)}) the program would take {found.totals.cycles:.0f} cycles "
            f"instead of {now.totals.cycles:.0f} under the contract contracted"
        )
    else:
        yield "  the program would not use it if the assembler had it"
        yield from needs(found, wanted, False)


def _line(i: Instruction) -> str:
    return f" line {i.span.line}" if i.span else ""
