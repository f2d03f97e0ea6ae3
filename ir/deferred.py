"""Deferred waits: what a task that registers ``pld.system.defer_wait`` conditions may contain.

The kernel returns at once and the scheduler keeps the task open until its counters are ready. So a waiter is a task of
its own: one block of pure vector code that computes scalars and registers at most 64 conditions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .diagnostics import Diagnostic
from .levels import INCORE, level_of
from .op import OPS
from .program import Block, Const, For, Function, If, Op, Scope, Statement, While, inner_blocks, walk

NAME = "pld.system.defer_wait"
#: Conditions one task may register, and tasks the scheduler can keep open at a time.
MAX_CONDITIONS, MAX_TASKS = 64, 64
_BOOKKEEPING = ("scalar", "ranks and windows", "queries")
_WAITER = re.compile(r"\.at\(.*CORE_GROUP")
_NAMED, _DEPENDS = re.compile(r"\bas (\w+)"), re.compile(r"deps=\[([^\]]*)\]")
#: A region that orders tasks and is none itself.
_REGION = re.compile(r"\.scope\(")


def deferred_problems(f: Function) -> list[Diagnostic]:
    """Return what is wrong with the deferred waits of a function; an empty list when it has none."""
    if not _registers(f.body):
        return []
    check = _Check(f)
    check.signals(f.body)
    if any("waiter" in key for key in f.attrs):
        check.body(f.body)
    else:
        check.scopes(f.body.statements, True, level_of(f) != INCORE)
    return check.found


def started_late(f: Function) -> Scope | None:
    """Return a task that a deferred wait holds back: it starts when the counters are ready, and not in text order."""
    scopes = [s for s in walk(f.body) if isinstance(s, Scope)]
    waiters = {m.group(1) for s in scopes if _registers(s.body) and (m := _NAMED.search(s.header))}
    held = (s for s in scopes if (m := _DEPENDS.search(s.header)) and waiters & set(re.findall(r"\w+", m.group(1))))
    return next(held, None)


def _registers(block: Block) -> bool:
    return any(isinstance(s, Op) and s.name == NAME for s in walk(block))


@dataclass
class _Check:
    f: Function
    found: list[Diagnostic] = field(default_factory=list)
    #: Whether a condition may already have been registered where the check stands.
    started: bool = False

    def report(self, s: Statement, what: str, reason: str = "", hint: str = "") -> None:
        self.found.append(Diagnostic("TG050", f"{NAME}: {what}", getattr(s, "span", None), reason, hint))

    def signals(self, block: Block) -> None:
        """The counter is a parameter itself: its address is what the dispatch carries."""
        names = {p.value.name for p in self.f.params}
        for s in walk(block):
            if isinstance(s, Op) and s.name == NAME and getattr(s.operands[0], "name", None) not in names:
                why = "the runtime polls the address that the task was given"
                self.report(s, "the signal must be a parameter of the function itself", why, "no slice, view or alias")

    def scopes(self, statements: tuple[Statement, ...], top: bool, submits: bool) -> None:
        """Every registration stands in a waiter scope, which stands in no other task.

        ``submits``: the function submits tasks, also from loops, branches and ``pl.scope(...)`` regions.
        """
        for s in statements:
            if isinstance(s, Op) and s.name == NAME:
                hint = "put it into a task of its own: with pl.at(level=pl.Level.CORE_GROUP):"
                self.report(s, "used outside a waiter task", "the task must be launched as a single block", hint)
            elif isinstance(s, Scope) and _registers(s.body) and not (submits and _REGION.search(s.header)):
                self.scope(s, top)
            else:
                for inner in inner_blocks(s):
                    self.scopes(inner.statements, top and submits, submits)

    def scope(self, s: Scope, top: bool) -> None:
        """Check one waiter scope."""
        if not _WAITER.search(s.header):
            self.report(s, f"a waiter is no {s.header[:40]!r} scope", hint="pl.at(level=pl.Level.CORE_GROUP)")
        if not top:
            self.report(s, "a waiter stands at the top of its function", "not inside loops, branches or scopes")
        for word in ("predicate", "allow_early_resolve=True"):
            if word in s.header.replace(" ", ""):
                why = "its consumers must not start before the counters are ready"
                self.report(s, f"a waiter takes no {word}", why)
        self.body(s.body)

    def body(self, block: Block) -> None:
        """Check what the task does, and how many conditions it registers."""
        self.started = False
        self.after(block)
        count = _count(block)
        if count > MAX_CONDITIONS:
            self.report(block.statements[0], f"{count} conditions, a task may register {MAX_CONDITIONS}")

    def after(self, block: Block) -> None:
        """Once a condition is registered, only scalars, control flow and more registrations may follow."""
        for s in block.statements:
            if isinstance(s, Op):
                if s.name == NAME:
                    self.started = True
                elif self.started and not _is_bookkeeping(s):
                    why = "after the first registration only scalars and control flow may follow"
                    self.report(s, f"{s.name} follows a registration", why)
                continue
            if isinstance(s, For | While) and any(_registers(b) for b in inner_blocks(s)):
                # The next round of the loop follows the registrations of this one.
                self.started = True
            for inner in inner_blocks(s):
                self.after(inner)


def _is_bookkeeping(s: Op) -> bool:
    decl = OPS.get(s.name)
    return decl is not None and decl.family in _BOOKKEEPING


def _count(block: Block) -> int:
    """Return how many conditions a block registers at most; loops without a static count are taken once."""
    total = 0
    for s in block.statements:
        if isinstance(s, Op):
            total += s.name == NAME
        elif isinstance(s, If):
            total += max(_count(s.then), _count(s.orelse))
        elif isinstance(s, For):
            total += _trips(s) * _count(s.body)
        else:
            total += sum(_count(b) for b in inner_blocks(s))
    return total


def _trips(s: For) -> int:
    bounds = [b.value for b in s.bounds if isinstance(b, Const)]
    if len(bounds) == 3 and bounds[2]:
        return len(range(int(bounds[0]), int(bounds[1]), int(bounds[2])))
    return 1
