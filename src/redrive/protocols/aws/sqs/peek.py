"""`GET /_aws/sqs/messages`: look into a queue without touching it, with the parameters and answers of LocalStack's.

It shows what could be received now; `ShowInvisible=true` adds messages in flight, `ShowDelayed=true` those that
wait. No receive count and no visibility changes.
"""

from urllib.parse import parse_qs

from redrive.engine.engine import Engine
from redrive.model.delivery import Delivery
from redrive.model.message import id_text
from redrive.protocols.aws.authentication import Authentication
from redrive.protocols.aws.call import Call, Presenters
from redrive.protocols.aws.sqs.access import queue_at
from redrive.protocols.aws.sqs.receiving import ATTRIBUTES, Showing
from redrive.protocols.aws.wire.codec import Codec
from redrive.protocols.aws.wire.errors import AwsError
from redrive.protocols.aws.wire.form import Form
from redrive.protocols.aws.wire.query import QueryAsJsonCodec, QueryCodec
from redrive.protocols.aws.wire.service import Service
from redrive.protocols.http import Request, Response

PATH = "/_aws/sqs/messages"
PAGE = 1000  # deliveries read at a time
_NO_HANDLE = "SQS/BACKDOOR/ACCESS"  # what LocalStack shows in a handle's place
SHOWN_MAX = 10_000  # what one answer may hold


class Peek:
    """Shows what is in a queue."""

    def __init__(self, engine: Engine, authentication: Authentication, presenters: Presenters) -> None:
        """Look through this engine, for callers who may receive."""
        self._engine = engine
        self._authentication = authentication
        self._showing = Showing(engine, presenters)

    async def answer(self, request: Request) -> Response:
        """Answer one request; the caller needs the permission to receive."""
        request_id = id_text(self._engine.runtime.message_id())
        service = Service.load("sqs")
        codec = _codec(request)
        try:
            messages = await self._messages(request, request_id)
        except AwsError as error:
            return codec.render_error(service, error, request_id)
        return codec.render(service.operation("ReceiveMessage"), {"Messages": messages}, request_id)

    async def _messages(self, request: Request, request_id: str) -> list[dict[str, object]]:
        now = self._engine.clock.now()
        asked = {name: values[-1] for name, values in parse_qs(request.query).items()}
        caller = await self._authentication.caller(request, "sqs")
        call = Call(request, caller.principal, asked.get("Region", caller.region), now, request_id, "")
        url = asked.get("QueueUrl") or _url_in_path(request.path, call)
        queue = await queue_at(call, self._engine.queues, url, "ReceiveMessage")
        shown: list[dict[str, object]] = []
        after = 0
        while len(shown) < SHOWN_MAX:
            page = await self._engine.store.peek(queue.id, PAGE, after)
            shown += [
                await self._showing.shown(queue, delivery, ATTRIBUTES, ("All",), _NO_HANDLE)
                for delivery in page
                if _visible(delivery, now, asked)
            ]
            if len(page) < PAGE:
                break
            after = page[-1].seq
        return shown


def _visible(delivery: Delivery, now: int, asked: dict[str, str]) -> bool:
    if delivery.available_at <= now:
        return True
    wanted = "ShowDelayed" if delivery.token is None else "ShowInvisible"
    return asked.get(wanted, "").lower() in ("true", "1")


def _url_in_path(path: str, call: Call) -> str:
    """`/_aws/sqs/messages/<region>/<account>/<name>`: the other way to name a queue."""
    region, _, rest = path.removeprefix(PATH).strip("/").partition("/")
    if region:
        call.region = region
    return f"/{rest}"


def _codec(request: Request) -> Codec:
    form = Form({}, well_formed=True)
    return QueryAsJsonCodec(form) if "json" in request.headers.get("accept", "") else QueryCodec(form)
