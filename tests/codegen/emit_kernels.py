# ruff: noqa: E501
"""Kernels for the emission tests, in the language's text: (source, scalar arguments, dynamic sizes) by name."""

from __future__ import annotations

from typing import Any

HEAD = "import pypto.language as pl\n\n\n@pl.function(type=pl.FunctionType.InCore)\n"


def _out(shape: str, dtype: str, name: str = "out") -> str:
    return f"{name}: pl.Out[pl.Tensor[[{shape}], pl.{dtype}]]"


def _in(shape: str, dtype: str, name: str = "x") -> str:
    return f"{name}: pl.Tensor[[{shape}], pl.{dtype}]"


def _kernel(args: tuple[str, ...], body: str) -> str:
    lines = [line[4:] if line.startswith("    ") else line for line in body.strip("\n").splitlines()]
    return f"{HEAD}def kernel({', '.join(args)}):\n" + "\n".join(f"    {line}" for line in lines) + "\n"


_N = "n: pl.Scalar[pl.INDEX]"
KERNELS: dict[str, tuple[str, dict[str, Any], dict[str, int]]] = {
    "quant_int8": (_kernel((_in("16, 64", "BF16"), _out("16, 64", "INT8", "q"), _out("16, 1", "FP32", "scale")), """
    xf = pl.tile.cast(pl.tile.load(x, [0, 0], [16, 64]), target_type=pl.FP32)
    amax = pl.tile.maximums(pl.tile.row_max(pl.tile.abs(xf)), 0.0001)
    inv = pl.tile.div(pl.tile.full([16, 1], pl.FP32, 127.0), amax)
    scaled = pl.tile.row_expand_mul(xf, inv)
    i = pl.tile.cast(scaled, target_type=pl.INT32, mode="rint")
    h = pl.tile.cast(i, target_type=pl.FP16, mode="round")
    a = pl.tile.store(pl.tile.cast(h, target_type=pl.INT8, mode="trunc"), [0, 0], q)
    b = pl.tile.store(pl.tile.muls(amax, 0.007874015718698502), [0, 0], scale)
    return a, b
    """), {}, {}),
    "softmax": (_kernel((_in("32, 64", "FP32"), _out("32, 64", "FP32")), """
    for i, (o,) in pl.range(2, init_values=(out,)):
        t = pl.tile.load(x, [i * 16, 0], [16, 64])
        e = pl.tile.exp(pl.tile.row_expand_sub(t, pl.tile.row_max(t)))
        r = pl.tile.row_expand_div(e, pl.tile.row_sum(e))
        o_next = pl.yield_(pl.tile.store(r, [i * 16, 0], o))
    return o_next
    """), {}, {}),
    "rmsnorm": (_kernel((_in("32, 64", "BF16"), _in("1, 64", "FP32", "w"), _out("32, 64", "BF16")), """
    for i in pl.range(2):
        f = pl.tile.cast(pl.tile.load(x, [i * 16, 0], [16, 64]), target_type=pl.FP32)
        mean = pl.tile.adds(pl.tile.muls(pl.tile.row_sum(pl.tile.mul(f, f)), 0.015625), 0.000001)
        n = pl.tile.row_expand_mul(f, pl.tile.recip(pl.tile.sqrt(mean)))
        g = pl.tile.col_expand_mul(n, pl.tile.load(w, [0, 0], [1, 64]))
        out = pl.tile.store(pl.tile.cast(g, target_type=pl.BF16, mode="rint"), [i * 16, 0], out)
    return out
    """), {}, {}),
    "online_softmax": (_kernel((_in("16, 256", "FP32"), _out("16, 1", "FP32", "m_out"), _out("16, 1", "FP32", "l_out")), """
    m0 = pl.tile.full([16, 1], pl.FP32, -1e30)
    l0 = pl.tile.full([16, 1], pl.FP32, 0.0)
    for i, (m, l) in pl.range(4, init_values=(m0, l0)):
        t = pl.tile.load(x, [0, i * 64], [16, 64])
        m_new = pl.tile.maximum(m, pl.tile.row_max(t))
        p = pl.tile.exp(pl.tile.row_expand_sub(t, m_new))
        l_new = pl.tile.add(pl.tile.mul(l, pl.tile.exp(pl.tile.sub(m, m_new))), pl.tile.row_sum(p))
        m1, l1 = pl.yield_(m_new, l_new)
    a = pl.tile.store(m1, [0, 0], m_out)
    b = pl.tile.store(l1, [0, 0], l_out)
    return a, b
    """), {}, {}),
    "dynamic_rows": (_kernel((_in("64, 64", "FP32"), _N, _out("64, 64", "BF16"), _out("64, 1", "FP32", "most")), """
    t = pl.tile.load(x, [0, 0], [64, 64], valid_shape=[n, 64])
    m = pl.tile.maximums(pl.tile.row_max(t), 0.001)
    a = pl.tile.store(pl.tile.cast(pl.tile.row_expand_div(t, m), target_type=pl.BF16), [0, 0], out)
    b = pl.tile.store(m, [0, 0], most)
    return a, b
    """), {"n": 37}, {}),
    "dynamic_shape": (_kernel((_in("M, N", "FP32"), "j: pl.Scalar[pl.INT32]", _out("M, N", "BF16")), """
    rows = pl.tensor.dim(x, 0)
    for r in pl.range(0, rows, 16):
        t = pl.tile.load(x, [r, j * 64], [16, 64], valid_shape=[pl.min(16, rows - r), 64])
        out = pl.tile.store(pl.tile.cast(t, target_type=pl.BF16), [r, j * 64], out)
    return out
    """), {"j": 1}, {"M": 40, "N": 128}),
    "accumulate": (_kernel((_in("64, 64", "FP32"), _out("16, 64", "FP32")), """
    acc0 = pl.tile.full([16, 64], pl.FP32, 0.0)
    for i, (acc,) in pl.range(4, init_values=(acc0,)):
        acc_next = pl.yield_(pl.tile.add(acc, pl.tile.load(x, [i * 16, 0], [16, 64])))
    return pl.tile.store(acc_next, [0, 0], out)
    """), {}, {}),
    "accumulate_nested": (_kernel((_in("64, 64", "FP32"), _out("16, 64", "FP32")), """
    acc0 = pl.tile.full([16, 64], pl.FP32, 0.0)
    for i, (acc,) in pl.range(2, init_values=(acc0,)):
        for j, (inner,) in pl.range(2, init_values=(acc,)):
            inner_next = pl.yield_(pl.tile.add(inner, pl.tile.load(x, [i * 32 + j * 16, 0], [16, 64])))
        acc_next = pl.yield_(pl.tile.muls(inner_next, 0.5))
    return pl.tile.store(acc_next, [0, 0], out)
    """), {}, {}),
    "init_used_later": (_kernel((_in("16, 64", "FP32"), _out("16, 64", "FP32")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    for i, (acc,) in pl.range(3, init_values=(t,)):
        acc_next = pl.yield_(pl.tile.adds(acc, 1.0))
    return pl.tile.store(pl.tile.sub(acc_next, t), [0, 0], out)
    """), {}, {}),
    "init_in_outer_loop": (_kernel((_in("16, 64", "FP32"), _out("32, 64", "FP32")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    for i in pl.range(2):
        for j, (acc,) in pl.range(3, init_values=(t,)):
            acc_next = pl.yield_(pl.tile.adds(acc, 1.0))
        out = pl.tile.store(acc_next, [i * 16, 0], out)
    return out
    """), {}, {}),
    "swap": (_kernel((_in("16, 64", "FP32"), _in("16, 64", "FP32", "y"), _out("16, 64", "FP32")), """
    a0 = pl.tile.load(x, [0, 0], [16, 64])
    b0 = pl.tile.load(y, [0, 0], [16, 64])
    for i, (a, b) in pl.range(3, init_values=(a0, b0)):
        a1, b1 = pl.yield_(b, a)
    return pl.tile.store(pl.tile.sub(a1, b1), [0, 0], out)
    """), {}, {}),
    "fibonacci": (_kernel((_in("16, 64", "FP32"), _in("16, 64", "FP32", "y"), _out("16, 64", "FP32")), """
    a0 = pl.tile.load(x, [0, 0], [16, 64])
    b0 = pl.tile.load(y, [0, 0], [16, 64])
    for i, (a, b) in pl.range(5, init_values=(a0, b0)):
        a1, b1 = pl.yield_(b, pl.tile.add(a, b))
    return pl.tile.store(b1, [0, 0], out)
    """), {}, {}),
    "zero_rounds": (_kernel((_in("16, 64", "FP32"), _N, _out("16, 64", "FP32")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    for i, (acc,) in pl.range(n, init_values=(t,)):
        acc_next = pl.yield_(pl.tile.muls(acc, 2.0))
    return pl.tile.store(acc_next, [0, 0], out)
    """), {"n": 0}, {}),
    "branch": (_kernel((_in("16, 64", "FP32"), _N, _out("16, 64", "FP32")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    if n > 3:
        y = pl.yield_(pl.tile.muls(t, 2.0))
    else:
        y = pl.yield_(t)
    return pl.tile.store(pl.tile.add(y, t), [0, 0], out)
    """), {"n": 2}, {}),
    "branch_in_loop": (_kernel((_in("64, 64", "FP32"), _out("16, 64", "FP32")), """
    acc0 = pl.tile.load(x, [0, 0], [16, 64])
    for i, (acc,) in pl.range(1, 4, init_values=(acc0,)):
        t = pl.tile.load(x, [i * 16, 0], [16, 64])
        if i % 2 == 0:
            y = pl.yield_(pl.tile.sub(acc, t))
        else:
            y = pl.yield_(pl.tile.add(acc, t))
        acc_next = pl.yield_(y)
    return pl.tile.store(acc_next, [0, 0], out)
    """), {}, {}),
    "branch_on_columns": (_kernel((_in("64, 64", "FP32"), _N, _out("64, 64", "FP32"), _out("64, 1", "FP32", "most")), """
    t = pl.tile.load(x, [0, 0], [64, 64], valid_shape=[n, 64])
    m = pl.tile.row_max(t)
    if n > 8:
        q = pl.yield_(pl.tile.muls(m, 2.0))
    else:
        q = pl.yield_(pl.tile.adds(m, 2.0))
    a = pl.tile.store(q, [0, 0], most)
    return pl.tile.store(pl.tile.row_expand_sub(t, q), [0, 0], out)
    """), {"n": 11}, {}),
    "compare_select": (_kernel((_in("16, 64", "FP32"), _in("16, 64", "FP32", "y"), _out("16, 64", "FP32"), _out("16, 8", "UINT8", "bits")), """
    a = pl.tile.load(x, [0, 0], [16, 64])
    b = pl.tile.load(y, [0, 0], [16, 64])
    less = pl.tile.cmp(a, b, cmp_type=2)
    c = pl.tile.sel(less, a, b, pl.tile.create([1, 16], pl.UINT32))
    d = pl.tile.sels(pl.tile.cmps(a, 0.5, cmp_type=4), c, pl.tile.create([1, 64], pl.FP32), 1.5)
    r = pl.tile.store(less, [0, 0], bits)
    s = pl.tile.store(d, [0, 0], out)
    return s, r
    """), {}, {}),
    "select_columns": (_kernel((_in("40, 64", "FP32"), _out("40, 1", "FP32")), """
    a = pl.tile.load(x, [0, 0], [40, 64])
    m, s = pl.tile.row_max(a), pl.tile.row_sum(a)
    return pl.tile.store(pl.tile.sel(pl.tile.cmp(m, s, cmp_type=2), m, s), [0, 0], out)
    """.replace("    m, s = pl.tile.row_max(a), pl.tile.row_sum(a)\n", "    m = pl.tile.row_max(a)\n    s = pl.tile.row_sum(a)\n")), {}, {}),
    "select_small": (_kernel((_in("8, 8", "FP32"), _out("8, 8", "BF16")), """
    a = pl.tile.load(x, [0, 0], [8, 8])
    c = pl.tile.sel(pl.tile.cmps(a, 0.0, cmp_type=4), a, pl.tile.neg(a))
    return pl.tile.store(pl.tile.cast(c, target_type=pl.BF16), [0, 0], out)
    """), {}, {}),
    "cast_columns": (_kernel((_in("16, 1", "FP32"), _out("16, 1", "BF16", "b"), _out("16, 1", "INT8", "i")), """
    t = pl.tile.load(x, [0, 0], [16, 1])
    s = pl.tile.store(pl.tile.cast(t, target_type=pl.BF16), [0, 0], b)
    r = pl.tile.store(pl.tile.cast(t, target_type=pl.INT8, mode="rint"), [0, 0], i)
    return s, r
    """), {}, {}),
    "slices": (_kernel((_in("16, 64", "FP32"), _N, _out("16, 16", "FP32")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    a = pl.tile.slice(t, [16, 16], [0, n * 16])
    b = pl.tile.slice(t, [16, 16], [0, 16])
    c = pl.tile.sel(pl.tile.cmp(a, b, cmp_type=4), a, b)
    d = pl.tile.slice(pl.tile.load(x, [3, 0], [1, 64]), [1, 16], [0, 32])
    return pl.tile.store(pl.tile.col_expand_mul(c, d), [0, 0], out)
    """), {"n": 2}, {}),
    "slice_to_column": (_kernel((_in("1, 64", "FP32"), _in("16, 64", "FP32", "y"), _out("16, 64", "FP32"), _out("8, 1", "FP32", "part")), """
    s = pl.tile.slice(pl.tile.load(x, [0, 0], [1, 64]), [1, 16], [0, 32])
    c = pl.tile.reshape(s, [16, 1])
    p = pl.tile.store(pl.tile.slice(c, [8, 1], [8, 0]), [0, 0], part)
    return pl.tile.store(pl.tile.row_expand_mul(pl.tile.load(y, [0, 0], [16, 64]), c), [0, 0], out)
    """), {}, {}),
    "slice_then_write": (_kernel((_in("16, 64", "FP32"), _out("16, 64", "FP32"), _out("8, 64", "FP32", "part")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    s = pl.tile.slice(t, [8, 64], [0, 0])
    w = pl.tile.write(t, [3, 4], 2.5)
    a = pl.tile.store(w, [0, 0], out)
    b = pl.tile.store(s, [0, 0], part)
    return a, b
    """), {}, {}),
    "valid_shapes": (_kernel((_in("16, 64", "FP32"), _N, _out("16, 64", "BF16")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    c = pl.tile.cast(pl.tile.set_validshape(t, 8, 32), target_type=pl.BF16)
    d = pl.tile.cast(pl.tile.set_validshape(t, n, 48), target_type=pl.BF16)
    return pl.tile.store(d, [8, 0], pl.tile.store(c, [0, 0], out))
    """), {"n": 5}, {}),
    "pad": (_kernel((_in("16, 64", "FP32"), _N, _out("16, 64", "FP32")), """
    t = pl.tile.fillpad(pl.tile.load(x, [0, 0], [16, 64], valid_shape=[16, n]), pad_value="min")
    return pl.tile.store(pl.tile.row_expand_sub(t, pl.tile.row_max(t)), [0, 0], out)
    """), {"n": 23}, {}),
    "transpose": (_kernel((_in("16, 32", "FP32"), _out("32, 16", "FP32"), _out("16, 1", "FP32", "sums")), """
    t = pl.tile.load(x, [0, 0], [16, 32])
    s = pl.tile.store(pl.tile.transpose(pl.tile.transpose(pl.tile.row_sum(t), 0, 1), 0, 1), [0, 0], sums)
    return pl.tile.store(pl.tile.transpose(t, 0, 1), [0, 0], out)
    """), {}, {}),
    "column_of_columns": (_kernel((_in("16, 64", "FP32"), _out("16, 1", "FP32"), _out("1, 1", "FP32", "top")), """
    m = pl.tile.row_max(pl.tile.load(x, [0, 0], [16, 64]))
    t = pl.tile.col_max(m)
    a = pl.tile.store(pl.tile.row_expand_mul(pl.tile.col_expand_sub(m, t), m), [0, 0], out)
    b = pl.tile.store(t, [0, 0], top)
    return a, b
    """), {}, {}),
    "ranks": (_kernel((_in("4, 16, 64", "FP32"), _in("64", "FP32", "v"), _out("4, 16, 64", "BF16"), _out("64", "BF16", "w")), """
    t = pl.tile.load(x, [0, 0, 0], [4, 16, 64])
    u = pl.tile.load(v, [0], [64])
    a = pl.tile.store(pl.tile.cast(t, target_type=pl.BF16), [0, 0, 0], out)
    b = pl.tile.store(pl.tile.cast(u, target_type=pl.BF16), [0], w)
    return a, b
    """), {}, {}),
    "tensor_views": (_kernel((_in("4, 1024", "FP32"), _out("4, 1024", "BF16")), """
    s = pl.tensor.slice(pl.tensor.reshape(x, [64, 64]), [32, 64], [32, 0])
    part = pl.tensor.slice(s, [16, 64], [8, 0])
    o = pl.tensor.view(out, [64, 64])
    return pl.tile.store(pl.tile.cast(pl.tile.load(part, [0, 0], [16, 64]), target_type=pl.BF16), [16, 0], o)
    """), {}, {}),
    "strided_tensor": (_kernel(("x: pl.Tensor[[32, 64], pl.FP32, pl.TensorView(stride=[128, 1], layout=pl.TensorLayout.ND)]",
                                _out("32, 64", "FP32")), """
    return pl.tile.store(pl.tile.load(x, [16, 0], [16, 64]), [0, 0], out)
    """), {}, {}),
    "atomic": (_kernel((_in("16, 64", "FP32"), _out("16, 64", "FP32")), """
    return pl.tile.store(pl.tile.load(x, [0, 0], [16, 64]), [0, 0], out, atomic="add")
    """.replace('atomic="add"', "atomic=pl.AtomicType.Add")), {}, {}),
    "scalars": (_kernel((_in("64, 64", "FP32"), _in("64", "INT32", "lut"), "s: pl.Scalar[pl.FP32]", _N,
                         _out("64, 64", "FP32"), _out("8", "UINT32", "c"), _out("8", "INT32", "d")), """
    q = pl.tensor.read(lut, [n])
    f = pl.cast(q, pl.FP32) * s - 1.5
    z = pl.cast(f, pl.INT32, mode="rint")
    r = (0 - n) % 4 * 16
    t = pl.tile.load(x, [r, 0], [16, 64])
    u = pl.tile.adds(pl.tile.muls(t, pl.max(f, 0.25)), pl.tile.read(t, [1, 1]))
    c1 = pl.tensor.write(c, [2], pl.const(4000000000, pl.UINT32))
    d1 = pl.tensor.write(d, [n], z)
    d2 = pl.tensor.write(d1, [0], pl.cast((0 - n) // 2, pl.INT32))
    if z > 3 and not (q == 5):
        y = pl.yield_(pl.tile.subs(u, 1.0))
    else:
        y = pl.yield_(pl.tile.neg(u))
    o = pl.tile.store(y, [r, 0], out)
    return o, c1, d2
    """), {"s": 1.25, "n": 3}, {}),
    "downwards": (_kernel((_in("64, 64", "FP32"), _N, _out("64, 64", "FP32"), _out("64, 64", "FP32", "y")), """
    for i in pl.range(3, 0, -1):
        out = pl.tile.store(pl.tile.load(x, [i * 16, 0], [16, 64]), [48 - i * 16, 0], out)
    for j in pl.range(n, 4, -4):
        y = pl.tile.store(pl.tile.load(x, [j, 0], [1, 64]), [j, 0], y)
    return out, y
    """), {"n": 15}, {}),
    "scalar_carried": (_kernel((_in("16, 64", "FP32"), _out("16, 64", "FP32"), _out("1", "FP32", "total")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    for i, (acc, tot) in pl.range(3, init_values=(t, 0.5)):
        acc1, tot1 = pl.yield_(pl.tile.muls(acc, tot), tot + 1.0)
    a = pl.tile.store(acc1, [0, 0], out)
    b = pl.tensor.write(total, [0], tot1)
    return a, b
    """), {}, {}),
    "indices": (_kernel((_out("1, 64", "INT32", "a"), _out("1, 64", "INT16", "b")), """
    s = pl.tile.store(pl.tile.ci(5, [1, 64], dtype=pl.INT32, descending=True), [0, 0], a)
    r = pl.tile.store(pl.tile.ci(7, [1, 64], dtype=pl.INT16), [0, 0], b)
    return s, r
    """), {}, {}),
    "saturation_off": (_kernel((_in("16, 64", "FP32"), _N, _out("16, 64", "INT16"), _out("16, 64", "INT16", "rows")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    u = pl.tile.load(x, [0, 0], [16, 64], valid_shape=[n, 64])
    a = pl.tile.store(pl.tile.cast(t, target_type=pl.INT16, mode="trunc", saturation_mode="off"), [0, 0], out)
    b = pl.tile.store(pl.tile.cast(u, target_type=pl.INT16, mode="trunc", saturation_mode="off"), [0, 0], rows)
    return a, b
    """), {"n": 9}, {}),
    "positions": (_kernel((_in("16, 64", "FP32"), _out("16, 1", "INT32", "r"), _out("1, 64", "INT32", "c"), _out("16, 1", "INT32", "z")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    a = pl.tile.store(pl.tile.row_argmax(t), [0, 0], r)
    b = pl.tile.store(pl.tile.col_argmin(t), [0, 0], c)
    d = pl.tile.store(pl.tile.row_argmax(pl.tile.row_max(t)), [0, 0], z)
    return a, b, d
    """), {}, {}),
    "axpy": (_kernel((_in("64, 64", "FP32"), _out("16, 64", "FP32"), _out("16, 64", "FP32", "first")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    a = pl.tile.store(pl.tile.axpy(t, t, 0.5), [0, 0], first)
    acc0 = pl.tile.full([16, 64], pl.FP32, 0.0)
    for i, (acc,) in pl.range(4, init_values=(acc0,)):
        acc_next = pl.yield_(pl.tile.axpy(acc, pl.tile.load(x, [i * 16, 0], [16, 64]), 0.25))
    b = pl.tile.store(pl.tile.add(acc_next, t), [0, 0], out)
    return b, a
    """), {}, {}),
    "partial": (_kernel((_in("16, 64", "FP32"), _in("16, 64", "FP32", "y"), _N, _out("16, 64", "FP32")), """
    a = pl.tile.load(x, [0, 0], [16, 64])
    b = pl.tile.load(y, [0, 0], [16, 64], valid_shape=[9, 40])
    return pl.tile.store(pl.tile.part_max(pl.tile.part_add(a, b), b), [0, 0], out)
    """), {"n": 9}, {}),
    "assemble": (_kernel((_in("16, 64", "FP32"), _in("16, 16", "FP32", "y"), _N, _out("16, 64", "FP32"), _out("1, 64", "FP32", "line")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    s = pl.tile.load(y, [0, 0], [16, 16])
    u = pl.tile.assemble(pl.tile.assemble(t, s, [0, 32]), pl.tile.muls(s, 2.0), [0, n * 16])
    r = pl.tile.assemble(pl.tile.load(x, [0, 0], [1, 64]), pl.tile.load(y, [0, 0], [1, 16]), [0, 16])
    a = pl.tile.store(r, [0, 0], line)
    b = pl.tile.store(pl.tile.sub(u, pl.tile.extract(t, 0, 0, [16, 64])), [0, 0], out)
    return b, a
    """), {"n": 1}, {}),
    "pad_wider": (_kernel((_in("8, 24", "FP32"), _out("16, 64", "FP32")), """
    return pl.tile.store(pl.tile.fillpad_expand(pl.tile.load(x, [0, 0], [8, 24]), [16, 64], pad_value="max"), [0, 0], out)
    """), {}, {}),
    "dequant": (_kernel((_in("16, 64", "INT8"), _in("16, 1", "FP32", "scale"), _in("16, 1", "FP32", "zero"), _out("16, 64", "FP32")), """
    t = pl.tile.dequant(pl.tile.load(x, [0, 0], [16, 64]), pl.tile.load(scale, [0, 0], [16, 1]), pl.tile.load(zero, [0, 0], [16, 1]))
    return pl.tile.store(t, [0, 0], out)
    """), {}, {}),
    "select_unsigned": (_kernel((_in("2, 16, 64", "FP32"), _in("2, 16, 64", "UINT16", "y"), _out("2, 16, 64", "UINT16")), """
    a = pl.tile.load(y, [0, 0, 0], [2, 16, 64])
    m = pl.tile.cmps(pl.tile.load(x, [0, 0, 0], [2, 16, 64]), 0.5, cmp_type=4)
    n = pl.tile.cmps(pl.tile.load(x, [0, 0, 0], [2, 16, 64]), -0.5, cmp_type=2)
    return pl.tile.store(pl.tile.select(m, 7, pl.tile.select(n, a, 65535)), [0, 0, 0], out)
    """), {}, {}),
}  # fmt: skip


def _quantised(shape: tuple[int, int], axis: int, dtype: str = "FP32", to: str = "FP8E4M3FN") -> str:
    """Both results of block-scaled quantisation, stored."""
    (m, k), source = shape, ", ".join(map(str, shape))
    data, scales = (f"{m}, {k}", f"{m}, {k // 32}") if axis == 1 else (f"{k}, {m}", f"{k // 32}, {m}")
    return _kernel((_in(source, dtype), _out(data, to, "q"), _out(scales, "FP8E8M0", "s")), f"""
    codes, scales = pl.tile.tquant_mx(pl.tile.load(x, [0, 0], [{source}]), group_axis={axis}, dtype=pl.{to})
    a = pl.tile.store(codes, [0, 0], q)
    b = pl.tile.store(scales, [0, 0], s)
    return a, b
    """)


#: Block-scaled quantisation, which only a5 has, and whose machine is the wider one.
MX_KERNELS: dict[str, str] = {
    "mx_left": _quantised((32, 64), 1),
    "mx_right": _quantised((32, 64), 0),
    "mx_left_wide": _quantised((16, 1024), 1),
    "mx_left_half": _quantised((32, 128), 1, "BF16"),
    "mx_right_half": _quantised((64, 64), 0, "FP16"),
    "mx_left_fp4": _quantised((32, 64), 1, "BF16", "FP4"),
    "mx_right_fp4": _quantised((32, 128), 0, "BF16", "FP4"),
    "mx_blocks": _kernel((_in("64, 128", "FP32"), _out("64, 128", "FP8E4M3FN", "q"), _out("64, 4", "FP8E8M0", "s")), """
    for i, (o, e) in pl.range(4, init_values=(q, s)):
        t = pl.tile.load(x, [i * 16, 0], [16, 128])
        codes, scales = pl.tile.tquant_mx(t, group_axis=1, dtype=pl.FP8E4M3FN)
        o1 = pl.tile.store(codes, [i * 16, 0], o)
        e1 = pl.tile.store(scales, [i * 16, 0], e)
        o2, e2 = pl.yield_(o1, e1)
    return o2, e2
    """),
    "mx_exponents": _kernel((_in("32, 64", "FP32"), _out("32, 64", "INT8", "q"), _out("1, 64", "UINT8", "s")), """
    a = pl.tile.create([1, 64], dtype=pl.FP32)
    b = pl.tile.create([1, 64], dtype=pl.FP32)
    codes, e = pl.tile.tquant_mx_raw(pl.tile.load(x, [0, 0], [32, 64]), a, b, group_axis=1)
    boxes = pl.tile.tmov_x2zz(e, pl.tile.create([1, 96], dtype=pl.UINT8), group_axis=1, dst_rows=32, dst_cols=2)
    q1 = pl.tile.store(codes, [0, 0], q)
    s1 = pl.tile.store(e, [0, 0], s)
    return q1, s1
    """),
    "mx_exponents_of_rows": _kernel(
        (_in("64, 32", "FP16"), _out("64, 32", "INT8", "q"), _out("2, 32", "UINT8", "s")), """
    a = pl.tile.create([2, 32], dtype=pl.FP16)
    b = pl.tile.create([2, 32], dtype=pl.FP16)
    codes, e = pl.tile.tquant_mx_raw(pl.tile.load(x, [0, 0], [64, 32]), a, b, group_axis=0)
    boxes = pl.tile.tmov_x2zz(e, pl.tile.create([1, 32], dtype=pl.UINT8), group_axis=0)
    q1 = pl.tile.store(codes, [0, 0], q)
    s1 = pl.tile.store(e, [0, 0], s)
    return q1, s1
    """),
}  # fmt: skip

#: Kernels that the targets' data keeps from being lowered; they are written as they stand.
AS_WRITTEN = frozenset({"assemble", "histogram", "axpy_bf16"})

#: Kernels that only a5 has conversions for.
A5_KERNELS: dict[str, tuple[str, dict[str, Any], dict[str, int]]] = {
    "fp8_column": (_kernel((_in("32, 1", "FP32"), _out("32, 1", "FP8E4M3FN")), """
    return pl.tile.store(pl.tile.cast(pl.tile.load(x, [0, 0], [32, 1]), target_type=pl.FP8E4M3FN), [0, 0], out)
    """), {}, {}),
    "fp8_rows": (_kernel((_in("8, 8", "FP32"), _out("8, 8", "FP8E5M2"), _out("8, 8", "FP32", "back")), """
    t = pl.tile.cast(pl.tile.load(x, [0, 0], [8, 8]), target_type=pl.FP8E5M2, mode="rint")
    a = pl.tile.store(t, [0, 0], out)
    b = pl.tile.store(pl.tile.cast(t, target_type=pl.FP32), [0, 0], back)
    return a, b
    """), {}, {}),
    "fp4_dynamic": (_kernel((_in("32, 64", "BF16"), _N, _out("32, 64", "FP4")), """
    t = pl.tile.load(x, [0, 0], [32, 64], valid_shape=[n, 64])
    return pl.tile.store(pl.tile.cast(t, target_type=pl.FP4), [0, 0], out)
    """), {"n": 13}, {}),
    "fp4_narrow": (_kernel((_in("16, 16", "FP4"), _out("16, 16", "BF16")), """
    return pl.tile.store(pl.tile.cast(pl.tile.load(x, [0, 0], [16, 16]), target_type=pl.BF16), [0, 0], out)
    """), {}, {}),
    "select_bytes": (_kernel((_in("2, 16, 64", "FP32"), _in("2, 16, 64", "UINT8", "y"), _out("2, 16, 64", "UINT8")), """
    a = pl.tile.load(y, [0, 0, 0], [2, 16, 64])
    m = pl.tile.cmps(pl.tile.load(x, [0, 0, 0], [2, 16, 64]), 0.5, cmp_type=4)
    n = pl.tile.cmps(pl.tile.load(x, [0, 0, 0], [2, 16, 64]), -0.5, cmp_type=2)
    return pl.tile.store(pl.tile.select(m, 7, pl.tile.select(n, a, 200)), [0, 0, 0], out)
    """), {}, {}),
    "histogram": (_kernel((_in("32, 64", "UINT16"), _in("32, 1", "UINT8", "high"), _out("32, 256", "UINT32")), """
    t = pl.tile.histogram(pl.tile.load(x, [0, 0], [32, 64]), pl.tile.load(high, [0, 0], [32, 1]), byte=1)
    return pl.tile.store(t, [0, 0], out)
    """), {}, {}),
    "axpy_bf16": (_kernel((_in("16, 64", "BF16"), _out("16, 64", "BF16")), """
    t = pl.tile.load(x, [0, 0], [16, 64])
    return pl.tile.store(pl.tile.axpy(pl.tile.adds(t, 1.0), t, 0.5), [0, 0], out)
    """), {}, {}),
}  # fmt: skip
