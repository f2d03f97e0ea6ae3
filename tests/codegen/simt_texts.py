"""Hand-written assembly of the SIMT level: one sample for each family, and texts the assembler refuses."""

HEAD = """module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @body(%p: !pto.ptr<f32>, %u: !pto.ptr<f32, ub>, %h: !pto.ptr<f16>, %k: !pto.ptr<i32>, %w: !pto.ptr<i64>,
                  %x: f32, %a: f16, %b: bf16, %n: i32, %m: i64, %c: i1, %i: index) attributes {pto.simt_entry} {
"""
TAIL = "    return\n  }\n}\n"


def entry(*lines: str) -> str:
    """A SIMT entry with the lines as its body."""
    return HEAD + "".join(f"    {line}\n" for line in lines) + TAIL


_QUERIES = [
    *(f"get_{what}_{axis}" for what in ("tid", "block_dim", "block_idx", "grid_dim") for axis in "xyz"),
    "get_laneid", "get_veccoreid", "get_clock32", *(f"get_lanemask_{n}" for n in ("eq", "le", "lt", "ge", "gt")),
]  # fmt: skip
_PAIR = "%at = pto.addptr %h, %i : !pto.ptr<f16> -> !pto.ptr<f16>"
_AS_PAIRS = "%ap = pto.castptr %at : !pto.ptr<f16> -> !pto.ptr<vector<2xf16>>"
_FIRST = "%zero = arith.constant 0 : index"
_V = [_FIRST, _PAIR, _AS_PAIRS, "%v = pto.load %ap[%zero] : !pto.ptr<vector<2xf16>> -> vector<2xf16>"]

FAMILIES: dict[str, list[str]] = {
    "queries": [*(f"%q{j} = pto.{n} : i32" for j, n in enumerate(_QUERIES)), "%l = pto.get_clock64 : i64"],
    "votes": [*(f"%v{n} = pto.vote_{n} %c : i1 -> i1" for n in ("all", "any", "uni")),
              "%vb = pto.vote_ballot %c : i1 -> i32"],
    "shuffles": [
        "%s0 = pto.shuffle_idx %x, %n {width = 16 : i32} : f32, i32 -> f32",
        "%s1 = pto.shuffle_up %n, %n : i32, i32 -> i32", "%s2 = pto.shuffle_down %m, %n : i64, i32 -> i64",
        "%s3 = pto.shuffle_bfly %a, %n : f16, i32 -> f16",
    ],
    "packed shuffle": [*_V, "%s4 = pto.shuffle_bfly %v, %n : vector<2xf16>, i32 -> vector<2xf16>"],
    "reductions": [
        "%r0 = pto.redux_add %x : f32 -> f32", "%r1 = pto.redux_add %n : i32 -> i32",
        "%r2 = pto.redux_max %n signed : i32 -> i32", "%r3 = pto.redux_min %n unsigned : i32 -> i32",
        "%r4 = pto.redux_max %a : f16 -> f16",
    ],
    "memory": [
        "%m0 = pto.load %u[%i] : !pto.ptr<f32, ub> -> f32", "pto.store %m0, %u[%i] : !pto.ptr<f32, ub>, f32",
        "%m1 = pto.ldg %p[%i] l1cache(cache) l2cache(nmfv) : !pto.ptr<f32> -> f32",
        "%m2 = pto.ldg %p[%i] : !pto.ptr<f32> -> f32",
        "pto.stg %m1, %p[%i] l1cache(uncache) l2cache(wtsred) : !pto.ptr<f32>, f32",
    ],
    "pairs in memory": [
        *_V, "pto.store %v, %ap[%zero] : !pto.ptr<vector<2xf16>>, vector<2xf16>",
        "%vg = pto.ldg %ap[%zero] l1cache(uncache) : !pto.ptr<vector<2xf16>> -> vector<2xf16>",
        "pto.stg %vg, %ap[%zero] : !pto.ptr<vector<2xf16>>, vector<2xf16>",
    ],
    "atomics": [
        "%a0 = pto.atomic_add %p, %x l2cache(naci) : !pto.ptr<f32>, f32 -> f32",
        "%a1 = pto.atomic_max %k, %n signed : !pto.ptr<i32>, i32 -> i32",
        "%a2 = pto.atomic_min %w, %m unsigned : !pto.ptr<i64>, i64 -> i64",
        *(f"%a{o} = pto.atomic_{o} %k, %n : !pto.ptr<i32>, i32 -> i32" for o in ("sub", "and", "or", "xor", "exch")),
        "%acas = pto.atomic_cas %k, %n, %n : !pto.ptr<i32>, i32 -> i32",
    ],
    "mathematics": [
        *(f"%t{n} = pto.{n} %x : f32 -> f32" for n in ("sqrt", "exp", "log", "sin", "cos", "absf")),
        "%tp = pto.pow %x, %x : f32, f32 -> f32", "%tf = pto.fmax %b, %b : bf16, bf16 -> bf16",
        "%tg = pto.fmin %x, %x : f32, f32 -> f32", "%th = pto.fma %x, %x, %x : f32, f32, f32 -> f32",
        *(f"%u{n} = pto.{n} %b : bf16 -> bf16" for n in ("ceil", "floor", "rint", "round")),
    ],
    "packed mathematics": [
        *_V, *(f"%w{n} = pto.{n} %v : vector<2xf16> -> vector<2xf16>" for n in ("sqrt", "exp", "log", "absf")),
        "%wf = pto.fma %v, %v, %v : vector<2xf16>, vector<2xf16>, vector<2xf16> -> vector<2xf16>",
        "%wm = pto.fmax %v, %v : vector<2xf16>, vector<2xf16> -> vector<2xf16>",
    ],
    "integers": [
        "%i0 = pto.mulhi %n, %n signed : i32, i32 -> i32", "%i1 = pto.mulhi %m, %m unsigned : i64, i64 -> i64",
        "%i2 = pto.mul_i32toi64 %n, %n unsigned : i32, i32 -> i64", "%i3 = pto.prmt %n, %n, %n : i32, i32, i32 -> i32",
    ],
    "conversions": [
        "%c0 = pto.convert %x round(r) sat : f32 -> f16", "%c1 = pto.convert %x round(z) sat signed : f32 -> i32",
        "%c2 = pto.convert %m round(c) nosat unsigned : i64 -> f32", "%c3 = pto.convert %x round(o) nosat : f32 -> f16",
        "%c4 = pto.convert %b round(a) nosat : bf16 -> f16",
    ],
    "synchronisation": ["pto.syncthreads", "pto.threadfence", "pto.threadfence_block"],
    "state": [
        "%k0 = pto.resume {slot = 0} : f32", "%k1 = pto.resume {slot = 2} : i64",
        "%k2 = arith.addf %k0, %x : f32", "pto.syncthreads", "pto.keep %k2 {slot = 0} : f32",
        "pto.keep %k1 {slot = 2} : i64", "pto.syncthreads",
    ],
    "the stack": [
        "%n4 = arith.constant 4 : i64", "%st = llvm.alloca %n4 x f32 : (i64) -> !llvm.ptr",
        "%sp = llvm.getelementptr %st[3] : (!llvm.ptr) -> !llvm.ptr, f32", "llvm.store %x, %sp : f32, !llvm.ptr",
        "%sl = llvm.load %sp : !llvm.ptr -> f32", "pto.store %sl, %u[%i] : !pto.ptr<f32, ub>, f32",
    ],
    "intrinsics": [
        "%j0 = llvm.intr.maxnum(%x, %x) : (f32, f32) -> f32", "%j1 = llvm.intr.umax(%n, %n) : (i32, i32) -> i32",
        '%j2 = "llvm.intr.abs"(%n) <{is_int_min_poison = false}> : (i32) -> i32',
        "%j3 = llvm.intr.sqrt(%x) : (f32) -> f32",
    ],
}  # fmt: skip

