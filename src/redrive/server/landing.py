"""Landing pages: where people go who type the server's address, or a queue's URL, into a browser, and the documentation.

No client of a service comes to the first: those sign, or have something to say in the query or a body. The documentation
is the site that `make docs` builds, served from its folder.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from redrive import __version__
from redrive.model.http import Request, Response
from redrive.server.owned import method_of
from redrive.settings.values import SettingsInvalid

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
    """A landing page or redirect for a browser; None for API clients.

    Args:
        request: Any request.
        console: The path of the web console, where browsers are led; empty: there is none.
        services: Those of AWS that are offered.
    """
    if not _is_visit(request):
        return None
    location = _MOVED.get(request.path)
    if location is not None:
        return Response(307, f"It is at {location}\n".encode(), "text/plain", {"Location": location})
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


def way_back_page(request: Request, console: str = "") -> Response | None:
    """The way back for a person whose browser asked for what no service knows; None for clients.

    `console` is the path of the web console; empty: there is none.
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


PATH: Final = "/_redrive/docs"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_STYLE: Final = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


class DocumentationSite:
    """The files of a folder, for anybody: they say nothing of this server. Files that come later are not served."""

    def __init__(self, folder: str) -> None:
        """Serve what `folder` has; raises SettingsInvalid if that has no `index.html`."""
        root = Path(folder)
        self._files = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
        if "index.html" not in self._files:
            raise SettingsInvalid(f"docs {folder} has no index.html: make docs builds .site/html")

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        if request.path == PATH:
            return Response(308, b"", "text/plain", {"Location": f"{PATH}/"})
        name = unquote(request.path.removeprefix(f"{PATH}/")) or "index.html"
        path = self._files.get(name)
        if path is None or method_of(request) != "GET":
            return Response(
                404, b"There is no such page; the first one is index.html.\n", "text/plain", _HEADERS
            )
        content = await asyncio.to_thread(path.read_bytes)
        headers = {**_HEADERS, "Content-Security-Policy": _policy(content if path.suffix == ".html" else b"")}
        return Response(200, content, _TYPES.get(path.suffix, "text/plain; charset=utf-8"), headers)


def _policy(page: bytes) -> str:
    """A policy that allows the site's own files, and within a page exactly the scripts and styles it was built with."""
    return (
        f"default-src 'none'; script-src 'self'{_hashes(_SCRIPT.findall(page))};"
        f" style-src 'self'{_hashes(_STYLE.findall(page))}; img-src 'self' data:; font-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _hashes(texts: Iterable[bytes]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text).digest()).decode() for text in texts)
    return "".join(f" 'sha256-{digest}'" for digest in digests)
