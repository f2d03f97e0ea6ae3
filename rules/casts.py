"""Rules about casts: identities, fusion of written chains, irrelevant modes, and the roads to native casts.

Equations write ``cast[a→b, m, s](x)`` for a conversion of ``x`` from dtype a to b with round mode m and
saturation s. Roads (chains of native casts) are found and proved in ``rules/paths.py`` and enter as rows of
the road tables, so the rules here stay generic.
"""

from __future__ import annotations

from ..ir.op import OPS
from .composed import COMPOSED
from .facts import finite, fits, has_arithmetic, is_float, is_integer, keeps_infinity, narrows, widens
from .paths import Hop, Road
from .rule import Condition, Names, Pattern, Term, Var, dtypes, integers, modes, rule, saturations, shapes, values
from .terms import DTYPE_CODES, MODE_CODES, SATURATION_CODES, saturation_code, signature

MAX_HOPS = 4

(x, lo, hi) = values("x lo hi")
(a, b, c) = dtypes("a b c")
(m, m1, m2) = modes("m m1 m2")
(s, s1, s2) = saturations("s s1 s2")
(sh, sh2) = shapes("sh sh2")
_RINT = MODE_CODES["rint"]
_ON = SATURATION_CODES["on"]


def cast(of: Pattern, src: Var, dst: Var, mode: Var | int, saturation: Var | int, road: Var | int = 0) -> Term:
    """The cast pattern; ``road`` is 0, or on the last hop of an inexact chain the number of the cast it stands for.

    Without that number one inexact node could stand for two casts that differ, which would make them equal.
    """
    return Term("tile.cast", (dst, sh, src, mode, saturation, road), (of,))


def _twice(
    name: str, of: Pattern, to: Var, saturation: Var, *, lhs: Term, rhs: Pattern, when: list[Condition], reason: str
) -> None:
    """Declare a rule that drops a conversion of ``of`` which loses nothing: infinities must not be clamped.

    Either the conversion leaves infinities alone, or none can occur.
    """
    kept, none = keeps_infinity(to, saturation), finite(of)
    rule(name, lhs=lhs, rhs=rhs, when=[*when, kept], contract="exact", reason=reason)
    why = f"{reason}; clamping cannot act, since no infinity can occur"
    rule(f"{name}.finite", lhs=lhs, rhs=rhs, when=[*when, none], contract="exact", reason=why)


_twice(
    "cast.identity", x, a, s,
    lhs=cast(x, a, a, m, s),
    rhs=x,
    when=[],
    reason="a conversion to the dtype the value already has changes nothing",
)  # fmt: skip

_twice(
    "cast.fuse.exact-first", x, b, s1,
    lhs=cast(cast(x, a, b, m1, s1), b, c, m2, s2),
    rhs=cast(x, a, c, m2, s2),
    when=[fits(x, b)],
    reason="the first conversion loses nothing, so only the second one rounds; drops lossless round trips",
)  # fmt: skip

rule(
    "cast.fuse.integer-narrowing",
    lhs=cast(cast(x, a, b, m1, s1), b, c, m2, s2),
    rhs=cast(x, a, c, m1, s1),
    when=[narrows(b, c), fits(cast(x, a, b, m1, s1), c)],
    contract="exact",
    reason="the rounding to integers happens in the first conversion and its results all fit the second dtype",
)

rule(
    "cast.fuse.widening-first",
    lhs=cast(cast(x, a, b, m1, s1), b, c, m2, s2),
    rhs=cast(x, a, c, m2, s2),
    when=[widens(a, b), keeps_infinity(b, s1)],
    contract="exact",
    reason="the first dtype's values are all values of the second one, whatever is known of them",
)

rule(
    "cast.fuse.saturating-integers",
    lhs=cast(cast(x, a, b, m1, _ON), b, c, m2, _ON),
    rhs=cast(x, a, c, m1, _ON),
    when=[is_float(a), narrows(b, c)],
    contract="exact",
    reason="both conversions clamp, the second one to the narrower range; the rounding happens in the first",
)

rule(
    "cast.fuse.saturating-detour",
    lhs=cast(cast(x, a, b, m1, s1), b, c, m2, _ON),
    rhs=cast(x, a, c, _RINT, _ON),
    when=[is_integer(a), has_arithmetic(b), is_integer(c), widens(c, b)],
    contract="exact",
    reason="the detour is exact for what the last dtype holds, and what it may round beyond is clamped all the same",
)

_twice(
    "cast.mode.irrelevant-float", x, b, s,
    lhs=cast(x, a, b, m, s),
    rhs=cast(x, a, b, _RINT, 0),
    when=[fits(x, b), is_float(b)],
    reason="nothing is rounded and nothing overflows, so round mode and saturation cannot act",
)  # fmt: skip

