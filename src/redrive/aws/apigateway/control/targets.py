"""Invoke URLs: which API, stage and path a request is for, and how the URL is written."""

import re
from typing import Final, NamedTuple

from redrive.aws.wire.hosted_urls import HostedUrls
from redrive.model.http import Request

_HOST: Final = re.compile(r"([a-z0-9-]{1,63})\.execute-api\.([a-z0-9-]+)\..+", re.IGNORECASE)
_HOST_CHARS_MAX: Final = 300
BODY_BYTES_MAX: Final = 10 * 1024 * 1024
PATH: Final = "/_aws/execute-api/"
_OLD: Final = re.compile(r"/restapis/([^/]+)/([^/]+)/_user_request_(/.*)?")
URLS: Final = HostedUrls(".execute-api.", re.compile(rf"{PATH}|/restapis/.*/_user_request_"), BODY_BYTES_MAX)


class InvokeTarget(NamedTuple):
    """The target of a request to an API."""

    api: str  # The API's id
    path: str  # Rest of the path: the stage first, unless it is the unnamed stage
    domain: str  # The host that the caller came to
    # The stage, if it is not in the path; empty: the path begins with it, or it is the unnamed one.
    stage: str = ""


def target_of(request: Request) -> InvokeTarget | None:
    """The target of a request; None if its host or its path only looks like an API's."""
    host = request.host
    domain = host.partition(":")[0]
    if request.path.startswith(PATH):
        api_id, _, rest = request.path.removeprefix(PATH).partition("/")
        stage, slash, path = rest.partition("/")
        return InvokeTarget(api_id, f"{slash}{path}" or "/", domain, stage)
    old_form = _OLD.fullmatch(request.path)
    if old_form is not None:
        api_id, stage, path = old_form.groups()
        return InvokeTarget(api_id, path or "/", domain, stage)
    api_host = _HOST.fullmatch(host) if len(host) <= _HOST_CHARS_MAX else None
    return None if api_host is None else InvokeTarget(api_host[1].lower(), request.path, domain)
