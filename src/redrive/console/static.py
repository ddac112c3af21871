"""Static files: style, scripts and icons, each under a path with its digest, so that browsers may keep them for ever."""

import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Final

from redrive.model.http import Response

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FOR_EVER: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_DIGEST_CHARS: Final = 12
FILES: Final = ("console.css", "console.js", "theme.js", "icon.svg", "icon-attention.svg", "icons.svg")


class StaticFiles:
    """The files, read once."""

    def __init__(self) -> None:
        root = resources.files("redrive.console") / "static"
        self._bytes = {name: (root / name).read_bytes() for name in FILES}
        self._digests: Mapping[str, str] = {
            name: hashlib.sha256(content).hexdigest()[:_DIGEST_CHARS] for name, content in self._bytes.items()
        }

    def path(self, name: str) -> str:
        """The path of a file below the console's own."""
        return f"static/{self._digests[name]}/{name}"

    def answer(self, digest: str, name: str) -> Response | None:
        """The file, if it is the one that was meant."""
        if self._digests.get(name) != digest:
            return None
        kind = name.rpartition(".")[2]
        return Response(200, self._bytes[name], _TYPES[kind], _FOR_EVER)
