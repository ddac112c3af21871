"""Redrive's own routes, beside those of the services: health, metrics, reset and the simulated clock."""

import asyncio
from collections.abc import Awaitable, Callable

import orjson

from redrive import __version__
from redrive.aws.gateway.authentication import Authentication
from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.model.errors import StoreUnavailable
from redrive.model.http import Request, Response
from redrive.server.exposition import CONTENT_TYPE, Exposition
from redrive.server.guard import Scrapers
from redrive.server.owned import SIGNING_NAME, json_answer, method_of
from redrive.server.siblings import Siblings

PREFIX = "/_redrive/"
# A year and a month: the longest thing kept here is an archive's year.
ADVANCE_SECONDS_MAX = 400 * 24 * 60 * 60

# Routes that only some servers have, and the flag that gives them.
_SWITCHES = {
    ("POST", f"{PREFIX}reset"): "--allow-reset",
    ("POST", f"{PREFIX}faults"): "--allow-reset",
    ("GET", f"{PREFIX}clock"): "--clock simulated",
    ("POST", f"{PREFIX}clock"): "--clock simulated",
}
_HEALTHY_SECONDS = 1.0  # for which a write that succeeded stands for the next ones

# Moves a simulated clock on by so many milliseconds; how many deliveries were attempted on the way.
Advance = Callable[[int], Awaitable[int]]
Reset = Callable[[], Awaitable[None]]
Route = Callable[[Request], Awaitable[Response]]


class Control:
    """Answers the control routes of one engine."""

    def __init__(
        self,
        engine: Engine,
        advance: Advance | None,
        reset: Reset | None,
        authentication: Authentication,
        exposition: Exposition,
        scrapers: Scrapers,
        siblings: Siblings,
    ) -> None:
        """Serve the control routes; `advance` moves a simulated clock, `reset` removes everything. Both are optional."""
        self._engine = engine
        self._authentication = authentication
        self._exposition = exposition
        self._scrapers = scrapers
        self._siblings = siblings
        self._healthy_until = 0.0  # by the loop's clock
        self._routes: dict[tuple[str, str], Route] = {
            ("GET", f"{PREFIX}health"): self._health,
            ("GET", f"{PREFIX}metrics"): self._metrics,
        }
        if reset is not None:
            self._routes["POST", f"{PREFIX}reset"] = self._remove_all(reset)
            self._routes["POST", f"{PREFIX}faults"] = self._set_fault
        if advance is not None:
            self._routes["GET", f"{PREFIX}clock"] = self._clock
            self._routes["POST", f"{PREFIX}clock"] = self._move_clock(advance)

    def handles(self, path: str) -> bool:
        """True if a path is one of the control routes."""
        return path.startswith(PREFIX)

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        method = method_of(request)
        route = self._routes.get((method, request.path))
        if route is None:
            switch = _SWITCHES.get((method, request.path))
            needed = f"; a server that was started with {switch} has it" if switch else ""
            return json_answer(404, {"message": f"no route {request.method} {request.path}{needed}"})
        try:
            if method != "GET":
                await self._authentication.caller(request, SIGNING_NAME)
            return await route(request)
        except AwsError as error:
            return json_answer(error.status, {"message": error.message})
        except StoreUnavailable as error:
            return json_answer(503, {"status": "unavailable", "reason": str(error), "version": __version__})

    async def _health(self, _: Request) -> Response:
        """The health of this node: its store takes writes. With workers, how many of them are ready."""
        await self._check_store()
        answer = {"status": "ok", "version": __version__, "node": self._engine.runtime.node}
        if (workers := await self._siblings.readiness()) is not None:
            return json_answer(200, answer | {"workers": {"ready": workers.ready, "wanted": workers.target}})
        return json_answer(200, answer)

    async def _check_store(self) -> None:
        """Write something, at most once a second: strangers may ask."""
        now = asyncio.get_running_loop().time()
        if now < self._healthy_until:
            return
        await self._engine.check()
        self._healthy_until = now + _HEALTHY_SECONDS

    async def _metrics(self, request: Request) -> Response:
        if (refusal := self._scrapers.refusal(request)) is not None:
            return refusal
        text = await self._siblings.sum_metrics(await self._exposition.text())
        return Response(200, text.encode(), CONTENT_TYPE)

    def _remove_all(self, reset: Reset) -> Route:
        async def remove_all(_: Request) -> Response:
            await reset()
            return json_answer(200, {"status": "ok"})

        return remove_all

    async def _set_fault(self, request: Request) -> Response:
        """`{"endpoint", "status"}`: attempts there end like this; without a status they are made again."""
        fault = _fault(request.body)
        if fault is None:
            return json_answer(400, {"message": 'expected {"endpoint": "…", "status": 400 to 599 or null}'})
        endpoint, status = fault
        if status is None:
            self._engine.operations.clear_fault(endpoint)
        else:
            self._engine.operations.inject_fault(endpoint, status)
        return json_answer(200, {"status": "ok"})

    async def _clock(self, _: Request) -> Response:
        return json_answer(200, {"now": self._engine.clock.now() / 1000})

    def _move_clock(self, advance: Advance) -> Route:
        """The route that moves the clock on; it answers with the attempts made meanwhile."""

        async def move(request: Request) -> Response:
            seconds = _seconds(request.body)
            if seconds is None:
                return json_answer(
                    400, {"message": f'expected {{"advance_seconds": 0 to {ADVANCE_SECONDS_MAX}}}'}
                )
            attempts = await advance(int(seconds * 1000))
            return json_answer(200, {"now": self._engine.clock.now() / 1000, "attempts": attempts})

        return move


def _fault(body: bytes) -> tuple[str, int | None] | None:
    """The endpoint, and the status that it is to answer with (None: as it really does); None: a malformed body."""
    try:
        members = orjson.loads(body)
        endpoint, status = members["endpoint"], members.get("status")
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(endpoint, str) or isinstance(status, bool):
        return None
    if status is not None and not (isinstance(status, int) and 400 <= status <= 599):  # noqa: PLR2004 - HTTP's failures
        return None
    return endpoint, status


def _seconds(body: bytes) -> float | None:
    """The seconds by which a body asks to move the clock; None: it is malformed."""
    try:
        seconds = orjson.loads(body)["advance_seconds"]
    except (ValueError, TypeError, KeyError):
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return seconds if 0 <= seconds <= ADVANCE_SECONDS_MAX else None
