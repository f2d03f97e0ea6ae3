"""Reading inputs and writing results: ``-`` is stdin or stdout, files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Sequence

from ..ir.diagnostics import Span, TileggError, error
from .console import Console
from .streams import put

#: Largest input that is read.
MAX_BYTES = 64_000_000


def read_text(path: str, console: Console) -> tuple[str, str]:
    """Return the text of an input and the name diagnostics give it.

    Raises TG012 when it is larger than :data:`MAX_BYTES`, TG013 when it cannot be read or is no UTF-8.
    """
    name = "<stdin>" if path == "-" else path
    data = read_bytes(path)
    console.read_files[name] = data
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error("TG013", f"{name} is not UTF-8 text", _place(name, data, problem.start),
                    reason=f"{problem.reason} at byte {problem.start}") from None  # fmt: skip
    console.sources[name] = text
    return text, name


def _place(name: str, data: bytes, offset: int) -> Span:
    line = data.count(b"\n", 0, offset) + 1
    column = offset - data.rfind(b"\n", 0, offset)
    return Span(name, line, column, line, column + 1)


def read_bytes(path: str) -> bytes:
    """Return the bytes of an input; raises TG012 and TG013."""
    if path == "-":
        data = _stdin()
        return _bounded(data, "<stdin>", len(data))
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            return _bounded(b"" if size > MAX_BYTES else file.read(MAX_BYTES + 1), path, size)
    except (OSError, ValueError) as problem:
        raise _unreadable(path, problem) from None


def _stdin() -> bytes:
    if sys.stdin is None:
        raise error("TG013", "cannot read stdin", reason="it is closed", hint="name a file, or pipe the text in")
    buffer = getattr(sys.stdin, "buffer", None)
    try:
        return buffer.read(MAX_BYTES + 1) if buffer else sys.stdin.read().encode("utf-8")
    except UnicodeError:
        raise
    except (OSError, ValueError) as problem:
        raise error("TG013", "cannot read stdin", reason=_why(problem)) from None


def _bounded(data: bytes, name: str, size: int) -> bytes:
    if max(size, len(data)) <= MAX_BYTES:
        return data
    raise error("TG012", f"{name} is larger than {MAX_BYTES} bytes", Span(name, 1, 1, 1, 1))


def _unreadable(path: str, problem: OSError | ValueError) -> TileggError:
    return error("TG013", f"cannot read {path}", Span(path, 1, 1, 1, 1), reason=_why(problem))


def _why(problem: OSError | ValueError) -> str:
    return (getattr(problem, "strerror", None) or str(problem))[:200]


def one_stdin(*paths: str | None) -> None:
    """Raise TG013 when stdin is asked for more than once."""
    if paths.count("-") > 1:
        raise error("TG013", "only one input can be read from stdin")


def write(path: str | None, data: str | bytes) -> None:
    """Write one result; see :func:`write_all`."""
    write_all([(path, data)])


def write_all(results: Sequence[tuple[str | None, str | bytes]]) -> None:
    """Write results, to stdout where the path is ``None`` or ``-``.

    All files are written beside their destinations first and renamed when every one is complete; raises
    TG013 when one cannot be written, and then none has changed.
    """
    staged: list[tuple[str, str]] = []
    try:
        for path, data in results:
            if path is not None and path != "-" and _renames(path):
                staged.append(_stage(path, _bytes(data)))
        for temporary, final in staged:
            _attempt(final, lambda t=temporary, f=final: os.replace(t, f))  # type: ignore[misc]
    finally:
        for temporary, _ in staged:
            if os.path.lexists(temporary):
                os.unlink(temporary)
    for path, data in results:
        if path is None or path == "-":
            put(data)
        elif not _renames(path):
            _attempt(path, lambda p=path, d=data: _into_device(p, _bytes(d)))  # type: ignore[misc]


def _bytes(data: str | bytes) -> bytes:
    return data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")


def _renames(path: str) -> bool:
    """Devices and pipes are written to; everything else is replaced."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _stage(path: str, data: bytes) -> tuple[str, str]:
    """Write a temporary file in the destination's folder and return its path and the destination's."""
    final = os.path.realpath(path) if "\0" not in path else path
    folder, base = os.path.split(final)
    temporary = os.path.join(folder, f".{base[:200]}.{os.getpid()}.tmp")

    def write_it() -> None:
        if os.path.isdir(final):
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        if os.path.exists(final) and not os.access(final, os.W_OK):
            raise PermissionError(errno.EACCES, "Permission denied")
        try:
            with open(temporary, "xb") as file:
                file.write(data)
            if os.path.exists(final):
                os.chmod(temporary, stat.S_IMODE(os.stat(final).st_mode))
        except BaseException:
            if os.path.lexists(temporary):
                os.unlink(temporary)
            raise

    _attempt(path, write_it)
    return temporary, final


def _attempt(path: str, action: Action) -> None:
    try:
        action()
    except (OSError, ValueError) as problem:
        raise error("TG013", f"cannot write {path}", Span(path, 1, 1, 1, 1), reason=_why(problem)) from None


def _into_device(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Action = Callable[[], object]
