"""Small programs for tests, made straight from the IR's dataclasses."""

from tilegg.ir import ops as _ops  # noqa: F401  (declares the operations)
from tilegg.ir.dtypes import FP32, INDEX
from tilegg.ir.op import OPS, Call
from tilegg.ir.program import Block, Const, Function, Op, Param, Return, Value, index
from tilegg.ir.types import TupleType, scalar, tensor


def operand(x):
    """A Python number, list or None as an operand; values stay."""
    if isinstance(x, list | tuple):
        return tuple(operand(i) for i in x)
    if isinstance(x, bool) or not isinstance(x, int | float):
        return x
    return index(x) if isinstance(x, int) else Const(x, FP32)


class Kernel:
    """Collects statements; ``k.add(a, b)`` is ``tile.add`` and ``k("scalar.add", a, b)`` anything else."""

    def __init__(self, **params):
        self.params, self.statements, self.count = [], [], 0
        for name, spec in params.items():
            direction, kind = spec if isinstance(spec, tuple) else ("In", spec)
            value = Value(name, kind)
            self.params.append(Param(value, direction))
            setattr(self, "p_" + name, value)

    def __call__(self, name, *operands, **attrs):
        decl = OPS[name]
        given = [operand(o) for o in operands]
        given += [None] * (len(decl.operand_params) - len(given))
        result = decl.result(Call(decl, tuple(given), attrs, None))
        types = result.items if isinstance(result, TupleType) else (result,)
        values = tuple(self.new(t) for t in types)
        self.statements.append(Op(name, tuple(given), attrs, values))
        return values[0]

    def __getattr__(self, name):
        if "tile." + name in OPS:
            return lambda *operands, **attrs: self("tile." + name, *operands, **attrs)
        raise AttributeError(name)

    def new(self, t=None):
        self.count += 1
        return Value(f"v{self.count}", t or scalar(INDEX))

    def block(self, fill):
        """The statements that ``fill()`` adds, as a block of their own."""
        outer, self.statements = self.statements, []
        fill()
        inner, self.statements = self.statements, outer
        return Block(tuple(inner))

    def put(self, statement):
        self.statements.append(statement)
        return statement.results[0] if getattr(statement, "results", ()) else None

    def returns(self, *values, name="kernel"):
        operands = tuple(operand(v) for v in values)
        types = tuple(v.type for v in operands)
        body = Block((*self.statements, Return(operands)))
        return Function(name, tuple(self.params), types, body)


def elementwise(build, *dtypes, out=None, shape=(4, 16), valid=None):
    """A kernel that loads x, y... of the dtypes, applies ``build(k, *tiles)`` and stores to ``out``."""
    names = "xyzw"[: len(dtypes)]
    params = {n: tensor(shape, d) for n, d in zip(names, dtypes)}
    params["out"] = ("Out", tensor(shape, out or dtypes[0]))
    k = Kernel(**params)
    zeros = [0] * len(shape)
    sizes = [list(shape)] if valid is None else [list(shape), list(valid)]
    tiles = [k.load(getattr(k, "p_" + n), zeros, *sizes) for n in names]
    return k.returns(k.store(build(k, *tiles), zeros, k.p_out))
