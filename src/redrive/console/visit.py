"""A visit: what a page is asked, and what it answers with, as values without HTTP."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import quote, urlencode

from redrive.access.keys import is_account
from redrive.access.principals import account_root
from redrive.console.installation import Installation
from redrive.console.session import ConsoleSession
from redrive.engine.engine import Engine
from redrive.model.delivery import Delivery, is_sealed
from redrive.model.memo import remembered
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.search import Predicate, read_search
from redrive.model.topic import Topic

PAGE_ROWS: Final = 50
_NUMBER_DIGITS_MAX: Final = 18
_NAMES_COMPARED: Final = 500  # with one that is not there: 4 ms


@remembered(1024, 100)  # a page of fifty rows quotes the same account, region and names 800 times: 1 ms
def _quoted(part: str) -> str:
    return quote(part, safe="")


class Missing(Exception):  # noqa: N818 - an answer, not a failure
    """Something that a page is about is not there; the message says what was looked for.

    Attributes:
        near: The name most like it, and its link; None: there is none like it.
    """

    def __init__(self, text: str, near: tuple[str, str] | None = None) -> None:
        super().__init__(text)
        self.near = near


def searched(visit: "Visit", text: str) -> Predicate:
    """The predicate of a typed search.

    Raises:
        Unusable: Bodies are hidden, so they cannot be searched.
        SearchInvalidError: It cannot be read.
    """
    if text and not visit.bodies_shown:
        raise Unusable("Bodies are hidden here, so they cannot be searched.")
    return read_search(text, visit.now)


class Unusable(Exception):  # noqa: N818 - an answer, not a failure
    """Something that was typed cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page."""

    engine: Engine  # Engine that is shown
    session: ConsoleSession  # Session of the visitor
    base: str  # Prefix of the console's own links
    here: str  # The path and query of this page, as a link
    args: Mapping[str, str]  # The variable parts of the page's path
    query: Mapping[str, Sequence[str]]  # Query parameters
    form: Mapping[str, Sequence[str]]  # Form fields; empty for a GET
    bodies_shown: bool  # Whether messages' bodies may be shown
    now: int  # The server's time (ms)
    host: str  # Prefix of links for clients: `http://127.0.0.1:4566`
    installation: Installation  # Facts about the server
    # Whether a page's live part asks for itself again, so that nothing beside it is shown.
    live_alone: bool = False

    async def call(self, service: str, operation: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call an Amazon service of this server for the visitor's account, by the service's own rules.

        Raises:
            AwsError: The service refuses.
            Unusable: The scope is an Azure subscription's, or the server is not set up for the service.
        """
        if not is_account(self.scope.account):
            raise Unusable("That belongs to Event Grid, which its own clients call.")
        caller = account_root(self.scope.account)
        if not self.installation.services.offers(service):
            raise Unusable(f"This server does not offer {service}.")
        return await self.installation.services.call(
            service, operation, dict(params), caller, self.scope.region
        )

    @property
    def scope(self) -> ResourceName:
        """The account and region that the path names."""
        return ResourceName(self.args["account"], self.args["region"])

    def parameter(self, name: str, default: str = "") -> str:
        """A parameter of the query, or of the form before it."""
        values = self.form.get(name) or self.query.get(name)
        return values[-1] if values else default

    def number(self, name: str, default: int = 0) -> int:
        """A parameter that is a number; raises Unusable if the text is not one."""
        text = self.parameter(name)
        return whole(text) if text else default

    def numbers(self, name: str, most: int) -> list[int]:
        """All values of a parameter, as numbers.

        Raises:
            Unusable: One of them is not a number, or there are too many.
        """
        texts = self.form.get(name) or self.query.get(name) or ()
        if len(texts) > most:
            raise Unusable(f"{len(texts)} were selected; at most {most} go together")
        return [whole(text) for text in texts]

    def link(self, *parts: str, **query: object) -> str:
        """A link to a page of this scope; parameters that are empty or None are left out."""
        return self.link_in(self.scope, *parts, **query)

    def link_in(self, scope: ResourceName, *parts: str, **query: object) -> str:
        """A link to a page of another scope."""
        path = "/".join(map(_quoted, (scope.account, scope.region, *parts)))
        parameters = {name: value for name, value in query.items() if value not in (None, "")}
        return f"{self.base}/{path}" + (f"?{urlencode(parameters, doseq=True)}" if parameters else "")

    def link_anywhere(self, *parts: str, **query: object) -> str:
        """A link to a page of no scope, which keeps the scope that the visitor came from (see `navigation`)."""
        parameters = {
            name: value
            for name, value in {**query, "at": self.parameter("at")}.items()
            if value not in (None, "")
        }
        path = "/".join((self.base, *map(_quoted, parts)))
        return path + (f"?{urlencode(parameters, doseq=True)}" if parameters else "")

    async def queue(self) -> Queue:
        """The queue that the path names; raises Missing if it is not there."""
        name = self.scope._replace(name=self.args["queue"])
        queue = await self.engine.resources.queues.get(name)
        if queue is None:
            queues = await self.engine.resources.queues.find(self.scope, "", _NAMES_COMPARED)
            near = self.nearest("queues", name.name, (each.name.name for each in queues))
            raise Missing(f"There is no queue {name.name} in {name.account} {name.region}.", near)
        return queue

    def url_of(self, queue: Queue) -> str:
        """The URL of a queue, as this page's address has the host."""
        return f"{self.host}/{queue.name.account}/{queue.name.name}"

    async def topic(self) -> Topic:
        """The topic that the path names; raises Missing if it is not there."""
        name = self.scope._replace(name=self.args["topic"])
        topic = await self.engine.resources.topics.get(name)
        if topic is None:
            topics = await self.engine.resources.topics.find(self.scope, "", _NAMES_COMPARED)
            near = self.nearest("topics", name.name, (each.name.name for each in topics))
            raise Missing(f"There is no topic {name.name[:80]} in {name.account} {name.region}.", near)
        return topic

    def nearest(self, room: str, name: str, names: Iterable[str]) -> tuple[str, str] | None:
        """The name most like one that is not there, with the link of its page; None: there is none like it."""
        by_letters = {each.lower(): each for each in names}
        for near in get_close_matches(name.lower(), by_letters, 1, 0.75):
            return by_letters[near], self.link(room, by_letters[near])
        return None

    def body_of(self, delivery: Delivery) -> str | None:
        """The body of a message; None where bodies are hidden, or the message is encrypted.

        To decrypt takes a right that the console does not ask its visitors for: they receive such messages instead.
        """
        return delivery.body if self.bodies_shown and not is_sealed(delivery) else None


