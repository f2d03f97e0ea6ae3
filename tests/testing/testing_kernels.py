"""Programs for the tests of ``tilegg.testing``."""

from __future__ import annotations

HEAD = "import pypto.language as pl\n\n\n@pl.function(type=pl.FunctionType.InCore)\n"


def kernel(
    src: str, dst: str, *lines: str, shape: tuple[int, int] = (16, 64), extra: str = "", valid: str = ""
) -> str:
    """Return the text of a kernel that loads ``t``, runs the lines, and stores ``r``; ``extra``: more parameters."""
    window = f"[{shape[0]}, {shape[1]}]"
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"{HEAD}def k(x: pl.Tensor[{window}, pl.{src}], {extra}out: pl.Out[pl.Tensor[{window}, pl.{dst}]]):\n"
        f"    t = pl.tile.load(x, [0, 0], {window}{valid})\n{body}"
        "    return pl.tile.store(r, [0, 0], out)\n"
    )


def cast(src: str, *hops: str, **options: object) -> str:
    """Return a kernel of casts, each given as ``DTYPE`` or ``DTYPE mode``."""
    lines = []
    for i, hop in enumerate(hops):
        dtype, _, mode = hop.partition(" ")
        name = "r" if i == len(hops) - 1 else "t"
        lines.append(f"{name} = pl.tile.cast(t, target_type=pl.{dtype}, mode='{mode or 'rint'}')")
    return kernel(src, hops[-1].partition(" ")[0], *lines, **options)  # type: ignore[arg-type]