LAUNCHES = """module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @body(%p: !pto.ptr<f32>, %n: i32) attributes {pto.simt_entry, pto.simt_max_threads = 64 : i32} {
    %t = pto.get_tid_x : i32
    %i = arith.index_cast %t : i32 to index
    %s = func.call @twice(%n, %t) : (i32, i32) -> i32
    %f = arith.sitofp %s : i32 to f32
    pto.stg %f, %p[%i] : !pto.ptr<f32>, f32
    return
  }
  func.func @twice(%a: i32, %b: i32) -> i32 {
    %c2 = arith.constant 2 : i32
    %d = arith.muli %b, %c2 : i32
    %e = arith.addi %a, %d : i32
    return %e : i32
  }
  func.func @main(%p: !pto.ptr<f32>, %n: i32) attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>} {
    %c64 = arith.constant 64 : i32
    %c1 = arith.constant 1 : i32
    pto.simt_launch @body<<<%c64, %c1, %c1>>>(%p, %n) : (!pto.ptr<f32>, i32) -> ()
    pto.section.simt<<<32, 1, 1>>> {
      %l = pto.get_laneid : i32
      %r = pto.redux_add %l : i32 -> i32
      %i = arith.index_cast %l : i32 to index
      %f = arith.sitofp %r : i32 to f32
      pto.stg %f, %p[%i] : !pto.ptr<f32>, f32
    }
    pto.store_vfsimt_info %c1, %c1, %c64 : i32, i32, i32
    func.call @body(%p, %n) : (!pto.ptr<f32>, i32) -> ()
    return
  }
}
"""

#: Everything that is right.
TEXTS = {**{name: entry(*lines) for name, lines in FAMILIES.items()}, "launches": LAUNCHES}

