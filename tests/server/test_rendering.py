import pytest

from redrive.model.http import Response
from redrive.server.rendering import Renderer, error_response

_DATE = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"


def _renderer() -> Renderer:
    return Renderer(lambda: 784_111_777_999)


def test_a_response_is_rendered_with_its_headers() -> None:
    response = Response(201, b"{}", "application/json", {"X-Amz-RequestId": "1", "X-B": "\xe9"})
    assert _renderer().render(response, "POST", b"Connection: close\r\n") == (
        b"HTTP/1.1 201 Created\r\nServer: Redrive\r\n" + _DATE + b"Content-Type: application/json\r\n"
        b"Content-Length: 2\r\nConnection: close\r\nX-Amz-RequestId: 1\r\nX-B: \xe9\r\n\r\n{}"
    )


def test_head_is_told_the_length_and_given_nothing() -> None:
    rendered = _renderer().render(Response(200, b"12345"), "HEAD")
    assert b"Content-Length: 5\r\n" in rendered
    assert rendered.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("status", [204, 304])
def test_some_statuses_have_no_body(status: int) -> None:
    rendered = _renderer().render(Response(status, b"surprise"), "GET")
    assert rendered.endswith(_DATE + b"\r\n")
    assert b"Content-" not in rendered


def test_a_status_without_a_name() -> None:
    assert _renderer().render(Response(299), "GET").startswith(b"HTTP/1.1 299 \r\n")


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "a\0b", "\u20ac"])
def test_a_header_cannot_smuggle_another(value: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        _renderer().render(Response(headers={"Location": value}), "GET")


def test_the_date_follows_the_clock_once_a_second() -> None:
    instants = [784_111_777_000]
    renderer = Renderer(lambda: instants[0])
    before = renderer.render(Response(), "GET")
    instants[0] += 1000
    assert renderer.render(Response(), "GET") == before
    renderer.tick()
    assert renderer.render(Response(), "GET") == before.replace(b":37 GMT", b":38 GMT")


def test_errors_are_json() -> None:
    error = error_response(500, 'it "broke"', requestId="7")
    assert error.body == b'{"message":"it \\"broke\\"","requestId":"7"}'
