"""A dead letter's request: what its endpoint got, without secrets, and as a command that repeats it."""

import shlex
from html import unescape
from typing import Any

from redrive.console.as_delivered import BODY_CHARS_MAX, HttpRequest
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.console.services import Services, arn
from tests.console.test_pages import text
from tests.console.world import ROOM, Visitor, make_world, visiting


class Refusing:
    """An endpoint that refuses whatever is pushed to it."""

    def __init__(self) -> None:
        self.pushed: list[PushRequest] = []

    async def push(self, push_request: PushRequest) -> Attempt:
        """See `Endpoint.push`."""
        self.pushed.append(push_request)
        return Attempt(AttemptResult.REFUSED, Reason.CLIENT_ERROR, 422, "no <currency> in it", 20)

    async def close(self) -> None:
        """There is nothing to let go of."""


async def die(visitor: Visitor, **params: Any) -> tuple[PushRequest, str]:
    """Publish a message that its endpoint refuses; what was pushed, and the page of the dead letter."""
    world = await make_world(visitor)
    refusing = Refusing()
    world.engine.parts.endpoints["https"] = refusing
    assert visitor.server.time is not None
    await Services(visitor).call("sns", "Publish", TopicArn=arn("sns", "Rentals"), **params)
    await visitor.server.time.advance(1_000)
    (letter,) = await world.engine.operations.dead_letters.letters(world.dead, 0, 9)
    return refusing.pushed[0], f"{ROOM}/dead-letters/orders-dead/{letter.delivery.seq}"


def words_of(command: str) -> list[str]:
    """The words of a command, as a shell reads them."""
    return shlex.split(command.replace("\\\n", ""))


async def test_the_request_of_a_dead_letter_is_that_of_its_delivery_without_secrets() -> None:
    async with visiting(clock="simulated") as visitor:
        pushed, path = await die(visitor, Message='{"order": "it\'s 7"}', Subject="An order")
        page = text(await visitor.get(path))
        assert "HTTP 422" in page
        assert "no &lt;currency&gt; in it" in page
        command = page.partition('id="curl"')[2].partition(">")[2].partition("</pre>")[0]
        words = words_of(unescape(command))
        headers = dict(word.split(": ", 1) for word in words[:-1] if ": " in word)
        assert {name: headers[name] for name in pushed.headers if name.startswith("x-amz")} == {
            name: value for name, value in pushed.headers.items() if name.startswith("x-amz")
        }
        token = pushed.body.decode().rpartition("Token=")[2].partition('"')[0]
        assert words[-2:] == ["--data-raw", pushed.body.decode().replace(token, "***")]
        assert "https://billing.example.com/hook?…" in words
        assert token not in page
        assert "key=secret" not in page
        assert "Fill in what is masked" in page


async def test_a_hidden_body_has_no_request_and_a_long_one_no_command() -> None:
    async with visiting(clock="simulated", console_bodies="hidden") as visitor:
        _, path = await die(visitor, Message="MARKED")
        page = text(await visitor.get(path))
        assert "HTTP 422" in page
        assert "MARKED" not in page
        assert "x-amz-sns" not in page
    async with visiting(clock="simulated") as visitor:
        _, path = await die(visitor, Message="m" * BODY_CHARS_MAX)
        page = text(await visitor.get(path))
        assert "x-amz-sns-message-id" in page
        assert 'id="curl"' not in page


def test_values_of_headers_that_a_subscription_adds_are_masked_and_curls_own_are_left_to_it() -> None:
    request = HttpRequest("POST", "https://a.example/", {"x-own": "***", "Accept-Encoding": "gzip"}, "@file")
    assert request.is_masked
    assert words_of(request.curl) == [
        *("curl", "-i", "-X", "POST", "https://a.example/"),
        *("-H", "x-own: ***", "--data-raw", "@file"),
    ]
