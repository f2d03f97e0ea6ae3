"""Between operations and terms: a region written as egglog text, and saturated rows read back as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..ir.dtypes import DType
from ..ir.op import OPS, Kind, OpDecl
from ..ir.program import Const, Op, Value
from ..ir.types import ScalarType, TileType, Type, scalar
from ..rules.interned import Interned
from ..rules.terms import (
    CODE_DTYPES,
    CODE_MODES,
    CODE_SATURATIONS,
    DTYPE_CODES,
    MODE_CODES,
    child_params,
    constructor,
    implied_dtype,
    literal_codes,
    literal_value,
    rest_code,
    rest_of,
    rest_text,
    saturation_code,
    signature,
)
from .egglog_text import is_term, why_codes
from .graph import ABSENT, LEAF, LITERAL, OPERATION, Graph, Node
from .order import Content, class_order
from .region import Region

_DECLS: dict[str, OpDecl] = {}

# Interned argument codes. They only ever meet equality, so their order of creation does not matter.
_shapes = Interned[TileType | None]()
_SCALAR = _shapes.code(None, None)  # 0, as terms of scalars have it


def _shape_code(t: Type) -> int:
    """Return the interned number of a type's shape, valid shape, memory space and layout; 0 for scalars."""
    if isinstance(t, ScalarType):
        return _SCALAR
    assert isinstance(t, TileType)
    return _shapes.code((t.shape, t.valid, t.memory, t.layout), t)


def shape_code(t: Type) -> int:
    """Return the code of a type's shape, as terms have it."""
    return _shape_code(t)


@lru_cache(maxsize=65536)
def _type_from(dtype: int, shape: int) -> Type:
    """Return the type that dtype and shape codes stand for."""
    t = _shapes[shape]
    if t is None:
        return scalar(CODE_DTYPES[dtype])
    return TileType(t.shape, CODE_DTYPES[dtype], t.valid, t.memory, t.layout)


def type_from(dtype: int, shape: int) -> Type:
    """Return the type that dtype and shape codes stand for."""
    return _type_from(dtype, shape)


def _rest_code(op: Op, decl: OpDecl) -> int:
    lists = tuple(
        tuple(c.value for c in o) if o is not None else None  # type: ignore[union-attr]
        for p, o in zip(decl.operand_params, op.operands)
        if p.kind is Kind.DIMS
    )
    implied = implied_dtype(decl)
    attrs = {k: v for k, v in op.attrs.items() if decl.by_name[k].kind not in _CODED_KINDS and k != implied}
    return rest_code(decl.name, attrs, lists, op.operands)


_CODED_KINDS = frozenset({Kind.MODE, Kind.SATURATION, Kind.COMPARE})


def argument_codes(op: Op) -> tuple[int, ...]:
    """Return the integer arguments of an operation's term (see :func:`tilegg.rules.terms.signature`)."""
    decl = OPS[op.name]
    t = op.result.type
    dtype: DType = t.dtype  # type: ignore[union-attr]
    out = [DTYPE_CODES[dtype.name], _shape_code(t)]
    for name in signature(decl)[2:]:
        out.append(_argument(name, op, decl, dtype))
    return tuple(out)


def _argument(name: str, op: Op, decl: OpDecl, dtype: DType) -> int:
    match name:
        case "source":
            return DTYPE_CODES[op.operands[0].type.dtype.name]  # type: ignore[union-attr]
        case "mode":
            return MODE_CODES[op.attrs.get("mode", decl.defaults["mode"])]
        case "saturation":
            return saturation_code(op.attrs.get("saturation_mode"), dtype)
        case "road":
            return 0
        case "compare":
            return int(op.attrs.get("cmp_type", 0))
        case _:
            return _rest_code(op, decl)


def _literal_codes(c: Const) -> tuple[int, int]:
    return literal_codes(c.value, c.dtype)


def _literal(kind: int, bits: int) -> Const:
    return Const(*literal_value(kind, bits))


@lru_cache(maxsize=1024)
def _plan(decl: OpDecl) -> tuple[str, tuple[int, ...]]:
    return constructor(decl.name), child_params(decl)


