"""The log of requests as a handler around another one."""

import asyncio
import logging
from typing import Any

import pytest

from redrive.model.http import Request, Response
from redrive.server.request_log import CHARS_MAX, RequestLog


class Times:
    """A clock that goes on by a quarter of a second at each look."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 0.25
        return self.seconds


def request(path: str = "/a") -> Request:
    return Request("POST", path, "", {}, b"12345")


def fields(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record)["fields"] for record in caplog.records if record.name == RequestLog.__module__]


@pytest.fixture(autouse=True)
def _level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, RequestLog.__module__)  # and as it was, in the end


def test_an_answer_at_once_is_handed_on_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    answer = Response(201, b"abc")
    assert RequestLog(lambda _: answer, Times()).answer(request()) is answer
    (line,) = fields(caplog)
    assert (line["status"], line["ms"], line["bytes_in"], line["bytes_out"]) == (201, 250.0, 5, 3)


async def test_an_answer_that_is_waited_for_is_logged_when_it_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    coming: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    waiting = RequestLog(lambda _: coming, Times()).answer(request())
    assert not isinstance(waiting, Response)
    assert not fields(caplog)
    coming.set_result(Response(200))
    await waiting
    assert [line["status"] for line in fields(caplog)] == [200]


async def test_a_handler_that_fails_is_logged_as_its_500(caplog: pytest.LogCaptureFixture) -> None:
    def at_once(_: Request) -> Response:
        raise ZeroDivisionError

    async def later(_: Request) -> Response:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        RequestLog(at_once, Times()).answer(request())
    waiting = RequestLog(later, Times()).answer(request())
    assert not isinstance(waiting, Response)
    with pytest.raises(ZeroDivisionError):
        await waiting
    assert [line["status"] for line in fields(caplog)] == [500, 500]


def test_a_long_path_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    RequestLog(lambda _: Response(), Times()).answer(request("/" + "a" * 10_000))
    (line,) = fields(caplog)
    assert len(line["operation"]) == CHARS_MAX
