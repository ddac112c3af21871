"""Measures the requests a second that one process pushes, and the cost of signing them.

python -m tests.server.hello 9000 bare &
python -m tests.endpoints.pace 9000
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable

import uvloop

from redrive.access.signing_pair import make_pair
from redrive.aws.sns.notifications import notification
from redrive.aws.sns.notifications.notification import PublishedMessage
from redrive.aws.sns.notifications.notification_renderer import Signer
from redrive.endpoints.http import HttpEndpoint
from redrive.engine.ports import PushRequest

_PUSHES = 20_000
_AT_ONCE = 32  # a subscription's usual limit
_TEXT = "x" * 1100  # about a notification


async def _measure(name: str, push: Callable[[int], Awaitable[None]], push_requests: int) -> None:
    numbers = iter(range(push_requests))

    async def worker() -> None:
        for number in numbers:
            await push(number)

    began, cpu_began = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))
    rate = push_requests / (time.perf_counter() - began)
    cpu_us = (time.process_time() - cpu_began) / push_requests * 1e6
    sys.stdout.write(f"{name:<32} {rate:>8,.0f} a second {cpu_us:>6.0f} µs of CPU each\n")


async def _main(port: int) -> None:
    endpoint = HttpEndpoint(lambda: time.time_ns() // 1_000_000, random.Random(1))
    signer = Signer(make_pair(time.time_ns() // 1_000_000))
    published = PublishedMessage(
        "e8c2bb09-235c-5f5d-b583-efd8df0f7d74", "arn:aws:sns:eu-central-1:000000000000:t", 0
    )
    headers = notification.notification_headers(published)
    url = f"http://127.0.0.1:{port}/hook"
    push_request = PushRequest(url, _TEXT.encode(), notification.CONTENT_TYPE, headers, 15_000)

    async def push(_: int) -> None:
        assert (await endpoint.push(push_request)).delivered

    async def sign_and_push(number: int) -> None:
        await signer.sign(f"in a thread {number} {_TEXT}", "1")
        await push(number)

    async def sign_here_and_push(number: int) -> None:
        signer.sign_now(f"on the loop {number} {_TEXT}", "1")
        await push(number)

    await _measure("pushed", push, _PUSHES)
    await _measure("signed in a thread, and pushed", sign_and_push, _PUSHES // 4)
    await _measure("signed on the loop, and pushed", sign_here_and_push, _PUSHES // 4)
    signer.close()
    await endpoint.close()


if __name__ == "__main__":
    uvloop.run(_main(int(sys.argv[1])))
