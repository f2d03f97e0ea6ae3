"""Emitted LLVM IR compiled by LLVM itself and run over arrays."""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from tilegg.codegen.llvm import emit_llvm
from tilegg.codegen.llvm_values import llvm_type
from tilegg.ir.dtypes import DType
from tilegg.ir.program import Function, Return


def machine() -> Any:
    """A new machine description: an engine takes it over."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    # Its conversion to bfloat16 flushes denormals, which no scalar code asks for.
    features["avx512bf16"] = False
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(opt=2, cpu=llvm.get_host_cpu_name(), features=features.flatten())


#: The run-time library's conversion to bfloat16, to nearest even, for machines without an instruction of their own.
RUNTIME = """
define bfloat @__truncsfbf2(float %x) {
  %b = bitcast float %x to i32
  %high = lshr i32 %b, 16
  %odd = and i32 %high, 1
  %bias = add i32 %odd, 32767
  %sum = add i32 %b, %bias
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %high, 64
  %nan = fcmp uno float %x, %x
  %picked = select i1 %nan, i32 %quiet, i32 %rounded
  %short = trunc i32 %picked to i16
  %r = bitcast i16 %short to bfloat
  ret bfloat %r
}
"""


def _stored(dtype: DType) -> str:
    return "i8" if llvm_type(dtype) == "i1" else llvm_type(dtype)


def driver(name: str, params: list[DType], result: DType) -> str:
    """A function that applies ``name`` to ``n`` elements of each array."""
    args = ", ".join([*(f"ptr %a{i}" for i in range(len(params))), "ptr %out", "i64 %n"])
    lines = [f"define void @batch({args}) {{", "entry:", "  br label %head", "head:",
             "  %i = phi i64 [ 0, %entry ], [ %j, %body ]", "  %go = icmp ult i64 %i, %n",
             "  br i1 %go, label %body, label %end", "body:"]  # fmt: skip
    given = []
    for k, d in enumerate(params):
        lines += [f"  %p{k} = getelementptr {_stored(d)}, ptr %a{k}, i64 %i", f"  %x{k} = load {_stored(d)}, ptr %p{k}"]
        if llvm_type(d) == "i1":
            lines.append(f"  %b{k} = trunc i8 %x{k} to i1")
        given.append(f"{llvm_type(d)} %{'b' if llvm_type(d) == 'i1' else 'x'}{k}")
    lines.append(f"  %r = call {llvm_type(result)} @{name}({', '.join(given)})")
    value = "%r"
    if llvm_type(result) == "i1":
        lines.append("  %w = zext i1 %r to i8")
        value = "%w"
    lines += [f"  %q = getelementptr {_stored(result)}, ptr %out, i64 %i", f"  store {_stored(result)} {value}, ptr %q",
              "  %j = add i64 %i, 1", "  br label %head", "end:", "  ret void", "}"]  # fmt: skip
    return "\n".join(lines)


def run_llvm(f: Function, columns: list[np.ndarray]) -> np.ndarray:
    """Compile ``f`` and return its results on storage arrays."""
    params = [p.value.type.dtype for p in f.params]
    last = f.body.statements[-1]
    assert isinstance(last, Return)
    result = last.operands[0].type.dtype
    text = emit_llvm(f) + "\n" + driver(f.name, params, result) + RUNTIME
    module = llvm.parse_assembly(text)
    module.verify()
    with llvm.create_mcjit_compiler(module, machine()) as engine:
        engine.finalize_object()
        arrays = [np.ascontiguousarray(c) for c in columns]
        out = np.zeros(arrays[0].size, result.storage)
        kinds = [ctypes.c_void_p] * (len(arrays) + 1) + [ctypes.c_int64]
        batch = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address("batch"))
        batch(*(a.ctypes.data for a in arrays), out.ctypes.data, out.size)
    return out
