"""Pushes over HTTP that are begun without a task: over a connection that rests, and no other."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from redrive.endpoints.http import HttpEndpoint
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.contracts.endpoints.kinds import http_push
from tests.contracts.endpoints.webhook import OK, Received, Webhook, answer, hang


def _begin(
    endpoint: HttpEndpoint, push_request: PushRequest
) -> tuple[asyncio.Future[Attempt], Callable[[], None]]:
    """Begin a push that is not declined."""
    attempt: asyncio.Future[Attempt] = asyncio.get_running_loop().create_future()
    give_up = endpoint.begin(push_request, attempt.set_result)
    assert give_up is not None
    return attempt, give_up


async def test_a_push_begins_over_a_resting_connection_alone(endpoint: HttpEndpoint, hook: Webhook) -> None:
    push_request = http_push(hook.url())
    assert endpoint.begin(push_request, lambda _: None) is None
    assert hook.received == []
    await endpoint.push(push_request)
    hook.say(answer("503 Service Unavailable", b"later"), OK)
    first, _ = _begin(endpoint, push_request)
    assert endpoint.begin(push_request, lambda _: None) is None  # the connection is in use
    assert (await first).response == "later"
    second, _ = _begin(endpoint, push_request)
    assert await second == await endpoint.push(push_request)
    assert {received.connection for received in hook.received} == {1}
    assert len({received.line + str(received.headers) for received in hook.received}) == 1


async def test_a_url_with_a_password_is_declined(endpoint: HttpEndpoint, hook: Webhook) -> None:
    push_request = http_push(hook.url().replace("//", "//user:secret@"))
    await endpoint.push(push_request)
    assert endpoint.begin(push_request, lambda _: None) is None


async def test_a_connection_that_was_closed_is_repeated_on_another(
    endpoint: HttpEndpoint, hook: Webhook
) -> None:
    push_request = http_push(hook.url())
    await endpoint.push(push_request)

    async def close_first(received: Received, writer: asyncio.StreamWriter) -> None:
        if received.connection == 1:
            writer.close()
        else:
            writer.write(OK)

    hook.script = close_first
    attempt, _ = _begin(endpoint, push_request)
    assert (await attempt).delivered
    assert [received.connection for received in hook.received] == [1, 1, 2]


async def test_a_push_fails_at_its_time_out(endpoint: HttpEndpoint, hook: Webhook) -> None:
    push_request = http_push(hook.url())
    await endpoint.push(push_request)
    hook.script = hang
    attempt, _ = _begin(endpoint, replace(push_request, timeout_ms=100))
    assert (await attempt).reason is Reason.TIMED_OUT
    assert attempt.result().result is AttemptResult.FAILED


async def test_a_push_given_up_has_no_answer(endpoint: HttpEndpoint, hook: Webhook) -> None:
    push_request = http_push(hook.url())
    await endpoint.push(push_request)
    hook.script = hang
    hook.arrived.clear()
    attempt, give_up = _begin(endpoint, push_request)
    await hook.arrived.wait()
    give_up()
    hook.say(OK)
    assert (await endpoint.push(push_request)).delivered  # over another connection
    assert hook.connections == 2
    assert not attempt.done()
