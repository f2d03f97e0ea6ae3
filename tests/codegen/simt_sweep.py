"""Every operation of the SIMT level on every type, space and sign word: one small function for each combination."""

from collections.abc import Iterator

from tilegg.codegen.pto.simt import VALUE_ROWS
from tilegg.codegen.pto.simt_convert import SPELLINGS
from tilegg.codegen.pto.simt_memory import ATOMICS

TYPES = ("i1", "i8", "i16", "i32", "i64", "index", "f16", "bf16", "f32", "vector<2xf16>", "vector<2xbf16>",
         "vector<2xf32>")  # fmt: skip
SIGNS = ("", "signed ", "unsigned ")


def function(params: str, line: str) -> str:
    return f"func.func @f({params}) attributes {{pto.simt_entry}} {{\n {line}\n return\n}}\n"


def values() -> Iterator[str]:
    for row in VALUE_ROWS:
        for t in TYPES:
            for sign in SIGNS:
                if row.name.startswith("shuffle"):
                    yield function(f"%x: {t}, %i: i32", f"%y = pto.{row.name} %x, %i {sign}: {t}, i32 -> {t}")
                    continue
                names, types = (", ".join([word] * len(row.operands)) for word in ("%x", t))
                for result in dict.fromkeys((t, "i32", "i64")):
                    yield function(f"%x: {t}", f"%y = pto.{row.name} {names} {sign}: {types} -> {result}")


def memory() -> Iterator[str]:
    for t in TYPES:
        for space in ("gm", "ub"):
            ptr = f"!pto.ptr<{t}, {space}>"
            for name in ATOMICS:
                given = "%x, %x" if name == "cas" else "%x"
                for sign in SIGNS:
                    line = f"%y = pto.atomic_{name} %p, {given} {sign}: {ptr}, {t} -> {t}"
                    yield function(f"%p: {ptr}, %x: {t}", line)
            for name in ("load", "ldg"):
                yield function(f"%p: {ptr}, %i: index", f"%y = pto.{name} %p[%i] : {ptr} -> {t}")
            for name in ("store", "stg"):
                yield function(f"%p: {ptr}, %i: index, %x: {t}", f"pto.{name} %x, %p[%i] : {ptr}, {t}")
        yield function(f"%x: {t}", f"pto.keep %x {{slot = 0}} : {t}")
        yield function("", f"%y = pto.resume {{slot = 0}} : {t}")


def conversions() -> Iterator[str]:
    for a in SPELLINGS:
        for b in SPELLINGS:
            for rounding in "rafczoh" if a != b else "":
                for saturation in ("sat", "nosat"):
                    for sign in SIGNS:
                        line = f"%y = pto.convert %x round({rounding}) {saturation} {sign}: {a} -> {b}"
                        yield function(f"%x: {a}", line)


#: Combinations by kind, and how many of them the assembler v0.60 takes.
SWEEPS = {"values": (values, 89), "memory": (memory, 225), "conversions": (conversions, 336)}
