"""The addresses of function URLs: which function an id leads to, and how the URL is written."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import ClassVar, Final, NamedTuple
from urllib.parse import urlsplit

from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.model.names import ResourceName
from redrive.protocols.http import Request

PATH: Final = "/_redrive/function-url/"
_HOST: Final = re.compile(r"([a-z0-9]{32})\.lambda-url\.[a-z0-9-]+\..+")
_IN_HOST: Final = ".lambda-url."
_HOST_CHARS_MAX: Final = 300
_HERE: Final = "localhost"


@dataclass(frozen=True, slots=True)
class UrlPlace(Document):
    """The place that a URL's id leads to.

    Attributes:
        function: Whose URL it is.
        qualifier: The alias; empty: the function itself.
    """

    restored: ClassVar = {"function": ResourceName._make}

    function: ResourceName
    qualifier: str = ""


FUNCTION_URL: Final[DocumentKind[UrlPlace]] = DocumentKind(
    "function_url", UrlPlace.to_document, UrlPlace.from_document
)


class UrlTarget(NamedTuple):
    """The target of a request to a function URL.

    Attributes:
        id: Of the URL.
        path: As the function is told it.
        domain: The host that the function is told.
    """

    id: str
    path: str
    domain: str


def is_for_url(request: Request) -> bool:
    """True if a request is sent to a function URL, by its host or by its path."""
    return _IN_HOST in request.host or request.path.startswith(PATH)


def target_of(request: Request) -> UrlTarget | None:
    """The target of a request; None where its host or its path only looks like a function URL's."""
    host = request.host
    if request.path.startswith(PATH):
        url_id, slash, path = request.path.removeprefix(PATH).partition("/")
        return UrlTarget(url_id, slash + path or "/", host)
    found = _HOST.fullmatch(host.lower()) if len(host) <= _HOST_CHARS_MAX else None
    return None if found is None else UrlTarget(found[1], request.path, host.partition(":")[0])


def url_text(base_url: str, url_id: str, region: str) -> str:
    """The URL as callers are told it.

    Names below `localhost` lead to this machine (RFC 6761), so the id stands in the host as on AWS; names below an
    address or a container's name lead nowhere, so there it stands in the path. Both forms work everywhere.
    """
    parts = urlsplit(base_url)
    if not _is_here(parts.hostname or ""):
        return f"{base_url}{PATH}{url_id}/"
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{url_id}{_IN_HOST}{region}.{_HERE}{port}/"


def _is_here(host: str) -> bool:
    if host == _HERE or host.endswith(f".{_HERE}"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
