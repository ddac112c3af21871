"""Functions and streams behind a webhook: what it answers is scripted, and each call's signature is proved."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import orjson

from redrive.endpoints.aws.calls import AwsClient, AwsCredentials
from redrive.endpoints.aws.firehose import StreamEndpoint
from redrive.endpoints.aws.function import FunctionEndpoint
from redrive.endpoints.http import HttpEndpoint
from redrive.engine.ports import Endpoint, PushRequest
from redrive.settings import aws_endpoint_of
from tests.contracts.endpoints.kinds import NOW, PATIENCE_MS, Place, http_endpoint
from tests.contracts.endpoints.webhook import Received, Webhook, answer, hang, webhook
from tests.services.aws_calls import USERINFO, AwsCall, put_answer

REGION: Final = "eu-central-1"
FUNCTION: Final = f"arn:aws:lambda:{REGION}:123456789012:function:bill"
STREAM: Final = f"arn:aws:firehose:{REGION}:123456789012:deliverystream/lake"
TAKEN: Final = answer("202 Accepted", b"", "x-amzn-RequestId: 3f1c")


def call_of(received: Received) -> AwsCall:
    return AwsCall(received.line.split()[1], received.headers, received.body)


def refusal(status: str, code: str, message: str = "no") -> bytes:
    """An error as Lambda spells it: by a header."""
    body = orjson.dumps({"Type": "User", "message": message})
    return answer(status, body, f"x-amzn-ErrorType: {code}:http://internal.amazon.com/coral/")


def json_refusal(status: str, code: str, message: str = "no") -> bytes:
    """An error as Firehose spells it: in the body."""
    return answer(status, orjson.dumps({"__type": f"com.amazonaws.firehose#{code}", "message": message}))


def put_taken(call: AwsCall, *failed: int) -> bytes:
    """The answer to a call that puts records, of which some failed."""
    return answer("200 OK", put_answer(len(call.records), *failed), "x-amzn-RequestId: 3f1c")


def client(http: HttpEndpoint, **endpoints: str) -> AwsClient:
    """A client by these settings, `lambda_=URL`."""
    named = {name.rstrip("_"): value for name, value in endpoints.items()}
    return AwsClient(http, lambda arn: aws_endpoint_of(named, arn), AwsCredentials(lambda: NOW))


def with_keys(url: str) -> str:
    return url.replace("://", f"://{USERINFO}")


@dataclass(frozen=True)
class Service:
    """One of the two.

    Attributes:
        arn: Of what it pushes to.
        endpoint: Makes calls by a client.
        texts: What a call brought.
        taken: What answers it.
    """

    arn: str
    endpoint: Callable[[Callable[[], int], AwsClient], Endpoint]
    texts: Callable[[AwsCall], list[str]]
    taken: Callable[[AwsCall], bytes]


FUNCTIONS: Final = Service(FUNCTION, FunctionEndpoint, lambda call: [call.body.decode()], lambda _: TAKEN)
STREAMS: Final = Service(
    STREAM, StreamEndpoint, lambda call: [record.decode() for record in call.records], put_taken
)


class AwsPlace:
    """A scripted server behind its kind of endpoint."""

    def __init__(self, service: Service, http: HttpEndpoint, hook: Webhook) -> None:
        self._service = service
        self._http = http
        self._hook = hook
        self.endpoint = self._at(hook.url(""))
        self._taking()

    def push_request(self, text: str = "hello", timeout_ms: int = PATIENCE_MS) -> PushRequest:
        return PushRequest(self._service.arn, text.encode(), "application/json", {}, timeout_ms)

    def received(self) -> list[str]:
        """The texts that arrived; a test fails for a call that is not signed by the keys of its URL."""
        calls = [call_of(request) for request in self._hook.received]
        for call in calls:
            call.proved()
        return [text for call in calls for text in self._service.texts(call)]

    def refuse(self) -> None:
        self._hook.say(refusal("400 Bad Request", "InvalidParameterValueException", "never"))

    def fail(self, says: str = "in trouble") -> None:
        self._hook.say(refusal("500 Internal Server Error", "ServiceException", says))

    def hang_on(self, text: str) -> None:
        self._taking(hangs_on=text)

    def close_early(self) -> None:
        async def script(_: Received, writer: asyncio.StreamWriter) -> None:
            writer.close()

        self._hook.script = script

    def elsewhere(self, host: str, port: int) -> tuple[Endpoint, PushRequest]:
        return self._at(f"http://{host}:{port}"), self.push_request()

    def _at(self, url: str) -> Endpoint:
        service = self._service
        named = {service.arn.split(":")[2]: with_keys(url)}
        return service.endpoint(lambda: NOW, client(self._http, **named))

    def _taking(self, hangs_on: str | None = None) -> None:
        async def script(request: Received, writer: asyncio.StreamWriter) -> None:
            call = call_of(request)
            if hangs_on in self._service.texts(call):
                await hang(request, writer)
            writer.write(self._service.taken(call))

        self._hook.script = script


@asynccontextmanager
async def aws_place(service: Service) -> AsyncIterator[Place]:
    http = http_endpoint()
    async with webhook() as hook:
        yield AwsPlace(service, http, hook)
        await http.close()
