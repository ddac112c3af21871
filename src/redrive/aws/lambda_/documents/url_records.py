"""The addresses of function URLs: which function an id leads to, and how the URL is written."""

import re
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

from redrive.aws.lambda_.documents.records import REQUEST_BYTES_MAX, FunctionRecord
from redrive.aws.wire.hosted_urls import HostedUrls, hosted_url
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft
from redrive.model.document import Document
from redrive.model.http import Request
from redrive.model.names import ResourceName

PATH: Final = "/_redrive/function-url/"
_HOST: Final = re.compile(r"([a-z0-9]{32})\.lambda-url\.[a-z0-9-]+\..+")
_IN_HOST: Final = ".lambda-url."
_HOST_CHARS_MAX: Final = 300
URLS: Final = HostedUrls(_IN_HOST, re.compile(PATH), REQUEST_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class UrlPlace(Document):
    """The place that a URL's id leads to."""

    restored: ClassVar = {"function": ResourceName._make}

    function: ResourceName  # Function it calls
    qualifier: str = ""  # The alias; empty: the function itself


FUNCTION_URL: Final = DocumentKind.of("function_url", UrlPlace)


class UrlTarget(NamedTuple):
    """The target of a request to a function URL."""

    id: str  # Id of the URL
    path: str  # As the function is told it
    domain: str  # The host that the function is told


def target_of(request: Request) -> UrlTarget | None:
    """The target of a request; None if its host or its path only looks like a function URL's."""
    host = request.host
    if request.path.startswith(PATH):
        url_id, slash, path = request.path.removeprefix(PATH).partition("/")
        return UrlTarget(url_id, slash + path or "/", host)
    match = _HOST.fullmatch(host.lower()) if len(host) <= _HOST_CHARS_MAX else None
    return None if match is None else UrlTarget(match[1], request.path, host.partition(":")[0])


def url_text(base_url: str, url_id: str, region: str) -> str:
    """The URL as callers are told it: `redrive.aws.wire.hosted_urls`."""
    return f"{hosted_url(base_url, f'{url_id}{_IN_HOST}{region}', f'{PATH}{url_id}')}/"


def without_url_in(draft: Draft, function: FunctionRecord, qualifier: str) -> FunctionRecord:
    """The function without the URL of an alias, or its own; the draft forgets the URL's id."""
    function_url = function.urls.get(qualifier)
    if function_url is None:
        return function
    draft.remove(FUNCTION_URL, function_url.id)
    return replace(function, urls={each: url for each, url in function.urls.items() if each != qualifier})
