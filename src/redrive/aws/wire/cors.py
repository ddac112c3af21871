"""Cross-origin rules of function URLs and HTTP APIs: which pages' scripts may ask, as the configuration says.

https://docs.aws.amazon.com/lambda/latest/dg/urls-configuration.html#urls-cors
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.model.http import Request, Response

_ANY: Final = "*"
_SCHEMES: Final = frozenset({"https://*", "http://*"})  # which HTTP APIs allow whole


def preflight(cors: Mapping[str, Any] | None, request: Request) -> Response | None:
    """The answer to a browser's preflight request; None: it is another request, or there are no rules."""
    is_preflight = request.method == "OPTIONS" and "access-control-request-method" in request.headers
    if cors is None or not is_preflight:
        return None
    headers = sharing_headers(cors, request)
    if headers:
        for name, member in (("Methods", "AllowMethods"), ("Headers", "AllowHeaders")):
            if cors.get(member):
                headers[f"Access-Control-Allow-{name}"] = _join(cors[member])
        if cors.get("MaxAge"):
            headers["Access-Control-Max-Age"] = str(cors["MaxAge"])
    return Response(200, b"", "application/json", headers)


def sharing_headers(cors: Mapping[str, Any] | None, request: Request) -> dict[str, str]:
    """The headers that let the page which asks read the answer; none, if it may not."""
    origin = request.headers.get("origin")
    if cors is None or origin is None or not _is_allowed(cors.get("AllowOrigins") or (), origin):
        return {}
    with_credentials = bool(cors.get("AllowCredentials"))
    any_origin = _ANY in cors["AllowOrigins"] and not with_credentials
    headers = {"Access-Control-Allow-Origin": _ANY if any_origin else origin}
    if not any_origin:
        headers["Vary"] = "Origin"
    if with_credentials:
        headers["Access-Control-Allow-Credentials"] = "true"
    if cors.get("ExposeHeaders"):
        headers["Access-Control-Expose-Headers"] = _join(cors["ExposeHeaders"])
    return headers


def _is_allowed(origins: Sequence[str], origin: str) -> bool:
    prefixes = (each[:-1] for each in origins if each in _SCHEMES)
    return _ANY in origins or origin in origins or any(origin.startswith(each) for each in prefixes)


def _join(values: Sequence[str]) -> str:
    return ",".join(values)
