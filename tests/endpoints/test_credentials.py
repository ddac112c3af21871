import asyncio
import time
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from redrive.endpoints import http
from redrive.endpoints.authorization import Challenge, Digest, read_challenges
from redrive.endpoints.http import HttpEndpoint, HttpPolicy
from redrive.model.attempt import AttemptResult, Reason
from redrive.server.tls import local_authority, server_context
from tests.contracts.endpoints.kinds import http_endpoint, http_push
from tests.contracts.endpoints.webhook import OK, Received, Webhook, answer, webhook

_NOW = time.time_ns() // 1_000_000  # OpenSSL compares with the real time
_BASIC = answer("401 Unauthorized", b"who?", 'WWW-Authenticate: Basic realm="hooks"')
_DIGEST = answer("401 Unauthorized", b"", 'WWW-Authenticate: Digest realm="hooks", nonce="n1", qop="auth"')


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[tuple[HttpEndpoint, Webhook]]:
    """An https webhook, and an endpoint that trusts it."""
    kept = local_authority(tmp_path, [], _NOW)
    endpoint = http_endpoint(HttpPolicy(ca_file=kept.authority_file))
    async with webhook(server_context(kept.server_file, kept.server_file)) as hook:
        yield endpoint, hook
        await endpoint.close()


@pytest.fixture
async def plain() -> AsyncIterator[tuple[HttpEndpoint, Webhook]]:
    endpoint = http_endpoint()
    async with webhook() as hook:
        yield endpoint, hook
        await endpoint.close()


def _with_password(hook: Webhook) -> str:
    return hook.url().replace("://", "://ann:s%20cret@")


def _authorizations(hook: Webhook) -> list[str | None]:
    return [request.headers.get("authorization") for request in hook.received]


async def test_a_password_is_sent_after_the_endpoint_asked_for_it(
    plain: tuple[HttpEndpoint, Webhook],
) -> None:
    endpoint, hook = plain
    hook.say(_BASIC, OK)
    assert (await endpoint.push(http_push(_with_password(hook)))).delivered
    first, second = _authorizations(hook)
    assert first is None
    assert second is not None
    assert b64decode(second.removeprefix("Basic ")) == b"ann:s cret"
    assert [request.body for request in hook.received] == [b"hello", b"hello"]


async def test_an_endpoint_that_asked_for_a_password_gets_it_at_once_from_then_on(
    plain: tuple[HttpEndpoint, Webhook],
) -> None:
    endpoint, hook = plain
    hook.say(_BASIC, OK)
    for _ in range(3):
        assert (await endpoint.push(http_push(_with_password(hook)))).delivered
    assert [given is not None for given in _authorizations(hook)] == [False, True, True, True]


async def test_an_endpoint_that_does_not_ask_gets_no_password(plain: tuple[HttpEndpoint, Webhook]) -> None:
    endpoint, hook = plain
    for _ in range(2):
        await endpoint.push(http_push(_with_password(hook)))
    assert _authorizations(hook) == [None, None]


async def test_without_a_password_a_challenge_is_a_refusal(plain: tuple[HttpEndpoint, Webhook]) -> None:
    endpoint, hook = plain
    hook.say(_BASIC)
    attempt = await endpoint.push(http_push(hook.url()))
    assert (attempt.result, attempt.reason, attempt.status) == (
        AttemptResult.REFUSED,
        Reason.CLIENT_ERROR,
        401,
    )
    assert len(hook.received) == 1


async def test_a_wrong_password_is_a_refusal_and_is_not_remembered(
    plain: tuple[HttpEndpoint, Webhook],
) -> None:
    endpoint, hook = plain
    hook.say(_BASIC)
    for _ in range(2):
        attempt = await endpoint.push(http_push(_with_password(hook)))
        assert (attempt.result, attempt.status, attempt.response) == (AttemptResult.REFUSED, 401, "who?")
    assert [given is not None for given in _authorizations(hook)] == [False, True, False, True]


async def test_a_password_is_remembered_for_its_own_url(plain: tuple[HttpEndpoint, Webhook]) -> None:
    endpoint, hook = plain
    hook.say(_BASIC, OK)
    await endpoint.push(http_push(_with_password(hook)))
    await endpoint.push(http_push(hook.url()))
    assert _authorizations(hook)[-1] is None


async def test_only_so_many_are_remembered(
    plain: tuple[HttpEndpoint, Webhook], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_AUTHORIZERS_MAX", 1)
    endpoint, hook = plain
    hook.say(_BASIC, OK, _BASIC, OK, OK, OK)
    for path in ("/one", "/two", "/two", "/one"):
        url = _with_password(hook).replace("/hook", path)
        assert (await endpoint.push(http_push(url))).delivered
    assert [given is not None for given in _authorizations(hook)] == [False, True, False, True, True, False]


async def test_an_answer_other_than_401_is_what_counts_in_the_end(
    plain: tuple[HttpEndpoint, Webhook],
) -> None:
    endpoint, hook = plain
    hook.say(_BASIC, answer("503 Busy"))
    assert (await endpoint.push(http_push(_with_password(hook)))).reason is Reason.SERVER_ERROR


async def test_a_digest_over_https(secure: tuple[HttpEndpoint, Webhook]) -> None:
    endpoint, hook = secure
    hook.script = _checking_digests
    for _ in range(3):
        assert (await endpoint.push(http_push(_with_password(hook)))).delivered
    assert len(hook.received) == 4


async def test_a_digest_whose_nonce_is_stale_is_made_anew(secure: tuple[HttpEndpoint, Webhook]) -> None:
    endpoint, hook = secure
    again = _DIGEST.replace(b'nonce="n1"', b'nonce="n2"')
    hook.say(_DIGEST, OK, again, OK)
    for _ in range(2):
        assert (await endpoint.push(http_push(_with_password(hook)))).delivered
    nonces = [_challenge(given).parameters["nonce"] for given in _authorizations(hook) if given]
    assert nonces == ["n1", "n1", "n2"]


async def test_a_digest_is_not_answered_over_http(plain: tuple[HttpEndpoint, Webhook]) -> None:
    endpoint, hook = plain
    hook.say(_DIGEST)
    assert (await endpoint.push(http_push(_with_password(hook)))).status == 401
    assert _authorizations(hook) == [None]


async def _checking_digests(request: Received, writer: asyncio.StreamWriter) -> None:
    """A webhook that lets in who knows ann's password, once for each count."""
    given = request.headers.get("authorization")
    writer.write(OK if given and _is_right(_challenge(given)) else _DIGEST)
    await writer.drain()


def _challenge(header: str) -> Challenge:
    (challenge,) = read_challenges([header])
    return challenge


def _is_right(given: Challenge) -> bool:
    said = given.parameters
    expected = Digest("ann", "s cret", "hooks", "n1", None, "MD5", counts=True, rng=None)  # type: ignore[arg-type]  # makes no nonce here
    return said["response"] == expected.response("POST", said["uri"], said["nc"], said["cnonce"])
