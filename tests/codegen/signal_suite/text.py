"""How the suite writes rank programs: pieces of text, in which ``!!`` ends the lines to blame for a seeded fault."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = """
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")

@pl.function(type=pl.FunctionType.InCore)
def kernel({params}):
    ctx = pld.get_comm_ctx({window})
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
"""
SIG = "sig: pld.DistributedTensor[[NR, 1], pl.INT32]"


@dataclass(frozen=True)
class Case:
    """One labelled program: ``word`` is the class of its fault, ``None`` for a correct one; ``lines`` are to blame."""

    name: str
    text: str
    ranks: tuple[int, ...]
    word: str | None
    lines: frozenset[int]


def case(
    name: str, params: str, body: str, ranks: tuple[int, ...], word: str | None = None, window: str = "sig"
) -> Case:
    """Return a case of one kernel; ``body`` is indented by four spaces."""
    text = HEAD.format(params=params, window=window) + body
    rows = text.split("\n")
    marked = frozenset(i for i, row in enumerate(rows, 1) if row.rstrip().endswith("!!"))
    clean = "\n".join(row.replace("!!", "").rstrip() for row in rows)
    if (word is None) == bool(marked):
        raise ValueError(f"{name}: a fault needs a line to blame, a correct program has none")
    return Case(name, clean + "\n", ranks, word, marked)


def indent(text: str, by: int = 4) -> str:
    """Return the lines of a text moved to the right."""
    return "".join(" " * by + line + "\n" if line.strip() else "\n" for line in text.splitlines())


def notify(peer: str, cell: str, value: str = "1", op: str = "AtomicAdd", sig: str = "sig", mark: str = "") -> str:
    """Return a notify."""
    return f"pld.system.notify({sig}, {peer}, [{cell}], {value}, op=pld.NotifyOp.{op}){mark}\n"


def wait(cell: str, value: str = "1", cmp: str = "Ge", sig: str = "sig", mark: str = "") -> str:
    """Return a wait."""
    return f"pld.system.wait({sig}, [{cell}], {value}, cmp=pld.WaitCmp.{cmp}){mark}\n"


def arrive(cell: str = "me, 0", sig: str = "sig", value: str = "1", op: str = "AtomicAdd", mark: str = "") -> str:
    """Return a loop that notifies all peers."""
    return "for p in pl.range(n):\n    if p != me:\n        " + notify("p", cell, value, op, sig, mark)


def gather(g: str, cell: str = "s, 0", sig: str = "sig", cmp: str = "Ge", mark: str = "") -> str:
    """Return a loop that waits for all peers."""
    return "for s in pl.range(n):\n    if s != me:\n        " + wait(cell, g, cmp, sig, mark)


def barrier(g: str, sig: str = "sig") -> str:
    """Return a barrier of one generation."""
    return arrive(sig=sig) + gather(g, sig=sig)


def retire(count: str, cell: str = "s, 0", sig: str = "sig", mark: str = "") -> str:
    """Return the loop that takes a call's credits back."""
    return "for s in pl.range(n):\n    if s != me:\n        " + notify("me", cell, f"-{count}", "AtomicAdd", sig, mark)
