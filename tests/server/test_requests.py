import asyncio

import pytest

from redrive.model.http import Request, Response
from tests.server.client import chunked, get, message, post
from tests.server.conftest import Connect, Serve


async def test_requests_on_one_connection_are_answered_in_turn(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve())
    for path in ("/one", "/two"):
        answer = await client.ask(get(path))
        assert (answer.status, answer.body) == (200, path.encode())
        assert answer.headers["server"] == "Redrive"
        assert answer.headers["date"] == "Sun, 06 Nov 1994 08:49:37 GMT"
        assert "connection" not in answer.headers


async def test_the_handler_receives_the_parsed_request(serve: Serve, connect: Connect) -> None:
    seen: list[Request] = []

    def handler(request: Request) -> Response:
        seen.append(request)
        return Response()

    client = await connect(await serve(handler))
    await client.ask(post(b"body", "X-A: 1", target="/a%2Fb?c"))
    assert seen[0].path == "/a%2Fb"
    assert seen[0].query == "c"
    assert seen[0].body == b"body"
    assert (seen[0].scheme, seen[0].client_host) == ("http", "127.0.0.1")


async def test_a_coroutine_and_a_future_are_waited_for(serve: Serve, connect: Connect) -> None:
    loop = asyncio.get_running_loop()
    futures: list[asyncio.Future[Response]] = []

    async def coroutine() -> Response:
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        return Response(body=b"coroutine")

    def handler(request: Request) -> object:
        if request.path == "/coroutine":
            return coroutine()
        futures.append(loop.create_future())
        loop.call_soon(futures[-1].set_result, Response(body=b"future"))
        return futures[-1]

    client = await connect(await serve(handler))
    assert (await client.ask(get("/coroutine"))).body == b"coroutine"
    assert (await client.ask(get("/future"))).body == b"future"


async def test_pipelined_requests_are_begun_and_answered_in_order(serve: Serve, connect: Connect) -> None:
    begun: list[str] = []
    release = asyncio.Event()

    async def slow() -> Response:
        await release.wait()
        return Response(body=b"slow")

    def handler(request: Request) -> object:
        begun.append(request.path)
        return slow() if request.path == "/slow" else Response(body=b"fast")

    client = await connect(await serve(handler))
    await client.send(get("/slow") + get("/fast") + get("/slow"))
    other = await connect(await serve())
    await other.ask(get())  # by now the three have arrived
    assert begun == ["/slow"]
    release.set()
    assert [(await client.answer()).body for _ in range(3)] == [b"slow", b"fast", b"slow"]
    assert begun == ["/slow", "/fast", "/slow"]


async def test_a_body_in_pieces(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve())
    assert (await client.ask(*[bytes([byte]) for byte in post(b"piecemeal")])).body == b"piecemeal"
    raw = message("POST", "/", "Transfer-Encoding: chunked") + chunked(b"chunk", b"ed")
    assert (await client.ask(raw[:70], raw[70:])).body == b"chunked"


async def test_a_large_body_comes_back_whole(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve())
    body = bytes(range(256)) * 8192
    sending = asyncio.create_task(client.send(post(body)))
    assert (await client.answer()).body == body
    await sending


async def test_the_client_is_told_to_continue_in_its_turn(serve: Serve, connect: Connect) -> None:
    release = asyncio.Event()

    async def slow() -> Response:
        await release.wait()
        return Response(body=b"first")

    client = await connect(await serve(lambda r: slow() if r.path == "/slow" else Response(body=r.body)))
    await client.send(get("/slow") + message("POST", "/", "Expect: 100-continue", "Content-Length: 4"))
    release.set()
    assert (await client.answer()).body == b"first"
    assert (await client.answer()).status == 100
    assert (await client.ask(b"bo", b"dy")).body == b"body"
    # One that does not wait is not told, and neither is the next.
    raw = message("POST", "/", "Expect: 100-continue", "Content-Length: 4") + b"body"
    assert (await client.ask(raw)).body == b"body"
    assert (await client.ask(b"GET / HT", b"TP/1.1\r\nHost: a\r\n\r\n")).status == 200


async def test_a_body_too_large_is_refused_before_it_is_sent(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve(body_bytes_max=10))
    answer = await client.ask(message("POST", "/", "Expect: 100-continue", "Content-Length: 11"))
    assert answer.status == 413
    assert answer.headers["connection"] == "close"


async def test_head_and_no_content(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve(lambda r: Response(204 if r.path == "/empty" else 200, b"12345")))
    answer = await client.ask(message("HEAD", "/"), method="HEAD")
    assert answer.headers["content-length"] == "5"
    assert (await client.ask(get("/empty"))).status == 204
    assert (await client.ask(get())).body == b"12345"


@pytest.mark.parametrize("is_slow", [False, True])
async def test_the_connection_closes_where_the_client_asks_for_that(
    serve: Serve, connect: Connect, is_slow: bool
) -> None:
    async def slow() -> Response:
        await asyncio.sleep(0)
        return Response()

    front = await serve(lambda _: slow() if is_slow else Response())
    for last in (get("/", "Connection: close"), get("/", version="1.0")):
        client = await connect(front)
        assert "connection" not in (await client.ask(get() + last)).headers
        assert (await client.answer()).headers["connection"] == "close"
        assert await client.rest() == b""


async def test_http_1_0_may_keep_the_connection(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve())
    for _ in range(2):
        answer = await client.ask(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
        assert answer.headers["connection"] == "keep-alive"


async def test_a_websocket_is_answered_like_any_get(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve(lambda _: Response(404)))
    answer = await client.ask(get("/", "Connection: Upgrade", "Upgrade: websocket"))
    assert (answer.status, answer.headers["connection"]) == (404, "close")
    assert await client.rest() == b""


async def test_a_refusal_comes_after_the_answers_before_it(serve: Serve, connect: Connect) -> None:
    async def slow() -> Response:
        await asyncio.sleep(0)
        return Response(body=b"slow")

    for handler in (lambda _: slow(), lambda _: Response(body=b"fast")):
        client = await connect(await serve(handler))
        first = await client.ask(get() + b"RUBBISH\r\n\r\n")
        assert (first.status, first.headers.get("connection")) == (200, None)
        second = await client.answer()
        assert (second.status, second.headers["connection"]) == (400, "close")
        assert b"Malformed HTTP" in second.body
        assert await client.rest() == b""
