"""Tables of classes that are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import RLock
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)


class Classes(Mapping[str, _Class]):
    """Classes by name, each made when it is asked for first; ``more`` makers are looked at where none has the name."""

    def __init__(
        self,
        makers: Mapping[str, Callable[[], _Class]],
        more: Iterable[Mapping[str, Callable[[], _Class]]] = (),
    ) -> None:
        self._makers = dict(makers)
        self._more = iter(more)
        self._made: dict[str, _Class] = {}
        self._loading = RLock()

    def __getitem__(self, name: str) -> _Class:
        known = self._made.get(name)
        if known is None:
            if name not in self:
                raise KeyError(name)
            known = self._made.setdefault(name, self._makers[name]())
        return known

    def __contains__(self, name: object) -> bool:
        if name in self._makers:
            return True
        # One thread at a time: what gives further makers runs on until the next ones are there.
        with self._loading:
            while name not in self._makers:
                makers = next(self._more, None)
                if makers is None:
                    return False
                self._makers.update(makers)
        return True

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._makers)

    def __len__(self) -> int:
        self._load()
        return len(self._makers)

    def _load(self) -> None:
        with self._loading:
            for makers in self._more:
                self._makers.update(makers)