def whole(text: str) -> int:
    """A number from a form or a link; raises Unusable if the text is not one, or too long for one of ours."""
    if not (text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS_MAX):
        raise Unusable(f"{text[:40]!r} is not a number.")
    return int(text)


#: The status of a form, or of a search, that is shown again with what is wrong in it.
REFUSED: Final = 400


@dataclass(frozen=True, slots=True)
class Page:
    """A page to be rendered."""

    template: str  # Its file
    values: Mapping[str, Any] = field(default_factory=dict)  # Values for the template
    status: int = 200  # HTTP status
    live_seconds: int = 0  # Interval of live updates; 0: none
    # The element (`#id`) that a live part takes the place of; empty: of the live part before it.
    instead_of: str = ""
    # What a form changed, for the audit, where it is answered by a page; empty: it changed nothing.
    did: str = ""


@dataclass(frozen=True, slots=True)
class Redirect:
    """Another page to go to, after something was done (303)."""

    location: str  # The link
    cookie: str | None = None  # A session's cookie to be set; None: none
    sentence: str = ""  # Sentence for the next page and for the log
    # The path below the console's own, and the fields, of the form that takes it back; None: nothing does.
    undo: tuple[str, Mapping[str, Sequence[str]]] | None = None
    before: str = ""  # Value before the change, for the audit, if short; empty: not recorded
    after: str = ""  # Value after the change


@dataclass(frozen=True, slots=True)
class File:
    """A file to be kept by who visits."""

    name: str
    content_type: str  # Its media type
    body: bytes  # All of it: a page's answers are not streamed, so that what makes one bounds it