#: Texts that parse and are refused, with a part of the reason; the assembler refuses each of them too.
WRONG: dict[str, tuple[str, str]] = {
    "sign of a float": (entry("%r = pto.redux_max %x signed : f32 -> f32"), "no sign for f32"),
    "no sign": (entry("%r = pto.redux_max %n : i32 -> i32"), "signed or unsigned"),
    "no sign of a product": (entry("%r = pto.mulhi %n, %n : i32, i32 -> i32"), "signed or unsigned"),
    "width": (entry("%r = pto.shuffle_up %x, %n {width = 8 : i32} : f32, i32 -> f32"), "16 or 32"),
    "bfloat shuffle": (entry("%r = pto.shuffle_up %b, %n : bf16, i32 -> bf16"), "i32, i64, f16, f32"),
    "bfloat root": (entry("%r = pto.sqrt %b : bf16 -> bf16"), "f16, f32"),
    "bfloat magnitude": (entry("%r = pto.absf %b : bf16 -> bf16"), "f16, f32"),
    "other operand": (entry("%r = pto.fma %x, %x, %n : f32, f32, i32 -> f32"), "i32"),
    "vote": (entry("%r = pto.vote_ballot %n : i32 -> i32"), "i1"),
    "clock": (entry("%r = pto.get_clock64 : i32"), "i64"),
    "space": (entry("%r = pto.ldg %u[%i] : !pto.ptr<f32, ub> -> f32"), "gm"),
    "element": (entry("%r = pto.load %h[%i] : !pto.ptr<f16> -> vector<2xf16>"), "the pointer is to f16"),
    "atomic sign": (entry("%r = pto.atomic_max %p, %x signed : !pto.ptr<f32>, f32 -> f32"), "no sign"),
    "atomic bits": (entry("%r = pto.atomic_and %p, %x : !pto.ptr<f32>, f32 -> f32"), "integers"),
    "nosat": (entry("%r = pto.convert %x round(z) nosat signed : f32 -> i32"), "saturates"),
    "convert sign": (entry("%r = pto.convert %x round(z) sat : f32 -> i32"), "signed or unsigned"),
    "convert rounding": (entry("%r = pto.convert %n round(o) nosat signed : i32 -> f32"), "round(o)"),
    "convert pair": (entry("%r = pto.convert %n round(r) nosat signed : i32 -> i32"), "no conversion"),
    "slot": (entry("pto.keep %m {slot = 3} : i64"), "even slot"),
    "keep early": (entry("pto.keep %x {slot = 0} : f32", "%r = arith.addf %x, %x : f32"), "kept at the end"),
    "resume late": (entry("%r = arith.addf %x, %x : f32", "%s = pto.resume {slot = 0} : f32"), "resumed at the start"),
}
_MARK = " attributes {pto.simt_entry}"
for _op in ("pto.syncthreads", "pto.keep %x {slot = 0} : f32", "%r = pto.ldg %p[%i] : !pto.ptr<f32> -> f32"):
    WRONG[f"ordinary {_op.split('pto.')[1][:6]}"] = (entry(_op).replace(_MARK, ""), "outside of SIMT")
_LAUNCH = "%z = arith.constant 1 : i32\n    pto.simt_launch @{}<<<%z, %z, %z>>>(%x) : (f32) -> ()"
WRONG["launch of nothing"] = (entry(_LAUNCH.format("nix")).replace(_MARK, ""), "no function")
WRONG["launch in threads"] = (entry(_LAUNCH.format("body")), "threads are started")

SOFTMAX = """
@pl.program
class Softmax:
    @pl.function(type=pl.FunctionType.SimtEntry)
    def row(self, x: pl.Ptr[pl.FP32, "gm"], y: pl.InOut[pl.Ptr[pl.FP32, "gm"]], n: pl.Scalar[pl.INT32]):
        t = pl.pto.get_tid_x()
        lane = pl.rem(t, 32)
        r = pl.div(t, 32)
        at = r * n + lane
        v = pl.pto.ldg(x, at)
        m = pl.max(v, pl.pto.shuffle_bfly(v, 16))
        m = pl.max(m, pl.pto.shuffle_bfly(m, 8))
        m = pl.max(m, pl.pto.shuffle_bfly(m, 4))
        m = pl.max(m, pl.pto.shuffle_bfly(m, 2))
        m = pl.max(m, pl.pto.shuffle_bfly(m, 1))
        e = pl.exp(v - m)
        s = pl.pto.simt_allreduce_sum(e, threads=32)
        pl.pto.stg(e / s, y, at)

    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[4, 32], pl.FP32], y: pl.InOut[pl.Tensor[[4, 32], pl.FP32]]):
        pl.pto.simt_launch("row", [128, 1, 1], x, y, 32)
"""
HISTOGRAM = """
@pl.program
class Hist:
    @pl.function(type=pl.FunctionType.SimtEntry)
    def count(self, x: pl.Ptr[pl.INT32, "gm"], bins: pl.InOut[pl.Ptr[pl.INT32, "ub"]], out: pl.InOut[pl.Ptr[pl.INT32, "gm"]]):
        t = pl.pto.get_tid_x()
        if t < 8:
            pl.pto.store(0, bins, t)
        pl.pto.syncthreads()
        v = pl.pto.ldg(x, t)
        b = v % 8
        pl.pto.atomic_add(pl.pto.addptr(bins, b), 1)
        pl.pto.syncthreads()
        if t < 8:
            pl.pto.atomic_add(pl.pto.addptr(out, t), pl.pto.load(bins, t))
"""  # noqa: E501
#: Kernels of the language with threads.
KERNELS = {"softmax": SOFTMAX, "histogram": HISTOGRAM}
