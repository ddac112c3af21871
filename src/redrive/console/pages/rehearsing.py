"""Rehearsal of a redrive: copies of some dead letters go to an address once, and stay where they are."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from redrive.console.pages.dead_letters import read_cause
from redrive.console.pages.redrives import plan_page
from redrive.console.visit import REFUSED, Page, Unusable, Visit, searched
from redrive.console.words import one_line
from redrive.engine.ports import LookRequest
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.model.search import asks_attempts

COPIES_MAX: Final = 100
COPIES: Final = 10
LOOKED_AT: Final = 500  # dead letters, the oldest first, that copies are made of
AT_ONCE: Final = 10
TIMEOUT_MS: Final = 5_000
_ANSWER_BYTES_MAX: Final = 64 * 1024
_MARK: Final = {"x-redrive-rehearsal": "1", "content-type": "text/plain; charset=UTF-8"}
_OK: Final = range(200, 300)


class CopyAnswer(NamedTuple):
    """The answer to a copy."""

    seq: int  # Sequence number of the dead letter
    status: int | None  # HTTP status of the answer; None: no answer
    took_ms: int  # How long it took
    text: str  # The beginning of the answer, or the reason that there was none

    @property
    def is_good(self) -> bool:
        """True if the endpoint took it."""
        return self.status in _OK


async def rehearse(visit: Visit) -> Page:
    """Send copies, and show what was answered to each on the page of the plan.

    Raises:
        Unusable: Bodies are hidden here, or the address or the number cannot be used.
    """
    queue = await visit.queue()
    if not visit.bodies_shown:
        raise Unusable("Bodies are hidden here, so no copies of them are sent.")
    url, copies = visit.parameter("url").strip(), visit.number("copies", COPIES)
    host = _host(url)
    if not host:
        return await plan_page(visit, queue, "An address begins with https:// or http://.", REFUSED)
    if not 1 <= copies <= COPIES_MAX:
        return await plan_page(visit, queue, f"A rehearsal has 1 to {COPIES_MAX} copies.", REFUSED)
    letters = await _letters(visit, queue, copies)
    answers = await _answers(visit, letters, url)
    results = Counter(str(each.status or "no answer") for each in answers)
    summary = ", ".join(f"{number} {result}" for result, number in results.most_common())
    did = f"{len(answers)} copies to {host}: {summary or 'none'}"
    return await plan_page(visit, queue, "", rehearsed=answers, did=did)


def _host(url: str) -> str:
    """The host of an http or https URL; empty for any other text."""
    try:
        parts = urlsplit(url)
    except ValueError:  # half an IPv6 address
        return ""
    return (parts.hostname or "") if parts.scheme in ("http", "https") else ""


async def _letters(visit: Visit, queue: Queue, number: int) -> list[Delivery]:
    """The oldest of the dead letters that the plan is for, of those that can be read."""
    ids, cause = visit.numbers("id", LOOKED_AT), visit.parameter("cause")
    text = visit.parameter("q").strip()
    what = visit.parameter("what", "picked" if ids else "all")
    request = LookRequest(
        queue.id,
        LOOKED_AT,
        cause=None if cause in ("", "all") or what == "picked" else read_cause(cause),
        seqs=ids if what == "picked" else None,
    )
    holds = searched(visit, text) if text and what != "picked" else lambda _: True
    excepted = ids if what == "except" else ()
    letters = await visit.engine.operations.dead_letters.peek(request, with_attempts=asks_attempts(text))
    return [
        each
        for each in letters
        if each.seq not in excepted and visit.body_of(each) is not None and holds(each)
    ][:number]


async def _answers(visit: Visit, letters: Sequence[Delivery], url: str) -> list[CopyAnswer]:
    """The answers to copies of all these, in their order; `AT_ONCE` of them are under way at a time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def ask(letter: Delivery) -> CopyAnswer:
        async with slots:
            return await _answer(visit, letter, url)

    return list(await asyncio.gather(*(ask(letter) for letter in letters)))


async def _answer(visit: Visit, letter: Delivery, url: str) -> CopyAnswer:
    """The answer to one copy, by the guard of all endpoints; it is tried once."""
    began = visit.installation.monotonic()
    body = letter.body.encode("utf-8", "backslashreplace")
    try:
        answer = await visit.installation.web.fetch("POST", url, _MARK, body, TIMEOUT_MS, _ANSWER_BYTES_MAX)
    except TimeoutError:
        answer = "Timed out"
    took_ms = round((visit.installation.monotonic() - began) * 1000)
    if isinstance(answer, str):
        return CopyAnswer(letter.seq, None, took_ms, answer)
    return CopyAnswer(letter.seq, answer.status, took_ms, one_line(answer.body.decode("utf-8", "replace")))
