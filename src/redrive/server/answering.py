"""Tasks that answer requests: one after the other, of whatever connections, as a thread of a pool does.

A task for each request costs 0.6 us more than one that is at rest already: most of it for the set of all tasks, which
asyncio keeps in Python.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from redrive.model.http import Response

#: After a thousand long polls that ended together the others are let go: at rest each takes about 1 KiB.
_RESTING_MAX: Final = 256

OnAnswer = Callable[[Response | BaseException], None]


class AnsweringTasks:
    """The tasks of a front; there are as many as requests were under way at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._resting: list[asyncio.Future[tuple[Coroutine[Any, Any, Response], OnAnswer]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def answer(self, reply: Coroutine[Any, Any, Response], on_answer: OnAnswer) -> None:
        """Run a handler's coroutine; `on_answer` is called with what it returns or raises."""
        if self._resting:
            self._resting.pop().set_result((reply, on_answer))
        else:
            task = self._loop.create_task(self._work(reply, on_answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """End the tasks, of which none has anything to do any more."""
        for task in self._tasks:
            task.cancel()

    async def _work(self, reply: Coroutine[Any, Any, Response], on_answer: OnAnswer) -> None:
        while True:
            try:
                response = await reply
            except asyncio.CancelledError as cancelled:
                on_answer(cancelled)
                raise
            except Exception as error:  # noqa: BLE001  whatever it is, the connection logs and answers it
                on_answer(error)
            else:
                on_answer(response)
            if len(self._resting) >= _RESTING_MAX:
                return
            rest: asyncio.Future[tuple[Coroutine[Any, Any, Response], OnAnswer]] = self._loop.create_future()
            self._resting.append(rest)
            reply, on_answer = await rest
