import asyncio
import socket
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redrive.model.attempt import AttemptResult, Reason
from tests.contracts.endpoints.kinds import IMPATIENCE_MS, Place, closed_port


async def test_a_pushed_text_arrives_unchanged(place: Place) -> None:
    text = 'Grüße 🚗\n\n.\n.dot at the beginning\n{"json": "with \\"quotes\\""}\n' + "long " * 1000
    attempt = await place.endpoint.push(place.push_request(text))
    assert (attempt.result, attempt.reason) == (AttemptResult.DELIVERED, Reason.ACCEPTED)
    assert place.received() == [text]


async def test_a_message_arrives_once_for_each_push(place: Place) -> None:
    push_request = place.push_request("again")
    for _ in range(3):
        assert (await place.endpoint.push(push_request)).delivered
    assert place.received() == ["again"] * 3


async def test_many_at_once_are_not_mixed_up(place: Place) -> None:
    texts = [f"number {number}" for number in range(50)]
    attempts = await asyncio.gather(*(place.endpoint.push(place.push_request(text)) for text in texts))
    assert all(attempt.delivered for attempt in attempts)
    assert sorted(place.received()) == sorted(texts)


async def test_a_hanging_push_does_not_delay_other_pushes(place: Place) -> None:
    place.hang_on("hang")
    async with asyncio.TaskGroup() as group:
        hanging = group.create_task(place.endpoint.push(place.push_request("hang")))
        attempts = [await place.endpoint.push(place.push_request(f"number {number}")) for number in range(20)]
        assert not hanging.done()
        assert all(attempt.delivered for attempt in attempts)
        hanging.cancel()


async def test_a_cancelled_push_leaves_the_endpoint_as_it_was(place: Place) -> None:
    place.hang_on("hang")
    pushing = asyncio.create_task(place.endpoint.push(place.push_request("hang")))
    await asyncio.sleep(0)
    pushing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pushing
    assert (await place.endpoint.push(place.push_request())).delivered


async def test_no_answer_in_time(place: Place) -> None:
    place.hang_on("hang")
    attempt = await place.endpoint.push(place.push_request("hang", IMPATIENCE_MS))
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.FAILED, Reason.TIMED_OUT, 0)


async def test_closed_before_an_answer(place: Place) -> None:
    place.close_early()
    attempt = await place.endpoint.push(place.push_request())
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.FAILED, Reason.CONNECTION, 0)


async def test_a_refused_connection_is_a_failure_to_retry(place: Place) -> None:
    endpoint, push_request = place.elsewhere("127.0.0.1", closed_port())
    attempt = await endpoint.push(push_request)
    await endpoint.close()
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.CONNECTION)


async def test_an_unknown_host_name_is_a_failure_to_retry(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    endpoint, push_request = place.elsewhere("nowhere.invalid", 80)
    # Some kinds ask the system by other ways; where its name servers are dead, that takes it 10 s.
    attempt = await endpoint.push(replace(push_request, timeout_ms=30_000))
    await endpoint.close()
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.NAME_NOT_RESOLVED)


async def test_refused_for_good(place: Place) -> None:
    place.refuse()
    attempt = await place.endpoint.push(place.push_request())
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
    assert "never" in attempt.response
    assert attempt.status > 0


async def test_in_trouble_for_now(place: Place) -> None:
    place.fail()
    attempt = await place.endpoint.push(place.push_request())
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.SERVER_ERROR)
    assert "in trouble" in attempt.response


async def test_a_long_response_is_shortened(place: Place) -> None:
    place.fail("word " * 2000)
    assert len((await place.endpoint.push(place.push_request())).response) <= 1024


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\r")))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_text_arrives(place: Place, text: str) -> None:
    assert (await place.endpoint.push(place.push_request(f"{text}."))).delivered
    assert place.received()[-1] == f"{text}."
