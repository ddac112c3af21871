"""The guard before a server that trusts every caller: what a web page has the developer's browser send is refused.

A web page can have a name of its own lead to 127.0.0.1 after it was loaded (DNS rebinding), and then reads what it asks
for. So such a server answers to host names alone that no page on the internet can have. And no client of a service sends
an `Origin`; browsers send it with all that can change something across sites, and `Sec-Fetch-Site` with everything they
send to this machine (https://fetch.spec.whatwg.org, https://www.w3.org/TR/fetch-metadata/). So nothing is asked of
programs, and decision 0022 says what was weighed.
"""

import hmac
import re
from collections.abc import Iterable
from html import escape
from ipaddress import ip_address
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlsplit

import orjson

from redrive.aws.wire.profiles import profiles
from redrive.model.http import Request, Response
from redrive.server.owned import json_answer
from redrive.settings import Settings, read_hosts

#: Names that nobody can register: RFC 6761's for this machine and for tests, and ICANN's for private networks, which
#: Docker Desktop, Podman and Lima use for the machine that a container runs on (`host.docker.internal`).
_NOT_REGISTERED: Final = (".localhost", ".test", ".internal")
#: Names that clients use for this server, and whose owners let none of them lead to an address of one's choice.
_OF_VENDORS: Final = (".localhost.localstack.cloud", ".eventgrid.azure.net")
_REGION: Final = r"[a-z]{2}(?:-[a-z]+)+(?:-\d+)?"
_SERVICES: Final = "|".join(
    sorted({name for each in profiles().values() for name in (each.endpoint_prefix, *each.hosts)})
)
#: The endpoints of the services that are offered here, and buckets and APIs below them. Machines, load balancers and
#: websites of Amazon's customers have names below `amazonaws.com` as well, and serve pages.
_OF_AMAZON: Final = re.compile(
    rf"(?:(?:{_SERVICES})(?:-fips)?(?:\.dualstack)?(?:[.-]{_REGION})?|{_REGION}\.queue"
    rf"|(?:[^.]+\.)+s3(?:-fips)?(?:\.dualstack)?(?:[.-]{_REGION})?|[^.]+\.execute-api\.{_REGION})\.amazonaws\.com(?:\.cn)?"
)
_ANY: Final = "*"
_CHARS_MAX: Final = 300  # a name of DNS has 253 at most
_REMEMBERED_MAX: Final = 256  # Host headers; a browser's user has a handful


class KnownHosts:
    """The hosts that requests may name.

    Attributes:
        lately: Host headers that were asked for lately and name this server: one look-up for nearly every request.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Answer to these names too, and to the names below each; `*` stands for all."""
        self._names = {name.lower().lstrip("*.") or _ANY for name in names}
        self._endings = (*_NOT_REGISTERED, *_OF_VENDORS, *(f".{name}" for name in self._names))
        self.lately = {"localhost", "127.0.0.1"}

    def __contains__(self, host: str) -> bool:
        """True if a Host header, with its port, names this server."""
        if host in self.lately:
            return True
        if len(host) > _CHARS_MAX or not self._names_us(name_of(host)):
            return False
        if len(self.lately) >= _REMEMBERED_MAX:
            self.lately.clear()
        self.lately.add(host)
        return True

    def _names_us(self, name: str) -> bool:
        """True if a name is ours: an address, a name without dots (a container's, a machine's), or one that ends so."""
        return (
            "." not in name
            or _is_address(name)
            or _ANY in self._names
            or f".{name}".endswith(self._endings)
            or _OF_AMAZON.fullmatch(name) is not None
        )


def known_hosts(settings: Settings) -> KnownHosts:
    """The hosts of a server: those that its settings name, and that of its public URL."""
    public = urlsplit(settings.public_url).hostname
    return KnownHosts([*read_hosts(settings.allow_hosts), *([public] if public else [])])


def name_of(host: str) -> str:
    """The name or address in a Host header, without the port, in lower case."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0].removesuffix(".")


def _is_address(name: str) -> bool:
    """True if a host's name is an IP address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


_OWN_SITES: Final = frozenset({"same-origin", "none"})  # "none": the address was typed
_SHOWN_CHARS_MAX: Final = 100
#: Where links out of messages lead, which people click in their mail: they carry a token that cannot be guessed.
_LINK_PATH: Final = "/eventsubscriptions/"
_LINK_ACTIONS: Final = frozenset({"ConfirmSubscription", "Unsubscribe"})
_LINK_FIELDS_MAX: Final = 16
_FORM: Final = "application/x-www-form-urlencoded"


class RefusalCounter(Protocol):
    """Counts refused requests, and tells the log."""

    def add(self, reason: str, *, address: str, identity: str) -> None:
        """Count a refusal by address and claimed identity."""
        ...


