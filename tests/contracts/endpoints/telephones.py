"""A message centre behind an SmsEndpoint."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from redrive.endpoints.sms.endpoint import SmsEndpoint
from redrive.endpoints.sms.gateway import read_gateway
from redrive.engine.ports import Endpoint, PushRequest
from tests.contracts.endpoints.kinds import NOW, PATIENCE_MS, Place
from tests.services import smsc
from tests.services.smsc import CLOSE, HANG, OK, Smsc, message_centre

QUEUE_RECORD: Final = "+493012345678"


def gateway_url(port: int, *, host: str = "127.0.0.1", scheme: str = "smpp", query: str = "") -> str:
    return f"{scheme}://{smsc.USER}:{quote(smsc.PASSWORD, safe='')}@{host}:{port}{query}"


def sms_endpoint(url: str, ca_file: Path | None = None) -> SmsEndpoint:
    return SmsEndpoint(lambda: NOW, read_gateway(url), ca_file)


def sms_push(
    text: str = "hello", timeout_ms: int = PATIENCE_MS, to: str = QUEUE_RECORD, **headers: str
) -> PushRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return PushRequest(to, text.encode(), "text/plain; charset=UTF-8", named, timeout_ms)


class TelephonePlace:
    """A message centre behind an SmsEndpoint."""

    def __init__(self, endpoint: Endpoint, centre: Smsc) -> None:
        self.endpoint = endpoint
        self._centre = centre

    def push_request(self, text: str = "hello", timeout_ms: int = PATIENCE_MS) -> PushRequest:
        return sms_push(text, timeout_ms)

    def received(self) -> list[str]:
        return self._centre.texts()

    def refuse(self) -> None:
        self._centre.answer = lambda _: (smsc.INVALID_DESTINATION, "never")

    def fail(self, says: str = "in trouble") -> None:
        self._centre.answer = lambda _: (smsc.SYSTEM_ERROR, says)

    def hang_on(self, text: str) -> None:
        def answer(message: Any) -> smsc.Answer:
            return HANG if bytes(message.short_message) == text.encode() else OK

        self._centre.answer = answer

    def close_early(self) -> None:
        self._centre.answer = lambda _: CLOSE

    def elsewhere(self, host: str, port: int) -> tuple[Endpoint, PushRequest]:
        return sms_endpoint(gateway_url(port, host=host)), self.push_request()


@asynccontextmanager
async def telephone_place() -> AsyncIterator[Place]:
    async with message_centre() as centre:
        endpoint = sms_endpoint(gateway_url(centre.port))
        yield TelephonePlace(endpoint, centre)
        await endpoint.close()
