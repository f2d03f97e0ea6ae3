"""Readers of option words; a malformed one is a usage error (exit code 2)."""

from __future__ import annotations

import argparse
import math

#: Largest tile extent that is taken as meant.
_MAX_EXTENT = 1 << 24
#: Largest number of ranks a program is unrolled for.
_MAX_RANKS = 64


def shape(text: str) -> tuple[int, ...]:
    """Read ``RxC``, or ``RxCxP`` with P physical columns, in elements."""
    words = text.lower().replace("×", "x").split("x")
    if len(words) not in (2, 3) or not all(w.isascii() and w.isdigit() and len(w) < 9 for w in words):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no shape; write e.g. 64x128")
    sizes = tuple(map(int, words))
    if not all(0 < size <= _MAX_EXTENT for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r:.40}: extents must lie in 1..{_MAX_EXTENT}")
    if len(sizes) == 3 and sizes[2] < sizes[1]:
        raise argparse.ArgumentTypeError(f"{text!r:.40}: fewer physical than valid columns")
    return sizes


def count(text: str) -> int:
    """Read a positive integer."""
    if not (text.isascii() and text.isdigit() and len(text) < 13 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no positive integer")
    return int(text)


def rank_counts(text: str) -> tuple[int, ...]:
    """Read numbers of ranks: ``2,3,8``."""
    counts = tuple(count(word) for word in text.split(","))
    if max(counts) > _MAX_RANKS:
        raise argparse.ArgumentTypeError(f"{text!r:.40}: at most {_MAX_RANKS} ranks are checked")
    return counts


def natural(text: str) -> int:
    """Read an integer that is not negative."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no integer of zero or more")
    return int(text)


def seconds(text: str) -> float:
    """Read a duration in seconds."""
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no number of seconds")
    return value


def dimension(text: str) -> tuple[str, int]:
    """Read ``NAME=SIZE``."""
    name, size = _assigned(text, "NAME=SIZE")
    return name, natural(size)


def value_range(text: str) -> tuple[str, tuple[float, float] | str]:
    """Read ``NAME=LO:HI`` or ``NAME=finite``."""
    form = "NAME=LO:HI or NAME=finite"
    name, limits = _assigned(text, form)
    if limits == "finite":
        return name, limits
    lo, _, hi = limits.partition(":")
    if not lo or not hi:
        raise _malformed(text, form)
    return name, (_number(lo), _number(hi))


def _assigned(text: str, form: str) -> tuple[str, str]:
    """Return the name and what stands behind ``=``, neither of them empty."""
    name, _, value = text.partition("=")
    if not name.isidentifier() or not value:
        raise _malformed(text, form)
    return name, value


def _malformed(text: str, form: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"{text!r:.40} is no {form}")


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no number")
    return value