class BrowserGuard:
    """Refuses requests that a web page caused, and those to names that a web page could have given this server."""

    def __init__(self, hosts: KnownHosts, refusals: RefusalCounter) -> None:
        self._hosts = hosts
        self._refusals = refusals

    def refusal(self, request: Request) -> Response | None:
        """The answer to a request that is refused; None for one that may pass. 0.3 µs for a POST of a program."""
        headers = request.headers
        host = headers.get("host", "")
        if host not in self._hosts.lately and host not in self._hosts:
            return self._refuse(request, "UnknownHost", name_of(host), _UNKNOWN_HOST)
        if "origin" not in headers and "sec-fetch-site" not in headers and request.method == "POST":
            return None
        if _is_own(request) or _is_harmless(request):
            return None
        origin = headers.get("origin") or headers.get("referer", "")
        return self._refuse(request, "CrossSiteRequest", origin or "unknown", _CROSS_SITE)

    def _refuse(self, request: Request, reason: str, identity: str, text: str) -> Response:
        self._refusals.add(reason, address=request.client_host, identity=identity)
        excerpt = "".join(char for char in identity[:_SHOWN_CHARS_MAX] if char.isprintable())
        return _refusal_answer(request, text.format(excerpt))


_UNKNOWN_HOST: Final = (
    "Redrive does not answer at the host name {0}: without authentication, any web page could reach it by a name of its"
    " own. If the name is yours, start the server with --allow-hosts {0}; or use its address, or --auth required."
)
_CROSS_SITE: Final = (
    "Redrive refuses requests that a web page ({0}) makes a browser send: without authentication, any web page could"
    " command it. Call it from a program, or start the server with --auth required."
)


def _is_own(request: Request) -> bool:
    """True if no page of another origin can have caused a request."""
    headers = request.headers
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != request.host.lower():
        return False
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in _OWN_SITES
    # Browsers leave both out of a GET to a name that may be another machine's, `host.docker.internal` or 0.0.0.0.
    is_of_browser = headers.get("user-agent", "").startswith("Mozilla/")
    return origin is not None or not is_of_browser or "Action=" not in request.query


def _is_harmless(request: Request) -> bool:
    """True for a link that may be followed from anywhere: it changes nothing, or proves that it was sent to somebody."""
    if request.method not in ("GET", "HEAD"):
        return False
    if not request.query:
        return request.headers.get("sec-fetch-mode") == "navigate"
    if request.path.startswith(_LINK_PATH):
        return True
    return request.path == "/" and _is_link(request.query)


def _is_link(query: str) -> bool:
    """True if a query asks for nothing else than what a message's link does, and has no signature to be verified."""
    try:
        fields = parse_qsl(query, max_num_fields=_LINK_FIELDS_MAX)
    except ValueError:
        return False
    actions = {value for name, value in fields if name == "Action"}
    is_signed = any(name.lower().startswith("x-amz-") for name, _ in fields)
    return bool(actions) and actions <= _LINK_ACTIONS and not is_signed


def _refusal_answer(request: Request, text: str) -> Response:
    """The answer, in a form that the client of each protocol can show."""
    is_query = "Action=" in request.query or request.headers.get("content-type", "").startswith(_FORM)
    if is_query:
        message = f"<Message>{escape(text, quote=False)}</Message>"
        error = f"<Error><Type>Sender</Type><Code>AccessDenied</Code>{message}</Error>"
        return Response(403, f"<ErrorResponse>{error}</ErrorResponse>\n".encode(), "text/xml")
    document = {
        "__type": "AccessDeniedException",
        "message": text,
        "error": {"code": "Forbidden", "message": text},
    }
    return Response(403, orjson.dumps(document))


# Scrapers: who may read the metrics, which name every account's queues and topics.

_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
_METRICS_REFUSAL: Final = (
    "Metrics name the queues and topics of all accounts. They are shown to whoever brings the token that the server was"
    " started with (--metrics-token): Authorization: Bearer TOKEN. Without one they are shown to programs on its own"
    " machine, unless it runs functions and --auth is required."
)


class Scrapers:
    """Tells who may read the metrics.

    With a token, whoever brings it. Without one, programs on this machine: not a proxy on it, which says whom it asks
    for, no web page, and nobody where some of these programs are functions of key holders.
    """

    def __init__(
        self, token: str, guard: BrowserGuard, refusals: RefusalCounter, *, runs_functions: bool
    ) -> None:
        """Let these in.

        Args:
            token: What scrapers bring; empty for none.
            guard: Tells what a web page causes.
            refusals: Where others are counted.
            runs_functions: Whether programs of callers run on this machine who may not see everything anyway.
        """
        self._runs_functions = runs_functions
        self._token = token.encode()
        self._guard = guard
        self._refusals = refusals

    def refusal(self, request: Request) -> Response | None:
        """The refusal of a caller without permission; None if the caller has it."""
        if not self._token and not self._runs_functions and _is_local(request):
            return self._guard.refusal(request)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token_text = token.strip() if scheme.lower() == "bearer" else ""
        if self._token and hmac.compare_digest(token_text.encode(), self._token):
            return None
        reason = "MetricsTokenInvalid" if token_text else "MetricsTokenMissing"
        self._refusals.add(reason, address=request.client_host, identity="")
        answer = json_answer(401, {"message": _METRICS_REFUSAL})
        answer.headers = {**answer.headers, "WWW-Authenticate": "Bearer"}
        return answer


def _is_local(request: Request) -> bool:
    """True if a request comes from this machine, and not by a proxy."""
    if any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ip_address(request.client_host).is_loopback
    except ValueError:
        return False
