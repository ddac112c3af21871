"""`/_aws/sqs/messages`: look into a queue without touching it, with the parameters and answers of LocalStack's.

It shows what could be received now; `ShowInvisible=true` adds messages in flight and those their groups hold up,
`ShowDelayed=true` those that wait. No receive count and no visibility changes. The queue stands in `QueueUrl`, in
the path (`/_aws/sqs/messages/<region>/<account>/<name>`), or in a ReceiveMessage call of an SDK whose endpoint
this is.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson
from typing_extensions import override

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.gateway.authentication import Authentication
from redrive.aws.gateway.recognise import recognise
from redrive.aws.kit.call import Call, Presenters
from redrive.aws.sqs.access import QueueAccess, QueueUrls
from redrive.aws.sqs.errors import no_such_queue
from redrive.aws.sqs.receiving import ATTRIBUTES, Showing
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.json.rpc import JsonCodec
from redrive.aws.wire.profiles import profile_of
from redrive.aws.wire.query.input import read_form
from redrive.aws.wire.query.query import QUERY, QueryCodec
from redrive.aws.wire.service import Codec, Service
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.signatures.sigv4 import is_region
from redrive.engine.engine import Engine
from redrive.model.delivery import Delivery, is_sealed
from redrive.model.http import Request, Response
from redrive.model.names import id_text
from redrive.model.queue import Queue

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

PATH = "/_aws/sqs/messages"
PAGE = 1000  # deliveries read at a time
SHOWN_MAX = 10_000  # what one answer may hold
_NO_HANDLE = "SQS/BACKDOOR/ACCESS"  # what LocalStack shows in a handle's place
_OPERATION = "ReceiveMessage"


class Peek:
    """Shows what is in a queue."""

    def __init__(
        self,
        engine: Engine,
        authentication: Authentication,
        presenters: Presenters,
        encryption: Encryption | None = None,
    ) -> None:
        self._encryption = encryption
        self._engine = engine
        self._access = QueueAccess(engine.resources.queues, QueueUrls())
        self._authentication = authentication
        self._showing = Showing(engine, presenters)

    async def answer(self, request: Request) -> Response:
        """Answer one request; the caller needs the permission to receive."""
        request_id = id_text(self._engine.runtime.message_id())
        service = Service.load("sqs")
        codec = _codec(request)
        try:
            messages = await self._list_messages(request, codec, request_id)
        except AwsError as error:
            return codec.render_error(service, error, request_id)
        return codec.render(service.operation(_OPERATION), {"Messages": messages}, request_id)

    async def _list_messages(self, request: Request, codec: Codec, request_id: str) -> list[Structure]:
        """The first messages of a queue that the view includes, read without receiving them."""
        now = self._engine.clock.now()
        caller = await self._authentication.caller(request, "sqs")
        form = read_form(request, profile_of("sqs").fields_max)
        region, url = _queue_asked_for(request, codec)
        region = region or form.get("Region", caller.region)
        if not is_region(region):
            raise no_such_queue()
        call = Call(request, caller.principal, region, now, request_id, "")
        queue = await self._access.at(call, url, _OPERATION)
        view = _View(queue, now, form)
        items: list[Structure] = []
        after = 0
        while len(items) < SHOWN_MAX:
            page = await self._engine.messages.peek(queue, PAGE, after)
            items += [
                await self._as_structure(queue, await self._shown_to(call, delivery), view)
                for delivery in page
                if view.includes(delivery)
            ]
            if len(page) < PAGE:
                break
            after = page[-1].seq
        return items

    async def _shown_to(self, call: Call, delivery: Delivery) -> Delivery:
        """A delivery as the caller may see it: decrypted, or without its body if the caller may not use its key."""
        if self._encryption is None or not is_sealed(delivery):
            return delivery
        return await self._encryption.shown_to(call.principal, call.region, delivery)

    async def _as_structure(self, queue: Queue, delivery: Delivery, view: "_View") -> Structure:
        sources = await self._showing.sources([delivery])
        message = self._showing.to_structure(queue, delivery, ATTRIBUTES, ("All",), _NO_HANDLE, sources)
        message["Attributes"] = {
            "ApproximateFirstReceiveTimestamp": "0",  # unless it was received
            **message["Attributes"],
            "IsVisible": str(not view.is_in_flight(delivery)).lower(),
            "IsDelayed": str(view.is_delayed(delivery)).lower(),
        }
        return message


class _View:
    """The part of a queue that is visible at one moment; deliveries are asked about in order of arrival."""

    def __init__(self, queue: Queue, now: int, form: Mapping[str, str]) -> None:
        self._queue = queue
        self._now = now
        self._shows_invisible = _is_true(form.get("ShowInvisible"))
        self._shows_delayed = _is_true(form.get("ShowDelayed"))
        self._held_up: set[str | None] = set()

    def is_in_flight(self, delivery: Delivery) -> bool:
        return delivery.available_at > self._now and delivery.token is not None

    def is_delayed(self, delivery: Delivery) -> bool:
        return delivery.available_at > self._now and delivery.token is None

    def includes(self, delivery: Delivery) -> bool:
        """True if a delivery is listed. Called in order of arrival: one in flight holds up the rest of its group."""
        if delivery.enqueued_at + self._queue.retention_ms <= self._now:
            return False
        if self.is_delayed(delivery):
            return self._shows_delayed
        if self.is_in_flight(delivery):
            if self._queue.ordered:
                self._held_up.add(delivery.group_id)  # later deliveries of the group wait for it
            return self._shows_invisible
        return self._shows_invisible or delivery.group_id not in self._held_up


def _is_true(text: str | None) -> bool:
    return (text or "").lower() in ("true", "1")


def _queue_asked_for(request: Request, codec: Codec) -> tuple[str, str]:
    """The region, if the path names one, and the queue's URL; raises AwsError if the call names no queue."""
    recognition = recognise(request)
    if recognition is not None and recognition.operation != _OPERATION:
        raise AwsError("InvalidRequest", f"This endpoint only accepts {_OPERATION} calls")
    params = codec.parse(Service.load("sqs").operation(_OPERATION), _without_path(request))
    if url := params.get("QueueUrl"):
        return "", url
    region, _, rest = request.path.removeprefix(PATH).strip("/").partition("/")
    if not rest:
        raise no_such_queue()
    return region, f"/{rest}"


