"""Listeners: who is told which facts.

A listener hears the facts of everybody, or of the dialects it is registered for alone: what Event Grid counts has no
business with a publication through SNS. A fact that nobody listens to is an empty call.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from redrive.engine.ports.facts import Listener

_FACTS: Final = tuple(name for name, member in vars(Listener).items() if callable(member))


class Audience(Listener):
    """Several listeners as one: for each fact, those that override its method."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        for fact in _FACTS:
            hearing = [getattr(listener, fact) for listener in listeners if _hears(listener, fact)]
            if hearing:
                setattr(self, fact, hearing[0] if len(hearing) == 1 else _each(hearing))


class Listeners:
    """All listeners, by the facts that they listen to.

    Attributes:
        queues: Listeners to what happens in queues, which is not a dialect's.
    """

    def __init__(self, everywhere: Sequence[Listener] = ()) -> None:
        self._everywhere = list(everywhere)
        self._named: dict[str, list[Listener]] = {}
        self._audiences: dict[str, Audience] = {}
        self.queues = Audience(self._everywhere)

    def add(self, listener: Listener, *names: str) -> None:
        """Tell this one too: of these dialects' topics and profiles' attempts; without names, of everything."""
        if not names:
            self._everywhere.append(listener)
            self.queues = Audience(self._everywhere)
        for name in names:
            self._named.setdefault(name, []).append(listener)
        self._audiences.clear()

    def remove(self, listener: Listener) -> None:
        """Tell this one no more, which was told of everything."""
        self._everywhere.remove(listener)
        self.queues = Audience(self._everywhere)
        self._audiences.clear()

    def of(self, name: str) -> Audience:
        """The listeners to a topic's facts, by its dialect, or to an attempt's, by its profile's name."""
        audience = self._audiences.get(name)
        if audience is None:
            audience = Audience([*self._everywhere, *self._named.get(name, ())])
            self._audiences[name] = audience
        return audience


def _hears(listener: Listener, fact: str) -> bool:
    return getattr(type(listener), fact) is not getattr(Listener, fact)


def _each(hearing: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def tell(*fact: Any) -> None:
        for hear in hearing:
            hear(*fact)

    return tell