def region_text(region: Region) -> tuple[list[str], list[tuple[int, ...]]]:
    """Return the egglog statements that insert a region, and each operation's argument codes.

    Value numbers: leaves first, then the operations in order.
    """
    number = {v.name: f"(val {i})" for i, v in enumerate(region.leaves)}
    out = [f"(union (val {i}) (Inp {i}))" for i in range(len(region.leaves))]
    codes: list[tuple[int, ...]] = []
    for i, op in enumerate(region.ops, len(region.leaves)):
        name, positions = _plan(OPS[op.name])
        args = argument_codes(op)
        codes.append(args)
        children = [_child_text(op.operands[p], number) for p in positions]
        out.append(f"(union (val {i}) ({name} {' '.join([*map(str, args), *children])}))")
        number[op.result.name] = f"(val {i})"
    return out, codes


def _child_text(o: Any, number: dict[str, str]) -> str:
    if isinstance(o, Value):
        return number[o.name]
    if isinstance(o, Const):
        kind, bits = _literal_codes(o)
        return f"(Lit {kind} {bits})"
    return "(Absent)"


def decls_by_constructor() -> dict[str, OpDecl]:
    """Return the declaration of every constructor name."""
    if not _DECLS:
        _DECLS.update({constructor(d.name): d for d in OPS.values() if is_term(d)})
    return _DECLS


Rows = dict[str, list[tuple[int, ...]]]


def class_of_values(rows: Rows) -> dict[int, int]:
    """Return e-class by value number."""
    return {row[0]: row[1] for row in rows.get("val", [])}


def read_graph(region: Region, codes: Sequence[tuple[int, ...]], rows: Rows, why: Rows) -> Graph:
    """Build the graph of a saturated region; class and node order depend on the program alone."""
    of_value = class_of_values(rows)
    raw = _raw_nodes(rows)
    values = range(len(region.leaves) + len(region.ops))
    order = class_order([of_value[i] for i in values], {c: list(map(_split, nodes)) for c, nodes in raw.items()})
    index = {c: i for i, c in enumerate(order)}
    leaves = len(region.leaves)
    op_class = [index[of_value[leaves + i]] for i in range(len(region.ops))]
    leaf_class = [index[of_value[i]] for i in range(leaves)]
    origins = _origins(region, codes, rows)
    reasons = _reasons(why)
    classes: list[list[Node]] = []
    types: list[Type | None] = []
    for c in order:
        nodes = raw[c]
        if len(nodes) > 1:
            nodes = _sorted(nodes, index, origins)
        # What is exact comes first: of equal costs the first is taken, and the audit asks it what the class is.
        made = sorted((_node(name, row, index, region, origins, reasons) for name, row in nodes), key=_is_approx)
        classes.append(made)
        types.append(next((node.type for node in made if node.type is not None), None))
    roots = [op_class[i] for i, op in enumerate(region.ops) if op.result.name in region.roots]
    dying = frozenset(c for c, leaf in zip(leaf_class, region.leaves) if leaf.name in region.dying)
    handed = handed_classes(region, op_class, leaf_class)
    return Graph(classes, types, op_class, leaf_class, list(dict.fromkeys(roots)), dying=dying, handed=handed)  # type: ignore[arg-type]


def handed_classes(region: Region, op_class: Sequence[int], leaf_class: Sequence[int]) -> dict[int, int]:
    """Return the classes of what a loop's body yields, with those of the carried tiles; see :class:`Graph`."""
    if not region.handed:
        return {}
    made = {op.result.name: c for op, c in zip(region.ops, op_class)}
    carried = {leaf.name: c for leaf, c in zip(region.leaves, leaf_class)}
    return {made[name]: carried.get(arg, -1) for name, arg in region.handed}


RawNode = tuple[str, tuple[int, ...]]


def _reasons(why: Rows) -> dict[RawNode, int]:
    """Return the number of the rule that made a term, from the provenance tables."""
    names = [constructor(name) for name in why_codes()]
    return {(names[row[0]], row[1:-1]): row[-1] for table in why.values() for row in table}


def _raw_nodes(rows: Rows) -> dict[int, list[RawNode]]:
    """Group rows by output class."""
    raw: dict[int, list[RawNode]] = {}
    for name in sorted(rows):
        if name != "val":
            for row in rows[name]:
                raw.setdefault(row[-1], []).append((name, row[:-1]))
    return raw


def _is_approx(node: Node) -> bool:
    return node.approx


def _split(node: RawNode) -> tuple[Content, tuple[int, ...]]:
    """Return what a node says besides its children, and their classes."""
    name, row = node
    if name not in decls_by_constructor():
        return (name, *row), ()
    arguments = len(signature(decls_by_constructor()[name]))
    return _content(name, row[:arguments]), row[arguments:]