def _without_path(request: Request) -> Request:
    """The request with the path `/`, since a path would be read as a queue's URL."""
    return Request(request.method, "/", request.query, request.headers, request.body)


def _codec(request: Request) -> Codec:
    recognition = recognise(request)
    if recognition is not None and isinstance(recognition.codec, JsonCodec):
        return recognition.codec
    return _DocumentCodec() if "json" in request.headers.get("accept", "") else QUERY


class _DocumentCodec(QueryCodec):
    """The XML answers as JSON: each element is a member, and those of one name are a list."""

    __slots__ = ()

    @override
    def render(self, *arguments: Any) -> Response:
        return _as_document(super().render(*arguments))

    @override
    def render_error(self, *arguments: Any) -> Response:
        return _as_document(super().render_error(*arguments))


def _as_document(answer: Response) -> Response:
    """An answer in XML, written as JSON."""
    from xml.etree.ElementTree import fromstring  # noqa: PLC0415 - for tests that ask for JSON

    root = fromstring(answer.body)  # noqa: S314 - written by this server
    document = {_tag(root): _contents(root)}
    return Response(answer.status, orjson.dumps(document), "application/json", answer.headers)


def _contents(element: "Element") -> object:
    """The text of an element without children, or else the contents of its children by their tags."""
    if not len(element):
        return element.text
    parts: dict[str, list[object]] = {}
    for child in element:
        parts.setdefault(_tag(child), []).append(_contents(child))
    return {tag: values if len(values) > 1 else values[0] for tag, values in parts.items()}


def _tag(element: "Element") -> str:
    return element.tag.rpartition("}")[2]
