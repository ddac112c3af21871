"""Push services behind a PushEndpoint, as places (see `kinds.Place`)."""

import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from redrive.endpoints.push.endpoint import PushEndpoint
from redrive.engine.ports import Endpoint, PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.contracts.endpoints.kinds import PATIENCE_MS, Place
from tests.services.push_services import (
    KEY_ID,
    TEAM,
    Apple,
    Pushed,
    Saying,
    Service,
    Web,
    fcm_error,
    pem,
    service_account,
    signing_key,
)

DEAD = (AttemptResult.REFUSED, Reason.MISSING)
DENIED = (AttemptResult.FAILED, Reason.DENIED)
WRONG = (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
LARGE = (AttemptResult.REFUSED, Reason.TOO_LARGE)
SLOWER = (AttemptResult.FAILED, Reason.THROTTLED)
TROUBLE = (AttemptResult.FAILED, Reason.SERVER_ERROR)


def verdict(attempt: Attempt) -> tuple[AttemptResult, Reason]:
    return attempt.result, attempt.reason


def real_now() -> int:
    """Whoever checks a token goes by the real time."""
    return time.time_ns() // 1_000_000


def push_endpoint(urls: Mapping[str, str], ca_file: Path | None = None) -> PushEndpoint:
    return PushEndpoint(real_now, random.Random(7), urls, ca_file)


def apple_push(
    body: Any = None, token: str = "d1", timeout_ms: int = PATIENCE_MS, **headers: str
) -> PushRequest:
    given = {
        "service": "apns",
        "principal": KEY_ID,
        "credential": pem(signing_key()),
        "team": TEAM,
        "apns-topic": "com.example.rentals",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    text = orjson.dumps({"aps": {"alert": "hello"}} if body is None else body)
    return PushRequest(token, text, "application/json", given, timeout_ms)


def google_push(
    body: Any = None, token: str = "d1", timeout_ms: int = PATIENCE_MS, credential: str = ""
) -> PushRequest:
    given = {"service": "fcm", "credential": credential or service_account()}
    text = orjson.dumps({"message": {"token": token, "data": {}}} if body is None else body)
    return PushRequest(token, text, "application/json", given, timeout_ms)


def amazon_push(
    body: Any = None, token: str = "d1", timeout_ms: int = PATIENCE_MS, secret: str = "secret"
) -> PushRequest:
    given = {"service": "adm", "principal": "id", "credential": secret}
    text = orjson.dumps({"data": {"default": "hello"}} if body is None else body)
    return PushRequest(token, text, "application/json", given, timeout_ms)


class PushPlace:
    """A push service behind a PushEndpoint."""

    def __init__(self, endpoint: Endpoint, service: Service) -> None:
        self.endpoint = endpoint
        self._service = service
        self._received: list[str] = []

    def push_request(self, text: str = "hello", timeout_ms: int = PATIENCE_MS) -> PushRequest:
        if isinstance(self._service, Apple):
            return apple_push({"aps": {"alert": text}}, timeout_ms=timeout_ms)
        return google_push({"message": {"token": "d1", "data": {"text": text}}}, timeout_ms=timeout_ms)

    def received(self) -> list[str]:
        while not self._service.is_idle:
            self._received.append(_text(self._service.next()))
        return self._received

    def refuse(self) -> None:
        if isinstance(self._service, Apple):
            self._service.say(400, {"reason": "never"})
        else:
            self._service.say(400, fcm_error(400, "never", "INVALID_ARGUMENT"))

    def fail(self, says: str = "in trouble") -> None:
        self._service.say(503, {"reason": says})

    def hang_on(self, text: str) -> None:
        self._service.script = lambda pushed: None if _text(pushed) == text else Saying()

    def close_early(self) -> None:
        self._service.say(0)

    def elsewhere(self, host: str, port: int) -> tuple[Endpoint, PushRequest]:
        url = f"http://{host}:{port}"
        return push_endpoint({"apns": url, "google_oauth": url, "fcm": url}), self.push_request()


def _text(pushed: Pushed) -> str:
    document = pushed.document
    text: str = document["aps"]["alert"] if "aps" in document else document["message"]["data"]["text"]
    return text


@asynccontextmanager
async def apple_place() -> AsyncIterator[Place]:
    with Apple().serving() as apple:
        endpoint = push_endpoint({"apns": apple.url})
        yield PushPlace(endpoint, apple)
        await endpoint.close()


@asynccontextmanager
async def google_place() -> AsyncIterator[Place]:
    with Web().serving() as web:
        endpoint = push_endpoint(web.urls)
        yield PushPlace(endpoint, web)
        await endpoint.close()


@asynccontextmanager
async def pushing(*services: Apple | Web, ca_file: Path | None = None) -> AsyncIterator[PushEndpoint]:
    urls: dict[str, str] = {}
    for service in services:
        urls |= {"apns": service.url} if isinstance(service, Apple) else service.urls
    endpoint = push_endpoint(urls, ca_file)
    try:
        yield endpoint
    finally:
        await endpoint.close()
