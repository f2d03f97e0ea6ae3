"""Does assembly do what the lowered program says? It is executed on bytes, kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.emit import emit
from ..codegen.emit_names import extra_sizes
from ..codegen.pto import api as pto
from ..codegen.pto.elements import PACKED_PAIRS, spell
from ..extract.lowered import Lowered
from ..ir import packing
from ..ir.compare import Difference, compare
from ..ir.diagnostics import Diagnostic, error
from ..ir.dtypes import DType
from ..ir.equivalence import Report, Samples, Session, Setup, Tally, total
from ..ir.op import OPS
from ..ir.program import Function, Op, walk
from ..ir.tilearray import Arr, poison_element
from ..ir.types import ScalarType, TensorType
from .machine import Tile, dtype_of, to_bytes
from .machine_vocabulary import VocabularyMachine

#: Inputs each kernel is executed on: the machine works element by element, which is slow.
_INPUTS = 4


@dataclass(frozen=True)
class AssemblyReport:
    """The assembly, what executing its kernels found, and why others were not executed."""

    text: str
    executed: dict[str, Report]
    left_out: dict[str, str]


def check_assembly(
    made: Lowered,
    function: str | None = None,
    *,
    inputs: int = _INPUTS,
    seed: int = 0,
    facts: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
) -> AssemblyReport:
    """Write the assembly of a lowered program, read it back, verify it, and execute its kernels.

    Instructions touch valid regions only, the rest of local memory is undefined; tensors are bytes. Results must be
    those of the lowered program bit for bit. Kernels that communicate, call, sort (the order of NaN is open), take
    pointers or consist of instructions the machine does not know are left out, with the reason.

    Raises the emitter's diagnostics (TG023 for what cannot be written) and those of the dialect's verifier; TG090 when
    the text read back is another program.
    """
    text = emit(made, made.target)
    again = pto.parse_pto(text)
    pto.verify_pto(again)
    if pto.print_pto(again) != text:
        raise error("TG090", "the assembly, read back and written again, is another text")
    kernels = {op.properties["sym_name"].data for op in again.body.block.ops if "pto.entry" in op.attributes}
    executed: dict[str, Report] = {}
    left_out: dict[str, str] = {}
    for f in made.program.functions:
        if f.name not in kernels or function not in (None, f.name):
            continue
        reason = _beyond(f)
        if reason:
            left_out[f.name] = reason
            continue
        known = {p.value.name for p in f.params}
        own = {k: v for k, v in (facts or {}).items() if k in known}
        session = _Executed(Setup(made.program, made.program, "exact", own, dims or {}, f.name), text, seed)
        tally = total((session.tally(Samples(inputs, seed), i, i + 1) for i in range(inputs)), inputs)
        if session.reason:
            left_out[f.name] = session.reason
        elif tally.runs:
            executed[f.name] = session.report(tally, seed)
        else:
            left_out[f.name] = "no drawn input fits it"
    return AssemblyReport(text, executed, left_out)


class _Machine(VocabularyMachine):
    """The machine with local memory that starts as what the interpreter takes for undefined elements.

    A program's undefined results are then the same in both; assembly that reads padding where the program does not is
    still seen.
    """

    def pto_alloc_tile(self, op: Any, values: list[Any]) -> Tile:
        """Return a tile of undefined elements."""
        made = super().pto_alloc_tile(op, values)
        element = made.type.element
        rows, cols = made.type.shape
        each = 2 if spell(element) in PACKED_PAIRS else 1
        undefined = np.full((rows, each * cols), poison_element(dtype_of(element)))
        made.data[...] = to_bytes(undefined, element).reshape(-1)
        return made


def _beyond(f: Function) -> str:
    """Return why a kernel is not executed, if so."""
    for p in f.params:
        if not isinstance(p.value.type, TensorType | ScalarType) or getattr(p.value.type, "is_window", False):
            return f"parameter {p.value.name} is {p.value.type}"
    names = [s.name for s in walk(f.body) if isinstance(s, Op)]
    other = next((n for n in names if n.startswith(("pld.", "pto.", "system.")) or n == "call" or _sorts(n)), None)
    return f"it contains {other}" if other else ""


def _sorts(name: str) -> bool:
    return name in OPS and OPS[name].family == "sorting"


class _Executed(Session):
    """A lowered kernel against its assembly: the second run is the machine's."""

    def __init__(self, setup: Setup, text: str, seed: int) -> None:
        super().__init__(setup)
        self.text, self.seed, self.reason = text, seed, ""

    def _reference(self, inputs: Mapping[str, Any], tally: Tally | None = None) -> dict[str, Any] | None:
        # Output tensors start as zeros in both runs: what is not written must stay.
        found = super()._reference(inputs, tally)
        blank = self._blank(found) if found is not None else {}
        return super()._reference({**inputs, **blank}, tally) if blank else found

    def _blank(self, outputs: Mapping[str, Any]) -> dict[str, Arr]:
        names = [p.value.name for p in self.fa.params if p.direction == "Out"]
        return {n: np.zeros_like(np.asarray(outputs[n])) for n in names if n in outputs}

    def check(
        self, inputs: Mapping[str, Any], expected: Mapping[str, Any]
    ) -> tuple[Difference | None, Diagnostic | None, dict[str, Any]]:
        """Execute the assembly and compare with the outputs of the lowered program."""
        try:
            actual = self._execute({**inputs, **self._blank(expected)})
        except AssertionError as problem:
            return None, Diagnostic("TG031", f"the assembly does what no machine can: {problem}", self.fa.span), {}
        except (KeyError, AttributeError, TypeError, ValueError, IndexError) as problem:
            self.reason = f"the machine cannot execute it: {type(problem).__name__} {problem}"
            return None, None, dict(expected)
        wanted = {k: v for k, v in expected.items() if k in actual}
        return compare(wanted, actual, {k: self.outputs[k] for k in wanted}, "exact"), None, dict(expected)

    def _execute(self, given: Mapping[str, Any]) -> dict[str, Any]:
        memory = {p.value.name: _argument(given[p.value.name], p.value.type) for p in self.fa.params}
        sizes = dict(self.dims)
        for p in self.fa.params:
            if isinstance(p.value.type, TensorType):
                shape = np.shape(given[p.value.name])
                sizes.update((d, n) for d, n in zip(p.value.type.shape, shape) if isinstance(d, str))
        memory.update((n, sizes[n]) for n in extra_sizes(self.fa))
        _Machine(self.text, self.seed).run(self.fa.name, memory)
        out: dict[str, Any] = {}
        for p in self.fa.params:
            t = p.value.type
            if p.direction != "In" and isinstance(t, TensorType) and t.stride is None:
                out[p.value.name] = _from_memory(memory[p.value.name], t.dtype, np.shape(given[p.value.name]))
        return out


def _argument(value: Any, t: Any) -> Any:
    """Return a kernel's argument: the bytes of a tensor, a number."""
    if not isinstance(t, TensorType):
        return value
    if t.stride is None:
        raw: Arr = np.ascontiguousarray(packing.to_memory(value, t.dtype)).reshape(-1).view(np.uint8)
        return raw.copy()
    steps = [int(s) * value.itemsize for s in t.stride]
    spread = np.zeros(sum((n - 1) * s for n, s in zip(value.shape, steps)) + value.itemsize, np.uint8)
    np.lib.stride_tricks.as_strided(spread.view(value.dtype), value.shape, steps)[...] = value
    return spread


def _from_memory(data: Arr, dtype: DType, shape: tuple[int, ...]) -> Arr:
    if dtype.values_per_byte > 1:
        return packing.from_memory(data.reshape(*shape[:-1], -1), dtype, shape[-1])
    return data.view(dtype.storage).reshape(shape)
