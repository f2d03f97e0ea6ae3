"""Declared rules, operations and fact tables as egglog text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from ..ir import ops as _ops  # noqa: F401  (registers the operations)
from ..ir.op import OPS, OpDecl
from ..rules import facts
from ..rules import library as _library  # noqa: F401  (declares the rules)
from ..rules.casts import MAX_HOPS, road_columns, road_table
from ..rules.rule import RULES, Condition, Pattern, Rule, Term, Var
from ..rules.terms import LITERAL, child_params, constructor, signature


def is_term(decl: OpDecl) -> bool:
    """Return whether the operation is written as a term: pure, and known to give a tile or a scalar."""
    if not decl.pure:
        return False
    plain = decl.scalar is not None and (decl.scalar.group in ("B", "C") or decl.name.startswith("llvm."))
    return plain or decl.name.startswith(("tile.", "scalar."))


def ruleset(rule: Rule) -> str:
    """Return the name of the ruleset that a rule has for itself: runs combine those of the rules that can match."""
    return f"only_{rule.number}"


def compile_rule(rule: Rule) -> str:
    """Return the egglog text of a declared rule, with provenance writes for every term it creates."""
    query: list[str] = []
    names: dict[Term, str] = {}
    root = _query(rule.lhs, query, names)
    query += [_condition(c, names) for c in rule.when]
    if rule.apart:
        one, other = [c for c in rule.lhs.children if isinstance(c, Term)]
        query.append(f"(!= {names[one]} {names[other]})")
    actions: list[str] = []
    if rule.meets:
        result = _query(rule.rhs, query, names)
        query.append(f"(!= {root} {result})")
    else:
        result = _build(rule.rhs, actions, {}, rule.number)
    actions.append(f"(union {root} {result})")
    own = ruleset(rule)
    return f'(ruleset {own})\n(rule ({" ".join(query)})\n  ({" ".join(actions)})\n  :ruleset {own} :name "{rule.name}")'


def _query(p: Pattern, query: list[str], names: dict[Term, str]) -> str:
    if isinstance(p, Var):
        return p.name
    if p not in names:
        children = [_query(c, query, names) for c in p.children]
        names[p] = f"e{len(names)}"
        query.append(f"(= {names[p]} {_call(p, children)})")
    return names[p]


def _call(p: Term, children: Sequence[str]) -> str:
    args = [a.name if isinstance(a, Var) else str(a) for a in p.args]
    return f"({' '.join([constructor(p.op), *args, *children])})"


def _condition(c: Condition, names: dict[Term, str]) -> str:
    words = [str(a) if isinstance(a, int) else names[a] if isinstance(a, Term) else a.name for a in c.args]
    return f"({c.relation} {' '.join(words)})"


def _build(p: Pattern, actions: list[str], made: dict[Term, str], number: int) -> str:
    if isinstance(p, Var):
        return p.name
    if p in made:
        return made[p]
    children = [_build(c, actions, made, number) for c in p.children]
    call = _call(p, children)
    if p.op == LITERAL:
        return call
    name = made[p] = f"n{len(actions)}"
    actions.append(f"(let {name} {call})")
    actions.append(f"(set ({why_table(OPS[p.op])} {why_codes()[p.op]} {call[1:].partition(' ')[2]} {number})")
    return name


def schema() -> list[str]:
    """Return the egglog declarations that every region needs: sorts, leaves, provenance, roads, base rules' tables.

    Other operations and fact tables are declared when a region has them: a reset takes longer the more there are.
    """
    out = [
        "(sort V)",
        "(constructor Inp (i64) V)",
        "(constructor Lit (i64 i64) V)",
        "(constructor Absent () V)",
        "(constructor val (i64) V)",
        f"(ruleset {EMPTYING})",
    ]
    for name in sorted(why_tables()):
        numbers, children = map(int, name.split("_")[1:])
        columns = " ".join(["i64"] * (numbers + 1) + ["V"] * children)
        out.append(f"(function {name} ({columns}) i64 :merge (min old new))")
    out += declarations(ruled()) + relations(asked_of(base_rules()))
    for hops in range(1, MAX_HOPS + 1):
        for exact in (True, False):
            columns = " ".join(["V", *["i64"] * (len(road_columns(hops, exact)) - 1)])
            out.append(f"(relation {road_table(hops, exact)} ({columns}))")
    return out


#: Fact tables with fixed rows.
FIXED = frozenset(name for name, _ in facts.dtype_rows())
#: The rules that empty the tables: making an e-graph anew, or copying one, takes many times as long.
EMPTYING = "emptying"


def emptying_rules(tables: Mapping[str, tuple[int, bool]]) -> list[str]:
    """Return the rules that empty tables, given by name with the number of columns and whether they have an output."""
    out: list[str] = []
    for name, (count, gives) in tables.items():
        call = f"({' '.join([name, *(f'c{i}' for i in range(count))])})"
        query = f"(= out {call})" if gives else call
        out.append(f"(rule ({query}) ((delete {call})) :ruleset {EMPTYING})")
    return out


def relations(names: Iterable[str]) -> list[str]:
    """Return the declarations of fact tables, in order of name, with the rows of the fixed ones."""
    out: list[str] = []
    for name in sorted(names):
        kinds = facts.FACTS[name][0]
        out.append(f"(relation {name} ({' '.join('V' if k == 'value' else 'i64' for k in kinds)}))")
        out += _fixed_rows().get(name, [])
    return out


@cache
def _fixed_rows() -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for name, row in facts.dtype_rows():
        out.setdefault(name, []).append(f"({name} {' '.join(map(str, row))})")
    return out


def asked_of(rules: Iterable[Rule]) -> frozenset[str]:
    """Return the fact tables that rules ask."""
    return frozenset(c.relation for r in rules for c in r.when if c.relation in facts.FACTS)


def _sorts(decl: OpDecl) -> str:
    return " ".join(["i64"] * len(signature(decl)) + ["V"] * len(child_params(decl)))


def declarations(names: Iterable[str]) -> list[str]:
    """Return the declarations of operations, in order of name."""
    return [f"(constructor {constructor(name)} ({_sorts(OPS[name])}) V)" for name in sorted(names)]


#: Rules about these operations are always in use; others are for regions that their left side can match.
_ALWAYS = frozenset({"tile.cast", "tile.assume"})


@cache
def operations(p: Term) -> frozenset[str]:
    """Return the operations of a pattern."""
    return frozenset(t.op for t in terms_of(p)) - {LITERAL}


def made(rule: Rule) -> frozenset[str]:
    """Return the operations of the terms that a rule makes."""
    return operations(rule.rhs) if isinstance(rule.rhs, Term) and not rule.meets else frozenset()


def is_always(rule: Rule) -> bool:
    """Tell whether a rule is always in use."""
    seldom = rule.phase == "compose" or any(c.relation in facts.LAID for c in rule.when)
    return not seldom and operations(rule.lhs) <= _ALWAYS


def mentioned(rule: Rule) -> frozenset[str]:
    """Return the operations of a rule."""
    return operations(rule.lhs) | (operations(rule.rhs) if isinstance(rule.rhs, Term) else frozenset())


@cache
def ruled() -> frozenset[str]:
    """Return the operations that the rules always in use mention."""
    return frozenset().union(*map(mentioned, base_rules()))


def base_rules() -> list[Rule]:
    """Return the rules that are always in use."""
    return [r for r in RULES.values() if is_always(r)]


@cache
def explained() -> frozenset[str]:
    """Return the operations that rules make: their terms carry the rule that made them."""
    return frozenset().union(*map(made, RULES.values()))


@cache
def why_codes() -> dict[str, int]:
    """Return the number of each operation that rules make, its first column in the provenance tables."""
    return {name: i for i, name in enumerate(sorted(explained()))}


def why_table(decl: OpDecl) -> str:
    """Return the provenance table of an operation: one for all terms with as many numbers and children."""
    return f"why_{len(signature(decl))}_{len(child_params(decl))}"


@cache
def why_tables() -> frozenset[str]:
    """Return the names of the provenance tables."""
    return frozenset(why_table(OPS[name]) for name in explained())


def terms_of(p: Pattern) -> Iterable[Term]:
    """Yield the terms of a pattern, outermost first; what recipes share comes once."""
    seen: set[int] = set()
    stack = [p]
    while stack:
        t = stack.pop()
        if isinstance(t, Term) and id(t) not in seen:
            seen.add(id(t))
            yield t
            stack += reversed(t.children)