@lru_cache(maxsize=16384)
def _content(name: str, args: tuple[int, ...]) -> Content:
    """Return a term's name and arguments, with what the interned numbers among them stand for."""
    named = signature(decls_by_constructor()[name])
    said: list[Any] = list(args)
    t = _shapes[args[1]]
    said[1] = "" if t is None else repr((t.shape, t.valid, t.memory, t.layout))
    if "rest" in named:
        at = named.index("rest")
        said[at] = rest_text(args[at])
    return (name, *said)


def _sorted(nodes: list[RawNode], index: dict[int, int], origins: dict[RawNode, int]) -> list[RawNode]:
    """Order the nodes of a class by operation, those that the program wrote first, then by what they say."""

    def key(node: RawNode) -> tuple[Any, ...]:
        content, children = _split(node)
        return node[0], origins.get(node, len(origins)), content, [index[c] for c in children]

    return sorted(nodes, key=key)


def _origins(region: Region, codes: Sequence[tuple[int, ...]], rows: Rows) -> dict[RawNode, int]:
    """Return which written operation each canonical row stands for (the first one, if several merged)."""
    of_value = class_of_values(rows)
    number = {v.name: i for i, v in enumerate(region.leaves)}
    number.update({op.result.name: len(region.leaves) + i for i, op in enumerate(region.ops)})
    literals = {row[:2]: row[2] for row in rows.get("Lit", [])}
    absent = rows["Absent"][0][0] if "Absent" in rows else -1

    def class_of(o: Any) -> int:
        if isinstance(o, Value):
            return of_value[number[o.name]]
        return literals[_literal_codes(o)] if isinstance(o, Const) else absent

    found: dict[RawNode, int] = {}
    for i, (op, args) in enumerate(zip(region.ops, codes)):
        name, positions = _plan(OPS[op.name])
        found.setdefault((name, (*args, *(class_of(op.operands[p]) for p in positions))), i)
    return found


def _node(
    name: str,
    row: tuple[int, ...],
    index: dict[int, int],
    region: Region,
    origins: dict[RawNode, int],
    reasons: dict[RawNode, int],
) -> Node:
    if name == "Inp":
        leaf = region.leaves[row[0]]
        return Node(LEAF, type=leaf.type, value=leaf, key=row)
    if name == "Lit":
        return literal_node(*row)
    if name == "Absent":
        return Node(ABSENT)
    decl = decls_by_constructor()[name]
    arguments = len(signature(decl))
    rule = reasons.get((name, row), 0)
    children = tuple(index[c] for c in row[arguments:])
    return operation_node(decl, row[:arguments], children, rule, origins.get((name, row), -1))


def operation_node(
    decl: OpDecl, args: tuple[int, ...], children: tuple[int, ...], rule: int = 0, origin: int = -1
) -> Node:
    """Return the node of an operation by its term's argument codes."""
    attrs, operands = _attributes(decl, args)
    approx = bool(args[5]) if decl.name == "tile.cast" else False
    t = _type_from(args[0], args[1])
    return Node(OPERATION, decl, t, dict(attrs), operands, children, rule, origin, approx, key=args)


def literal_node(kind: int, bits: int) -> Node:
    """Return the node of a literal by its term's argument codes."""
    constant = _literal(kind, bits)
    return Node(LITERAL, type=constant.type, value=constant)


@lru_cache(maxsize=8192)
def _attributes(decl: OpDecl, args: tuple[int, ...]) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return an operation's attributes (deviations from the defaults only) and its literal list operands."""
    attrs: dict[str, Any] = {}
    operands: tuple[Any, ...] = ()
    for name, code in zip(signature(decl)[2:], args[2:]):
        match name:
            case "mode":
                if CODE_MODES[code] != decl.defaults["mode"]:
                    attrs["mode"] = CODE_MODES[code]
            case "saturation":
                if code != saturation_code(None, CODE_DTYPES[args[0]]):
                    attrs["saturation_mode"] = CODE_SATURATIONS[code]
            case "compare":
                if code:
                    attrs["cmp_type"] = code
            case "rest":
                extra, operands = rest_of(code)
                attrs.update(extra)
    named = implied_dtype(decl)
    if named is not None:
        attrs[named] = CODE_DTYPES[args[0]]
    return attrs, operands
