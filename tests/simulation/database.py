"""The one store of all nodes: it carries out one call after another, and the books are kept beside it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from redrive.engine.ports import Store
from redrive.model.errors import RedriveError
from tests.simulation.books import Books
from tests.simulation.documents import are_configuration, read_configuration
from tests.simulation.news import News, entered_by
from tests.simulation.rules import Rule, require
from tests.simulation.trace import Trace

PEEK_MAX = 10_000  # more than any queue here holds


@dataclass(frozen=True)
class Call:
    """A verb of the store on its way; `answered` gets what it returned, or the refusal it raised."""

    node: str
    verb: str
    args: tuple[Any, ...]
    named: dict[str, Any]
    answered: Callable[[object], None]


class Database:
    """A store that several nodes reach."""

    def __init__(self, store: Store, books: Books, news: News, trace: Trace) -> None:
        self.store = store
        self._books = books
        self._news = news
        self._trace = trace
        self._inbox: asyncio.Queue[Call] = asyncio.Queue()

    def take(self, call: Call) -> None:
        """A call has arrived."""
        self._inbox.put_nowait(call)

    async def ask(self, verb: str, *args: Any) -> Any:
        """Call the store from where nothing goes wrong; nothing else happens between its answer and who asked."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.take(Call("cluster", verb, args, {}, answer.set_result))
        return await answer

    async def serve(self) -> None:
        """Carry out calls in the order of their arrival."""
        while True:
            call = await self._inbox.get()
            call.answered(await self._carry_out(call))

    async def _carry_out(self, call: Call) -> object:
        verb: Callable[..., Awaitable[object]] = getattr(self.store, call.verb)
        try:
            answer = await verb(*call.args, **call.named)
        except RedriveError as refusal:
            self._trace.call(call.node, call.verb, call.args, refusal)
            await self._check_configuration(call)
            return refusal
        self._trace.call(call.node, call.verb, call.args, answer)
        await self._check_configuration(call)
        disturbed = _disturbed(call.verb, call.args, answer)
        after = {queue_id: await self.store.peek(queue_id, PEEK_MAX) for queue_id in disturbed}
        self._books.enter(call.verb, call.args, answer, after)
        self._news.tell_change(call.node, call.verb, call.args)
        return answer

    async def _check_configuration(self, call: Call) -> None:
        """Check that no part of a write stands alone, whether the write was carried out or refused."""
        if call.verb == "write" and are_configuration(call.args[0]):
            half = (await read_configuration(self.store.find)).half_written()
            require(not half, Rule.WHOLE, *half)


def _disturbed(verb: str, args: tuple[Any, ...], answer: Any) -> list[int]:
    """The queues that have to be looked into to know what a call did."""
    match verb:
        case "claim" if answer.dead_lettered or answer.expired:
            target = args[0].dead_letters_to
            return [args[0].queue_id, *([] if target is None else [target.queue_id])]
        case "move" if answer.total:
            return [args[0].queue_id, *answer.per_queue]
        case "purge" if answer:
            return [args[0]]
        case "sweep" if answer.deliveries:
            return [args[0]]
        case "settle":
            return sorted(entered_by(args[1]))
        case "write":
            return sorted({new_delivery.queue_id for new_delivery in args[1]})
        case "publish":
            return sorted(
                {
                    new_delivery.queue_id
                    for publication in args[0]
                    for new_delivery in publication.new_deliveries
                }
            )
    return []
