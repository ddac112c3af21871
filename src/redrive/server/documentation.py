"""The documentation's site, as `make docs` builds it, served from its folder."""

import asyncio
import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from redrive.model.http import Request, Response
from redrive.server.owned import method_of
from redrive.settings.invalid import SettingsInvalid

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
        """Look what there is.

        Args:
            folder: Has `index.html`.

        Raises:
            SettingsInvalid: It has not.
        """
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
    """A policy that lets in the site's own files, and of what stands within the page that alone which was built."""
    return (
        f"default-src 'none'; script-src 'self'{_hashes(_SCRIPT.findall(page))};"
        f" style-src 'self'{_hashes(_STYLE.findall(page))}; img-src 'self' data:; font-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _hashes(texts: Iterable[bytes]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text).digest()).decode() for text in texts)
    return "".join(f" 'sha256-{digest}'" for digest in digests)
