"""The tile operations of the dialect, one row each, and the classes made from the rows.

Operand names, orders and attributes: assembler v0.60 operation definitions.
"""

from __future__ import annotations

from functools import partial

from . import archchecks, checks, reductions, shuffles
from .classes import Classes
from .dps import DpsOp, DpsRow, make_op

_BINARY = "src0 src1 -> dst"
_BINARY_TMP = "src0 src1 tmp? -> dst"
_SCALAR = "src $scalar -> dst"
_BITS = "src %scalar -> dst"
_UNARY = "src -> dst"
_UNARY_TMP = "src tmp? -> dst"


def _precision(family: str) -> dict[str, str | None]:
    return {"precisionType": f"{family}_precision"}


_CMP: dict[str, str | None] = {"cmpMode": "cmp"}

_ELEMENTWISE = (
    *(
        DpsRow(f"t{n}", _BINARY, checks.binary)
        for n in ["add", "sub", "mul", "max", "min", "and", "or", "addrelu"]
    ),
    *(DpsRow(f"t{n}", _BINARY, checks.shift) for n in ("shl", "shr")),
    DpsRow("tdiv", _BINARY, checks.binary, attrs=_precision("div")),
    DpsRow("tfmod", _BINARY, checks.binary, attrs=_precision("fmod")),
    DpsRow("trem", _BINARY_TMP, checks.binary, archchecks.remainder, _precision("rem")),
    DpsRow("txor", _BINARY_TMP, checks.binary, archchecks.exclusive_or),
    DpsRow("tprelu", _BINARY_TMP, checks.prelu, archchecks.prelu),
    DpsRow(
        "tpow",
        "base exp tmp? -> dst",
        checks.power,
        archchecks.power,
        _precision("pow"),
        order="base exp dst tmp",
    ),
    DpsRow("taddc", "src0 src1 src2 -> dst", checks.same_shapes),
    DpsRow("tsubc", "src0 src1 src2 -> dst"),
)
_TILE_SCALAR = (
    *(DpsRow(f"t{n}s", _SCALAR, checks.tile_scalar) for n in ["add", "sub", "mul", "max", "min"]),
    DpsRow("tfmods", _SCALAR, checks.remainder_scalar),
    DpsRow("tdivs", "~src ~scalar -> dst", checks.either_scalar, attrs=_precision("div")),
    *(DpsRow(f"t{n}s", _BITS, checks.bitwise_scalar) for n in ("and", "or")),
    DpsRow("txors", "src %scalar tmp? -> dst", checks.bitwise_scalar, archchecks.exclusive_or),
    DpsRow("tshls", _BITS, checks.shift_left_scalar),
    DpsRow("tshrs", _BITS, checks.unary),
    DpsRow("trems", "src $scalar tmp? -> dst", checks.remainder_scalar, archchecks.remainder),
    DpsRow("tlrelu", "src !slope -> dst", checks.unary_any_layout),
    DpsRow("taxpy", _SCALAR, checks.axpy),
    DpsRow("texpands", "$scalar -> dst", checks.fill, archchecks.fill),
    DpsRow(
        "tpows",
        "src $scalar tmp? -> dst",
        checks.power,
        archchecks.power,
        _precision("pow"),
        order="src scalar dst tmp",
    ),
    DpsRow("taddsc", "src0 $scalar src1 -> dst", checks.same_shapes),
    DpsRow("tsubsc", "src0 $scalar src1 -> dst"),
)
_UNARIES = (
    *(DpsRow(f"t{n}", _UNARY, checks.unary) for n in ["abs", "relu", "not"]),
    DpsRow("tneg", _UNARY, checks.negate, archchecks.negate),
    *(DpsRow(f"t{n}", _UNARY, checks.unary, attrs=_precision(n)) for n in ["exp", "log", "sqrt", "recip"]),
    DpsRow("trsqrt", _UNARY_TMP, checks.rsqrt, None, _precision("rsqrt"), order="src dst tmp"),
    DpsRow("ttrans", _UNARY_TMP, checks.transpose, archchecks.transpose),
)
_CHOICE = (
    DpsRow(
        "tcvt",
        _UNARY_TMP,
        checks.convert,
        archchecks.convert,
        {"rmode": "round_mode", "sat_mode": "saturation_mode"},
        inside=True,
        surface={"sat_mode": "satmode"},
    ),
    DpsRow("tcmp", _BINARY, checks.compare, archchecks.compare, _CMP, inside=True),
    DpsRow("tcmps", _SCALAR, checks.compare_scalar, None, _CMP, inside=True),
    DpsRow("tsel", "mask src0 src1 tmp? -> dst", checks.select, archchecks.select),
    DpsRow("tsels", "mask src tmp? $scalar -> dst", checks.select_scalar, archchecks.select_scalar),
)
_REDUCTIONS = (
    *(
        DpsRow(f"trow{n}", _UNARY_TMP, reductions.row_reduction, archchecks.row_reduction)
        for n in ["sum", "max", "min", "prod"]
    ),
    *(
        DpsRow(f"trow{n}", _UNARY_TMP, reductions.row_index, archchecks.row_index)
        for n in ("argmax", "argmin")
    ),
    *(
        DpsRow(f"tcol{n}", _UNARY, reductions.column_reduction, archchecks.column_reduction)
        for n in ["max", "min", "prod"]
    ),
    DpsRow(
        "tcolsum",
        _UNARY_TMP,
        reductions.column_sum,
        archchecks.column_reduction,
        {"isBinary": None},
        inside=True,
    ),
    *(
        DpsRow(f"tcol{n}", _UNARY_TMP, reductions.column_index, archchecks.column_index)
        for n in ("argmax", "argmin")
    ),
)
_EXPANDS = (
    DpsRow("trowexpand", _UNARY, reductions.row_expand),
    DpsRow("tcolexpand", _UNARY, reductions.column_expand),
    *(
        DpsRow(f"trowexpand{n}", _BINARY_TMP, reductions.row_expand_binary, archchecks.row_expand)
        for n in ["add", "sub", "mul", "max", "min", "expdif"]
    ),
    DpsRow(
        "trowexpanddiv",
        _BINARY_TMP,
        reductions.row_expand_binary,
        archchecks.row_expand,
        _precision("div"),
    ),
    *(
        DpsRow(f"tcolexpand{n}", _BINARY, reductions.column_expand_binary)
        for n in ["add", "sub", "mul", "max", "min", "expdif"]
    ),
    DpsRow("tcolexpanddiv", _BINARY, reductions.column_expand_binary, attrs=_precision("div")),
)
_PARTS = (
    *(DpsRow(f"tpart{n}", _BINARY, checks.partial, archchecks.partial) for n in ["add", "mul", "max", "min"]),
    *(
        DpsRow(f"tpart{n}", "src0 src1 src0Idx src1Idx -> dst dstIdx", checks.partial, archchecks.partial)
        for n in ("argmax", "argmin")
    ),
)
_SHUFFLES = (
    DpsRow("tconcat", _BINARY, checks.concat, archchecks.concat),
    DpsRow("tconcatidx", "src0 src1 src0Idx src1Idx -> dst", shuffles.joined, shuffles.joined_on),
    DpsRow("tfillpad", _UNARY, checks.pad, attrs={"padValue": "pad_value"}),
    DpsRow("tgatherb", "src offsets -> dst", shuffles.blocks, shuffles.blocks_on),
    DpsRow("tsort32", "src idx tmp? -> dst", shuffles.sort, shuffles.sort_on),
    DpsRow("thistogram", "src idx -> dst", shuffles.histogram, archchecks.only_a5, {"byte": None}),
    DpsRow("tci", "+S tmp? -> dst", shuffles.counted, shuffles.counted_on, attrs={"descending": None}),
    DpsRow("ttri", "+diagonal -> dst", attrs={"upperOrLower": None}, inside=True),
    DpsRow(
        "trandom",
        "%key0 %key1 %counter0 %counter1 %counter2 %counter3 -> dst",
        shuffles.random_numbers,
        archchecks.only_a5,
        {"rounds": None},
        inside=True,
    ),
    DpsRow("tsetval", "#offset $val -> dst", order="dst offset val"),
    DpsRow("tget_scale_addr", _UNARY, None, archchecks.only_a5),
    DpsRow("tprefetch", "@src -> dst"),
    DpsRow(
        "mgather",
        "&mem &idx &scratch? -> dst",
        attrs={"coalesce": "coalesce", "gatherOob": "gather_oob"},
        order="mem idx dst scratch",
    ),
    DpsRow(
        "mscatter",
        "src &idx -> &mem",
        attrs={
            "coalesce": "coalesce",
            "scatterAtomicOp": "scatter_atomic_op",
            "scatterOob": "scatter_oob",
            "scatterConflict": "scatter_conflict",
        },
    ),
    *(
        DpsRow(
            f"t{n}",
            "src #indexRow #indexCol -> dst",
            attrs={"accToVecMode": None, "reluPreMode": "relu_pre_mode", **mode},
            more="fp? %preQuantScalar?",
        )
        for n, mode in (("extract", {}), ("insert", {"tinsertMode": None}))
    ),
)
_QUANTS = (
    DpsRow("tdequant", "src scale offset -> dst"),
    DpsRow(
        "tquant",
        "src fp offset? -> dst tmp?",
        attrs={"quant_type": "quant_type"},
        order="src fp offset tmp dst",
    ),
    DpsRow(
        "tquant.mx",
        "src -> dst exp max scaling exp_zz?",
        None,
        archchecks.microscale,
        {
            "quant_type": "quant_type",
            "quantScaleAlg": "quant_scale_alg",
            "storeMode": "vec_store_mode",
            "grpAxis": "mx_group_axis",
            "interleave": None,
        },
    ),
)
_PHASE: dict[str, str | None] = {"accPhase": "acc_phase"}
_MATRIX = tuple(
    row
    for n in ("tmatmul", "tgemv")
    for row in (
        DpsRow(n, "lhs rhs -> dst", checks.matrix, attrs=_PHASE),
        DpsRow(f"{n}.acc", "acc_in lhs rhs -> dst", checks.matrix, attrs=_PHASE),
        DpsRow(f"{n}.bias", "a b bias -> dst", checks.matrix, attrs=_PHASE),
        DpsRow(f"{n}.mx", "a a_scale b b_scale -> dst", checks.matrix, archchecks.only_a5, _PHASE),
        DpsRow(f"{n}.mx.acc", "c_in a a_scale b b_scale -> dst", checks.matrix, archchecks.only_a5, _PHASE),
        DpsRow(f"{n}.mx.bias", "a a_scale b b_scale bias -> dst", checks.matrix, archchecks.only_a5),
    )
)

#: Every row of the table.
ROWS: tuple[DpsRow, ...] = (
    *_ELEMENTWISE, *_TILE_SCALAR, *_UNARIES, *_CHOICE, *_REDUCTIONS, *_EXPANDS, *_PARTS, *_SHUFFLES, *_QUANTS,
    *_MATRIX,
)  # fmt: skip

#: Mnemonic (without ``pto.``) to operation class.
DPS_OPS: Classes[type[DpsOp]] = Classes({row.mnemonic: partial(make_op, row) for row in ROWS})
