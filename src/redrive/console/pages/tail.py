"""Live tail: what happens now on this node, as far as it passes a filter."""

from collections.abc import Iterator
from typing import Any, Final

from redrive.console.tail import FAILURES, LINES_MAX, OUTCOMES, RETRY, Line
from redrive.console.visit import Page, Visit

SHOWN_MAX: Final = 200
_COLOURS: Final = {"delivered": "ok", RETRY: "warn", "dead-lettered": "bad", "lost": "bad"}
_CHOICES: Final = ("all", "failures", *OUTCOMES)


async def page(visit: Visit) -> Page:
    """The latest of what happened in this account and region; asking for it keeps it coming."""
    only = visit.parameter("only", "all")
    only = only if only in _CHOICES else "all"
    part = visit.parameter("of").strip()
    matches = [line for line in in_scope(visit) if _fits(line, only, part)]
    values = {
        "rows": [row_of(visit, line) for line in matches[:SHOWN_MAX]],
        "more": max(0, len(matches) - SHOWN_MAX),
        "most": LINES_MAX,
        "only": only,
        "choices": _CHOICES,
        "of": part,
        "form": visit.link("tail"),
    }
    return Page("tail.html", values, live_seconds=1)


def in_scope(visit: Visit) -> Iterator[Line]:
    """The lines of the page's account and region, latest first."""
    scope = visit.scope
    for line in visit.installation.tail.lines():
        if line.resource.account == scope.account and line.resource.region == scope.region:
            yield line


def _fits(line: Line, only: str, part: str) -> bool:
    """True if a line has the chosen outcome and the text that was searched for, each of which may be empty."""
    if only == "failures" and line.what not in FAILURES:
        return False
    if only in OUTCOMES and line.what != only:
        return False
    if not part:
        return True
    subscription = line.subscription
    subscription_text = f"{subscription.id} {subscription.redacted_endpoint}" if subscription else ""
    return part in line.resource.name or part in subscription_text or part == line.message_id


def row_of(visit: Visit, line: Line) -> dict[str, Any]:
    """A line with its colour and links."""
    subscription = line.subscription
    if subscription is None:
        rooms = "topics" if line.what == "published" else "queues"
        link = visit.link(rooms, line.resource.name)
    else:
        link = visit.link("topics", subscription.topic.name, subscription.id)
    return {
        "line": line,
        "colour": _COLOURS.get(line.what, "info"),
        "link": link,
        "to": "" if subscription is None else subscription.redacted_endpoint,
        "message": visit.link("messages", line.message_id) if line.message_id else "",
    }
