"""A store whose calls can be held up on the way there or back, so that a test can put anything in between."""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from redrive.engine.ports import Change, Put, Remove, Store
from redrive.model.errors import StoreUnavailable


class Held:
    """One call that stands still: `await reached` until it does, then let it go on, or let its answer be lost."""

    def __init__(self) -> None:
        self.reached = asyncio.get_running_loop().create_future()
        self._let_go = asyncio.get_running_loop().create_future()

    def let_go(self) -> None:
        """Go on."""
        self._let_go.set_result(None)

    def lose(self) -> None:
        """Nobody will hear of it."""
        self._let_go.set_exception(StoreUnavailable("lost on the way"))

    async def stand(self) -> None:
        """Wait to be let go."""
        self.reached.set_result(None)
        await self._let_go


class HeldStore:
    """`redrive.engine.ports.Store`: a real one, and everything that a test does to its calls.

    A write may be held as any "write", as a "put" if it puts something, or as a "remove" if it removes something.

    Attributes:
        calls: The verbs called so far.
        away: Whether every call fails, having done nothing.
    """

    def __init__(self, store: Store) -> None:
        self.real = store
        self.calls: list[str] = []
        self.away = False
        self._there: dict[str, Held] = {}
        self._back: dict[str, Held] = {}

    def hold(self, verb: str) -> Held:
        """The next call of a verb stands still before the store does anything."""
        self._there[verb] = held = Held()
        return held

    def hold_answer(self, verb: str) -> Held:
        """The next call of a verb is carried out, and its answer stands still."""
        self._back[verb] = held = Held()
        return held

    def listen(self, arrived: Callable[[int], None], changed: Callable[[str, str], None]) -> None:
        self.arrived = arrived
        self.changed = changed

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        return functools.partial(self._call, verb)

    async def _call(self, verb: str, *args: Any, **named: Any) -> Any:
        self.calls.append(verb)
        if self.away:
            raise StoreUnavailable("away")
        names = [verb, *_parts(args[0])] if verb == "write" else [verb]
        there = [self._there.pop(name) for name in names if name in self._there]
        back = [self._back.pop(name) for name in names if name in self._back]
        for held in there:
            await held.stand()
        answer = await getattr(self.real, verb)(*args, **named)
        for held in back:
            await held.stand()
        return answer


def _parts(changes: Sequence[Change]) -> set[str]:
    names = {Put: "put", Remove: "remove"}
    return {names[type(change)] for change in changes if type(change) in names}
