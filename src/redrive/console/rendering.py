"""Rendering: templates become pages in a thread of their own, and static files have paths with their digests.

The event loop waits for no template, and a browser may keep a static file for ever.
"""

import asyncio
import functools
import hashlib
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from redrive.console import charts, json_text, words
from redrive.model.durations import show_duration
from redrive.model.http import Response

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


LIVE: Final = "live"  # the block that a page's own polling asks for
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FOR_EVER: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_DIGEST_CHARS: Final = 12
FILES: Final = ("console.css", "console.js", "icon.svg", "icon-attention.svg")
ICONS: Final = "icons.svg"  # beside them, of symbols that pages hold themselves
_SYMBOL: Final = re.compile(r'<symbol id="([^"]+)" viewBox="0 0 16 16">(.+)</symbol>')


class PageRenderer:
    """Renders templates; Jinja2 is imported at the first visit, which most servers never have."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="redrive-console")

    async def render(self, template: str, values: Mapping[str, Any], *, live_alone: bool) -> bytes:
        """A page, or the part of it that is alive."""
        loop = asyncio.get_running_loop()
        work = functools.partial(_render, template, values, live_alone=live_alone)
        return await loop.run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False)


def _render(name: str, values: Mapping[str, Any], *, live_alone: bool) -> bytes:
    """The bytes of a template with its values; `live_alone`: only its block that is asked for again."""
    template = _environment().get_template(name)
    if live_alone and LIVE in template.blocks:
        text = "".join(template.blocks[LIVE](template.new_context(dict(values))))
    else:
        text = template.render(values)
    return words.printable(text).encode()


def _icons() -> "dict[str, Markup]":
    """The symbols beside words, which they do not replace.

    Each stands in the page with its shapes: a `use` of a file makes the browser style and lay out every table that has
    symbols a second time, when the file is there, which was a sixth of its work before a first paint.
    """
    from markupsafe import Markup  # noqa: PLC0415 - with Jinja2

    text = (resources.files("redrive.console") / "static" / ICONS).read_text()
    drawn = '<svg class="i" viewBox="0 0 16 16" aria-hidden="true">{}</svg>'
    return {name: Markup(drawn).format(Markup(shapes)) for name, shapes in _SYMBOL.findall(text)}  # noqa: S704 - a file of our own


def _spoken(text: object) -> "Markup":
    """A text whose arrows, from a topic to a receiver, screen readers say as a word."""
    from markupsafe import Markup, escape  # noqa: PLC0415 - with Jinja2

    arrow = Markup(
        '<span aria-hidden="true"> \N{RIGHTWARDS ARROW} </span><span class="hidden">,&nbsp;receiver&nbsp;</span>'
    )
    return arrow.join(map(escape, str(text).split(" \N{RIGHTWARDS ARROW} ")))


@functools.cache
def _environment() -> "Environment":
    """The templates, with the filters and parts that they use; made once."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - 0.1 s, at the first visit

    environment = Environment(
        loader=PackageLoader("redrive.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in (
        "number",
        "counted",
        "size",
        "span",
        "ago",
        "moment",
        "clock_time",
        "one_line",
        "why_failed",
        "why_stopped",
        "failure_words",
        "many",
        "rate",
        "receiver",
    ):
        environment.filters[name] = getattr(words, name)
    environment.globals["icon"] = _icons().__getitem__
    environment.filters["spoken"] = _spoken
    environment.filters["members"] = json_text.members
    environment.filters["duration"] = show_duration
    environment.filters["figure"] = charts.figure
    parts = environment.get_template("parts.html").module  # here, so that a part rendered alone has them too
    environment.globals |= {name: part for name, part in vars(parts).items() if not name.startswith("_")}
    return environment


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
