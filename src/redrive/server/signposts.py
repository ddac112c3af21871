"""Signposts: where people go who type the server's address, or a queue's URL, into a browser.

No client of a service comes here: those sign, or have something to say in the query or a body.
"""

import re
from collections.abc import Sequence
from typing import Final

from redrive import __version__
from redrive.model.http import Request, Response

_QUEUE_PATH: Final = re.compile(r"/(\d{12})/([A-Za-z0-9_-]{1,80}(?:\.fifo)?)")
# Where other servers have what is here under a name of Redrive's own.
_MOVED: Final = {"/health": "/_redrive/health", "/metrics": "/_redrive/metrics"}

_START: Final = """\
Redrive {version}: durable event delivery. It offers AWS's {services}, and Azure's Event Grid.

This address is for clients, not for browsers. Configure it as the endpoint URL of a client:

    aws --endpoint-url {url} sqs list-queues

To look around:

    {url}/_redrive/health     status of the server and its store
    {url}/_redrive/metrics    metrics for Prometheus
    redrive queues --url {url}
    redrive dlq queues --url {url}{console}
"""
_LOST: Final = """\
There is no page at {path}.

    {url}/     says what this server is{console}
"""
_QUEUE: Final = """\
This is the URL of the queue {name} of account {account}, for clients of SQS:

    aws --endpoint-url {url} sqs receive-message --queue-url {url}{path}

To list its messages without receiving them:

    redrive dlq list {name} --url {url}
"""


def signpost(request: Request, console: str = "", services: Sequence[str] = ()) -> Response | None:
    """The way on for a person who came by a browser or by habit; None for everybody else.

    Args:
        request: Anybody's.
        console: The path of the web console, where browsers are led; empty: there is none.
        services: Those of AWS that are offered.
    """
    if not _is_visit(request):
        return None
    moved = _MOVED.get(request.path)
    if moved is not None:
        return Response(307, f"It is at {moved}\n".encode(), "text/plain", {"Location": moved})
    url = f"{request.scheme}://{request.host}"
    accepted = request.headers.get("accept", "")
    if console and request.path == "/" and "text/html" in accepted:
        return Response(303, b"", "text/plain", {"Location": console})
    if request.path == "/" and ("text/html" in accepted or "*/*" in accepted):
        console_line = f"\n    {url}{console}     the console" if console else ""
        offered = ", ".join(sorted(services))
        return _page(_START.format(version=__version__, url=url, console=console_line, services=offered))
    queue = _QUEUE_PATH.fullmatch(request.path)
    if queue is not None and "text/html" in accepted:
        return _page(_QUEUE.format(account=queue[1], name=queue[2], path=request.path, url=url))
    return None


def lost(request: Request, console: str = "") -> Response | None:
    """The way back for a person whose browser asked for what no service knows; None for clients.

    Args:
        request: One that no service recognises.
        console: See `signpost`.
    """
    if not _is_visit(request) or "text/html" not in request.headers.get("accept", ""):
        return None
    url = f"{request.scheme}://{request.host}"
    console_line = f"\n    {url}{console}     the console" if console else ""
    return _page(_LOST.format(path=request.path, url=url, console=console_line), 404)


def _is_visit(request: Request) -> bool:
    return request.method in ("GET", "HEAD") and not request.query and "authorization" not in request.headers


def _page(text: str, status: int = 200) -> Response:
    return Response(status, text.encode(), "text/plain; charset=utf-8")
