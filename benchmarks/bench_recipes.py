"""Errors of the recipes of sine and cosine over all FP32 arguments of their domain, and their cost per target.

    python benchmarks/bench_recipes.py                 # every argument from 2**-13 to 2**17 in magnitude, both signs
    python benchmarks/bench_recipes.py --stride 64     # every 64th
    python benchmarks/bench_recipes.py --cost          # cycles and instructions only
    python benchmarks/bench_recipes.py --fit           # the coefficients of the short polynomials, fitted anew

Below 2**-13 every 4096th argument is taken: there sin(x) is x and cos(x) is 1 up to half an ulp in any of the recipes.
The recipe's pattern is turned into NumPy steps in FP32 (a fused multiply-add by an exact sum in double precision); a
test compares them with the operations' declared meanings. Writes ``benchmarks/results/recipes.json``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tilegg
from figures import figure
from tilegg.ir.dtypes import FP32, INT32
from tilegg.ir.ops._fused_math import sum_to_odd
from tilegg.rules import library as _library  # noqa: F401
from tilegg.rules.facts import BOUNDS
from tilegg.rules.recipes.sincos import CONTRACT, DOCUMENTED
from tilegg.rules.rule import RULES, Pattern, Rule, Term, Var
from tilegg.rules.terms import CODE_DTYPES, CODE_MODES, LITERAL, literal_value

CHUNK = 1 << 13  # larger arrays would be mapped anew from the system at every step
RESULTS = Path(__file__).parent / "results" / "recipes.json"
Arr = Any


# -- a recipe as NumPy steps -----------------------------------------------------------------------------------


def compiled(rule: Rule) -> Callable[[Arr], Arr]:
    """Return a function that computes a recipe of FP32 arithmetic on a float32 array."""
    steps: list[tuple[Callable[..., Arr], tuple[int, ...]]] = []
    place: dict[Pattern, int] = {}

    def visit(p: Pattern) -> int:
        if p in place:
            return place[p]
        if isinstance(p, Var):
            steps.append((lambda: None, ()))
        else:
            operands = tuple(visit(c) for c in p.children if not _is_literal(c))
            steps.append((_kernel(p), operands))
        place[p] = len(steps) - 1
        return place[p]

    result = visit(rule.rhs)
    argument = next(i for p, i in place.items() if isinstance(p, Var))

    def run(x: Arr) -> Arr:
        values: list[Arr] = []
        for i, (kernel, operands) in enumerate(steps):
            values.append(x if i == argument else kernel(*(values[o] for o in operands)))
        return values[result]

    return run


def _is_literal(p: Pattern) -> bool:
    return isinstance(p, Term) and p.op == LITERAL


def _kernel(p: Term) -> Callable[..., Arr]:
    dtype = CODE_DTYPES[int(p.args[0])]  # type: ignore[arg-type]
    name = p.op.removeprefix("tile.")
    numbers = [literal_value(*c.args)[0] for c in p.children if _is_literal(c)]  # type: ignore[union-attr,arg-type]
    scalar = dtype.storage.type(numbers[0]) if numbers else None
    match name:
        case "add" | "sub" | "mul":
            return {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name]
        case "adds" | "muls":
            return lambda a: (np.add if name == "adds" else np.multiply)(a, scalar)
        case "axpy":
            return lambda acc, a: _fused(acc, a, float(numbers[0]))
        case "shls":
            return lambda a: np.left_shift(a, scalar)
        case "xor":
            return np.bitwise_xor
        case "reinterpret_view":
            return lambda a: a.view(dtype.storage)
        case "approx":
            return lambda a: a
        case "cast":
            return _to_float if dtype is FP32 else _to_int(CODE_MODES[int(p.args[3])])  # type: ignore[arg-type]
        case _:
            raise KeyError(p.op)


def _fused(acc: Arr, a: Arr, scalar: float) -> Arr:
    return sum_to_odd(a.astype(np.float64) * scalar, acc.astype(np.float64)).astype(np.float32)


def _to_float(a: Arr) -> Arr:
    return a.astype(np.float32)


def _to_int(mode: str) -> Callable[[Arr], Arr]:
    def nearest_away(a: Arr) -> Arr:
        return np.trunc(a + np.copysign(0.5, a))

    rounding = {"rint": np.rint, "floor": np.floor, "round": nearest_away}[mode]

    def convert(a: Arr) -> Arr:
        exact = np.nan_to_num(rounding(a.astype(np.float64)), posinf=2.0**40, neginf=-(2.0**40))
        return np.clip(exact, -(2**31), 2**31 - 1).astype(INT32.storage)

    return convert


# -- errors ----------------------------------------------------------------------------------------------------


class Worst:
    """The largest error over some arguments."""

    def __init__(self) -> None:
        self.error, self.at, self.ulp, self.ulp_at, self.top, self.count = 0.0, 0.0, 0.0, 0.0, 0.0, 0

    def take(self, x: Arr, got: Arr, want: Arr) -> None:
        """Add a chunk of arguments, results and true values."""
        error = np.abs(got - want)
        i = int(error.argmax())
        if error[i] > self.error:
            self.error, self.at = float(error[i]), float(x[i])
        ulps = error / np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
        i = int(ulps.argmax())
        if ulps[i] > self.ulp:
            self.ulp, self.ulp_at = float(ulps[i]), float(x[i])
        self.top = max(self.top, float(np.abs(got).max()))
        self.count += x.size

    def to_json(self) -> dict[str, Any]:
        """Return the figures."""
        return {"max_abs": self.error, "at": self.at, "max_ulp": self.ulp, "ulp_at": self.ulp_at,
                "largest_result": self.top, "arguments": self.count}  # fmt: skip


def arguments(limit: float, stride: int) -> Iterator[Arr]:
    """Yield FP32 arguments up to a magnitude, in chunks, both signs of each."""
    top = int(np.float32(limit).view(np.uint32))
    middle = int(np.float32(2.0**-13).view(np.uint32))
    for start, stop, step in ((0, min(middle, top), 4096 * max(1, stride // 64)), (middle, top + 1, stride)):
        for low in range(start, stop, CHUNK * step):
            codes = np.arange(low, min(low + CHUNK * step, stop), step, dtype=np.uint32)
            yield codes.view(np.float32)
            yield (codes | np.uint32(1 << 31)).view(np.float32)


def domain(rule: Rule) -> float:
    """Return the largest magnitude a recipe is for."""
    assert rule.bound is not None
    known = [BOUNDS[int(c.args[1])] for c in rule.when if c.relation == "within"]  # type: ignore[arg-type]
    return min([rule.bound.limit, *known])


def measure(of: str, rules: list[Rule], limit: float, stride: int) -> dict[str, dict[str, Any]]:
    """Return the worst errors of recipes of one function: within the accuracy contract, and in all."""
    true = {"tile.sin": np.sin, "tile.cos": np.cos}[of]
    functions = {r.name: compiled(r) for r in rules}
    worst = {r.name: (Worst(), Worst()) for r in rules}
    with np.errstate(all="ignore"):
        for x in arguments(limit, stride):
            want = true(x.astype(np.float64))
            # Magnitudes grow within a chunk.
            inside = int(np.searchsorted(np.abs(x), np.float32(CONTRACT), "right"))
            for name, function in functions.items():
                got = function(x).astype(np.float64)
                worst[name][1].take(x, got, want)
                if inside:
                    worst[name][0].take(x[:inside], got[:inside], want[:inside])
    return {name: {"contract": a.to_json(), "documented": b.to_json()} for name, (a, b) in worst.items()}


# -- cost ------------------------------------------------------------------------------------------------------

KERNEL = """import pypto.language as pl
@pl.program
class P:
    @pl.function
    def f(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        t: pl.Tile[[64, 64], pl.FP32] = pl.tile.load(x, [0, 0], [64, 64])
        y: pl.Tile[[64, 64], pl.FP32] = {what}
        r: pl.Tensor[[64, 64], pl.FP32] = pl.tile.store(y, [0, 0], o)
        return r
"""


def costs(of: str, arch: str) -> dict[str, tuple[float, int]]:
    """Return (cycles, instructions) of each recipe of one function on [64, 64], the load and store left out."""
    from tilegg.extract.dag import solve
    from tilegg.extract.kbest import restrict
    from tilegg.extract.price import pricer_for
    from tilegg.extract.weights import chosen_totals

    ranged = "pl.tile.{}(pl.tile.maximums(pl.tile.minimums(t, 0.75), -0.75))"
    found: dict[str, tuple[float, int]] = {}
    for text in ("pl.tile.{}(t)", ranged):
        program = tilegg.parse(KERNEL.format(what=text.format(of)), "kernel.py")
        lowered = tilegg.lower(program, arch, memo=None)
        (result,) = lowered.functions[0].regions
        pricer = pricer_for(lowered.target, False)
        c = result.graph.op_class[-1]
        clamp = 0.0, 0
        if text is ranged:
            extra = [pricer.written(op) for op in result.region.ops[:2]]
            clamp = sum(p.cycles for p in extra), len(extra)  # type: ignore[union-attr]
        for i, node in enumerate(result.graph.classes[c]):
            small = restrict(result.problem, {c: i}) if node.rule else None
            if small is not None:
                totals = chosen_totals(result.graph, solve(small), pricer)
                name = next(r.name for r in RULES.values() if r.number == node.rule)
                found.setdefault(name, (totals.cycles - clamp[0], totals.instructions - clamp[1]))
    return found


# -- coefficients ----------------------------------------------------------------------------------------------


def fit(function: Callable[[Arr], Arr], degree: int, limit: float, weight: Callable[[Arr], Arr]) -> tuple[Arr, float]:
    """Return c with least maximum of weight * |c0 u**n + ... + c(n-1) u - function(t)|, u = t**2, t up to a limit."""
    count = 4000
    u = limit**2 * (0.5 - 0.5 * np.cos(np.pi * (np.arange(count) + 0.5) / count))
    t = np.sqrt(u)
    powers = np.stack([u**i for i in range(1, degree + 1)], 1)
    scale, share = np.ones(count) * weight(t), np.ones(count)
    for _turn in range(400):
        w = np.sqrt(share) * scale
        c = np.linalg.lstsq(powers * w[:, None], function(t) * w, rcond=None)[0]
        error = np.abs((powers @ c - function(t)) * scale)
        share *= error / error.max() + 1e-12
        share /= share.sum()
    return c[::-1], float(error.max())


def show_fits() -> None:
    """Print the fitted coefficients."""
    for name, function, degree, limit, weight in (
        ("COS", lambda t: np.cos(t) - 1, 5, 1.5725, np.ones_like),
        ("COS_SMALL", lambda t: np.cos(t) - 1, 3, 0.7855, np.ones_like),
        ("SIN_SMALL", lambda t: np.sin(t) / t - 1, 3, 0.7855, lambda t: t),
    ):
        c, error = fit(function, degree, limit, weight)
        print(name, ", ".join(f"{v:.9e}" for v in c), f"error {error:.3g}")


SELECT = """
import pypto.language as pl
@pl.program
class S:
    @pl.function(type=pl.FunctionType.InCore)
    def s(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        a = pl.load(x, [0, 0], [64, 64])
        m = pl.tile.cmps(a, 0.5, cmp_type=4)
        {}
        return pl.store(r, [0, 0], y)
"""
MADE = "t = pl.tile.full([64, 64], dtype=pl.FP32, value=2.0)\n        r = pl.tile.sel(m, t, a)"
_SELECTING = {"tile.full", "tile.expands", "tile.sel", "tile.sels", "tile.mask_not"}


def selection() -> float:
    """Return what selecting a scalar costs on A2/A3, beside a tile made of the scalar and a selection of tiles."""
    from tilegg.extract.price import pricer_for
    from tilegg.rules.target import load_target

    pricer = pricer_for(load_target("a2a3"), False)
    body = tilegg.parse(SELECT.format(MADE)).functions[0].body
    made = sum(pricer.written(op).cycles for op in body.statements if getattr(op, "name", "") in _SELECTING)  # type: ignore
    found = tilegg.lower(tilegg.parse(SELECT.format("r = pl.select(m, 2.0, a)")), "a2a3", memo=None)
    chosen = [i.cycles for f in found.functions for i in f.instructions if i.op.name in _SELECTING]
    return sum(chosen) / made


def _figures() -> None:
    """Print the figures of the README: cycles here, errors as measured over all arguments."""
    for of in ("sin", "cos"):
        for arch in ("a2a3", "a5"):
            found = {n: c for n, c in costs(of, arch).items() if domain(RULES[n]) >= DOCUMENTED}
            ratio = min(cycles for cycles, _ in found.values()) / found[f"{of}.reference"][0]
            figure(f"{of} on {arch}: cycles of the reference recipe", f"{ratio:.2f}", "at most 0.70" * (of == "sin"))
    known = json.loads(RESULTS.read_text())["recipes"]
    for part, limit in (("contract", "2048 π"), ("documented", "2^17")):
        chosen, fixed = (known[n][part] for n in ("sin.fused", "sin.reference"))
        what = f"sin: largest error for arguments up to {limit}, over {chosen['arguments']:,} arguments"
        figure(what, f"{chosen['max_abs']:.3g}", f"the reference recipe's {fixed['max_abs']:.3g}")
    what = "select(mask, scalar, tile) on a2a3: cycles of a tile made of the scalar, and tsel"
    figure(what, f"{selection():.2f}", "at most 0.35")


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--stride", type=int, default=1, help="take every STRIDE-th argument")
    parser.add_argument("--only", default="", help="recipes whose name begins so")
    parser.add_argument("--cost", action="store_true", help="costs only")
    parser.add_argument("--fit", action="store_true", help="fit the short polynomials")
    args = parser.parse_args()
    if args.fit:
        show_fits()
        return
    found: dict[str, Any] = {}
    for of in ("sin", "cos"):
        for arch in ("a5", "a2a3"):
            for name, (cycles, count) in costs(of, arch).items():
                row = found.setdefault(name, {}).setdefault("cost", {})
                row[arch] = {"cycles": round(cycles, 1), "instructions": count}
    if not args.cost:
        _errors(found, args.only, args.stride)
    for name, row in found.items():
        print(name, json.dumps(row))
    _figures()


def _errors(found: dict[str, Any], only: str, stride: int) -> None:
    known = json.loads(RESULTS.read_text())["recipes"] if RESULTS.exists() else {}
    groups: dict[tuple[str, float], list[Rule]] = {}
    for r in RULES.values():
        if r.bound is not None and r.name.startswith(only):
            groups.setdefault((r.lhs.op, domain(r)), []).append(r)
    for (of, limit), rules in groups.items():
        start = time.perf_counter()
        for name, errors in measure(of, rules, limit, stride).items():
            known[name] = {**found.get(name, {}), "stride": stride, **errors}
        print(f"{of} up to {limit:g}: {time.perf_counter() - start:.0f} s", flush=True)
        RESULTS.parent.mkdir(exist_ok=True)
        whole = {"contract": CONTRACT, "documented": DOCUMENTED, "recipes": known}
        RESULTS.write_text(json.dumps(whole, indent=1) + "\n")
    found.update(known)


if __name__ == "__main__":
    main()
