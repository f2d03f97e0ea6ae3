"""Element types the assembler's verifier accepts, per operation and target branch.

One row per operation: mnemonic, then the list for a2/a3, then the list for a5 (``-`` for none, ``=`` for the
same). ``i8`` stands for every signedness. This says what the assembler takes (assembler v0.60, tested against
its verifier); what the hardware executes is the targets' business.
"""

from __future__ import annotations

ARITH = "i16 i32 f16 f32"
INTS = "i8 i16 i32"
WIDE = "i8 i16 i32 f16 bf16 f32"
FLOATS = "f16 f32"
_EXPANDS = ("add", "sub", "mul", "max", "min")

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("tadd", ARITH, WIDE),
    ("tsub", ARITH, "i8 i16 i32 f16 f32"),
    ("tmul", ARITH, "="),
    ("tdiv", FLOATS, ARITH),
    ("tmax", ARITH, "i8 i16 i32 f16 f32"),
    ("tmin", ARITH, WIDE),
    ("trem", "i32 f32", ARITH),
    ("tfmod", ARITH, "="),
    ("tand", INTS, "="),
    ("tor", INTS, "="),
    ("txor", INTS, "="),
    ("tshl", INTS, "="),
    ("tshr", INTS, "="),
    ("taddrelu", "i16 f16 f32", "-"),
    ("tprelu", FLOATS, "="),
    ("tadds", ARITH, WIDE),
    ("tsubs", ARITH, WIDE),
    ("tmuls", ARITH, WIDE),
    ("tdivs", ARITH, "i8 i16 i32 f16 f32"),
    ("tmaxs", ARITH, WIDE),
    ("tmins", ARITH, WIDE),
    ("taxpy", FLOATS, "f16 bf16 f32"),
    ("tands", "i8 i16", INTS),
    ("tors", "i8 i16", INTS),
    ("txors", "i8 i16", INTS),
    ("tshls", "i8 i16 i32 i64", "="),
    ("tshrs", "i16 i32", INTS),
    ("trems", "i32 f32", ARITH),
    ("tfmods", ARITH, "="),
    ("tabs", FLOATS, "="),
    ("tneg", ARITH, WIDE),
    ("texp", FLOATS, "="),
    ("tlog", FLOATS, "="),
    ("tsqrt", FLOATS, "="),
    ("trsqrt", FLOATS, "="),
    ("trecip", FLOATS, "="),
    ("trelu", "i32 f16 f32", "="),
    ("tlrelu", FLOATS, "="),
    ("tnot", "i16", INTS),
    ("ttrans", WIDE, "="),
    ("texpands", "i16 i32 f16 bf16 f32", WIDE),
    ("tcmp", "i32 f16 f32", WIDE),
    ("tcmps", ARITH, "i8 i16 i32 f16 f32"),
    ("tsel", "i16 i32 f16 bf16 f32", WIDE),
    ("tsels", ARITH, "i8 i16 i32 f16 f32"),
    *((f"trow{what}", ARITH, "=") for what in ("sum", "max", "min", "prod")),
    *((f"trow{what}", ARITH, "=") for what in ("argmax", "argmin")),
    *((f"tcol{what}", WIDE, "=") for what in ("argmax", "argmin")),
    ("tcolsum", ARITH, WIDE),
    ("tcolmax", ARITH, WIDE),
    ("tcolmin", ARITH, WIDE),
    ("tcolprod", ARITH, "i16 i32 f16 bf16 f32"),
    *((f"t{axis}expand{what}", ARITH, "i8 i16 i32 f16 f32") for axis in ("row", "col") for what in _EXPANDS),
    *((f"t{axis}expanddiv", FLOATS, "i8 i16 i32 f16 f32") for axis in ("row", "col")),
    *((f"t{axis}expandexpdif", FLOATS, "=") for axis in ("row", "col")),
    *((f"t{axis}expand", WIDE, "=") for axis in ("row", "col")),
    ("tconcat", WIDE, "="),
    *((f"tpart{what}", ARITH, WIDE) for what in ("add", "mul", "max", "min", "argmax", "argmin")),
)

#: Mnemonic to (a2/a3 list, a5 list); operations that are not here have no list.
ACCEPTED: dict[str, tuple[str, str]] = {
    name: ("" if a3 == "-" else a3, {"=": a3, "-": ""}.get(a5, a5)) for name, a3, a5 in _ROWS
}

#: tcvt on a5: the pairs that involve a low-precision type, (source, destinations).
A5_LOW_PRECISION_CASTS: dict[str, tuple[str, ...]] = {
    "f32": ("f8E4M3FN", "f8E5M2", "!pto.hif8"),
    "f16": ("!pto.hif8",),
    "bf16": ("!pto.f4E2M1x2", "!pto.f4E1M2x2"),
    "!pto.f4E2M1x2": ("bf16",),
    "!pto.f4E1M2x2": ("bf16",),
    "f8E4M3FN": ("f32",),
    "f8E5M2": ("f32",),
    "!pto.hif8": ("f32",),
}


def accepted(mnemonic: str, arch: str) -> str | None:
    """Return the element types accepted on ``"a2a3"`` or ``"a5"``, None for an operation without a list."""
    row = ACCEPTED.get(mnemonic)
    return None if row is None else row[arch == "a5"]