rule(
    "cast.mode.irrelevant-widening",
    lhs=cast(x, a, b, m, s),
    rhs=cast(x, a, b, _RINT, 0),
    when=[widens(a, b), is_float(b), keeps_infinity(b, s)],
    contract="exact",
    reason="every value of the first dtype is one of the second, also where nothing is known of the operand",
)

rule(
    "cast.mode.irrelevant-integer",
    lhs=cast(x, a, b, m, s),
    rhs=cast(x, a, b, _RINT, 1),
    when=[fits(x, b), is_integer(b)],
    contract="exact",
    reason="nothing is rounded and nothing overflows, so round mode and saturation cannot act",
)

rule(
    "assume.drop",
    lhs=Term("tile.assume", (a, sh), (x, lo, hi)),
    rhs=x,
    contract="exact",
    reason="the promise has been taken into the value sets; it is no instruction",
)


def road_table(hops: int, exact: bool) -> str:
    """Return the name of the table of roads with that many hops."""
    return f"road{hops}_{'exact' if exact else 'faithful'}"


def road_columns(hops: int, exact: bool) -> tuple[str, ...]:
    """Return the column names of a road table.

    The value, the cast (source, destination, mode, saturation), then the dtypes in between, mode and
    saturation of every hop; for inexact roads a number of the cast they stand for.
    """
    inner = [f"t{i}" for i in range(1, hops)]
    per_hop = [f"{k}{i}" for i in range(1, hops + 1) for k in ("hm", "hs")]
    return ("x", "a", "b", "m", "s", *inner, *per_hop, *([] if exact else ["road"]))


def road_words(road: Road) -> tuple[int, ...]:
    """Return a road's cells of its table after the cast itself: dtypes between, mode and saturation per hop.

    Modes and saturations are those that act on the target, whatever was asked.
    """
    words = [DTYPE_CODES[h.dst.name] for h in road.hops[:-1]]
    for h in road.hops:
        words += [MODE_CODES[h.effective], _acting_saturation(h)]
    return tuple(words)


def _acting_saturation(hop: Hop) -> int:
    if hop.saturation is not None and (hop.saturation == "on") == hop.clamps:
        return SATURATION_CODES[hop.saturation]
    by_default = not hop.dst.is_float
    return saturation_code(None if hop.clamps == by_default else "on" if hop.clamps else "off", hop.dst)


def _declare_roads() -> None:
    mode_of, sat_of = Names("mode"), Names("saturation")
    (road_number,) = integers("road")
    for exact in (True, False):
        for hops in range(1, MAX_HOPS + 1):
            between = dtypes(" ".join(f"t{i}" for i in range(1, hops))) if hops > 1 else []
            hop_modes = mode_of(" ".join(f"hm{i}" for i in range(1, hops + 1)))
            hop_sats = sat_of(" ".join(f"hs{i}" for i in range(1, hops + 1)))
            stops = [a, *between, b]
            chain: Pattern = x
            for i in range(hops):
                number: Var | int = road_number if i == hops - 1 and not exact else 0
                chain = cast(chain, stops[i], stops[i + 1], hop_modes[i], hop_sats[i], number)
            per_hop = [v for pair in zip(hop_modes, hop_sats) for v in pair]
            numbered = [] if exact else [road_number]
            rule(
                f"cast.road.{'exact' if exact else 'faithful'}.{hops}",
                lhs=cast(x, a, b, m, s),
                rhs=chain,
                when=[Condition(road_table(hops, exact), (x, a, b, m, s, *between, *per_hop, *numbered))],
                contract="exact" if exact else "faithful",
                reason=_ROAD_REASON[exact],
                phase="lower",
            )


_ROAD_REASON = {
    True: "a chain of native casts, proved equal to the one conversion on every value that can arrive",
    False: "a legal chain of native casts that may round twice or in another mode; its error is measured",
}

_declare_roads()


def _declare_composed() -> None:
    for made in COMPOSED:
        src, dst = DTYPE_CODES[made.src.name], DTYPE_CODES[made.dst.name]
        mode, saturation = (m, s) if made.mode is None else (MODE_CODES[made.mode], 0)
        rule(
            made.rule, lhs=Term("tile.cast", (dst, sh, src, mode, saturation, 0), (x,)), rhs=made.pattern,
            contract="exact", reason=made.reason, phase="compose",
        )  # fmt: skip


_declare_composed()


def cast_signature_is_as_expected() -> bool:
    """Return whether the cast constructor has the argument order the patterns here rely on."""
    want = ("dtype", "shape", "source", "mode", "saturation", "road")
    return signature(OPS["tile.cast"]) == want
