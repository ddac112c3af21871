"""Integrations of services of this server: the request that a mapping makes, answered by the service's own operation."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from redrive.access.principals import Principal
from redrive.aws.apigateway.control.exchange import Exchange, with_variables
from redrive.aws.apigateway.control.gateway_responses import Refusal
from redrive.aws.apigateway.requests.answers import JSON, ApiAnswer
from redrive.aws.apigateway.rest.mapping import Mapped
from redrive.aws.gateway.wire_calls import WireCalls
from redrive.aws.wire.profiles import profiles
from redrive.model.http import Request

_URI: Final = re.compile(
    r"arn:aws[a-z-]*:apigateway:([a-z0-9-]+):(?:([a-z0-9-]+)\.)?([a-z0-9.-]+):(path|action)/(.*)", re.DOTALL
)
#: As URIs call those of this server.
_SERVICES: Final = frozenset(
    name
    for profile in profiles().values()
    for name in (profile.name, profile.endpoint_prefix, *profile.hosts)
)
_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")
_FORM: Final = "application/x-www-form-urlencoded"
_FUNCTION_ERROR: Final = "X-Amz-Function-Error"


class ServiceUri(NamedTuple):
    """The URI of a service's integration."""

    region: str  # Where the service is asked
    service: str  # As host names call it: `sns`
    subdomain: str  # In the host's name before it; empty: none
    kind: str  # `path` or `action`
    rest: str  # The path, or the name of the operation


def read_uri(uri: str) -> ServiceUri:
    """Read the URI of a service's integration.

    Raises:
        Refusal: The text is no URI of a service.
    """
    match = _URI.fullmatch(uri)
    if match is None:
        raise Refusal("API_CONFIGURATION_ERROR", reason=f"{uri} is not the URI of a service")
    return ServiceUri(match[1], match[3], match[2] or "", match[4], match[5])


class ServiceIntegration:
    """Calls services as integrations of the type `AWS` do."""

    def __init__(self, calls: WireCalls) -> None:
        self._calls = calls

    async def call(
        self, exchange: Exchange, integration: Mapping[str, Any], mapped: Mapped, caller: Principal
    ) -> ApiAnswer:
        """The service's answer.

        Raises:
            Refusal: The integration cannot be made a request, or one of a service that there is not.
        """
        uri = read_uri(with_variables(exchange, integration["uri"]))
        if uri.service not in _SERVICES:
            raise Refusal("API_CONFIGURATION_ERROR", reason=f"This server does not offer {uri.service}")
        request = _request(exchange, integration, uri, mapped)
        response = await self._calls.answer(request, caller, uri.region, exchange.id)
        headers = {name.lower(): value for name, value in response.headers.items()}
        headers["content-type"] = response.content_type
        failure = _failure(response.headers, response.body) if uri.service == "lambda" else None
        return ApiAnswer(response.status, response.body, headers, failure=failure)


def _request(exchange: Exchange, integration: Mapping[str, Any], uri: ServiceUri, mapped: Mapped) -> Request:
    host = f"{uri.service}.{uri.region}.amazonaws.com"
    headers = {name.lower(): value for name, value in mapped.headers.items()}
    headers = {"accept": JSON, **headers, "host": f"{uri.subdomain}.{host}" if uri.subdomain else host}
    headers.pop("authorization", None)
    method, query, body = integration["httpMethod"], dict(mapped.query), mapped.body
    if uri.kind == "action":
        query = {"Action": uri.rest, **query}
        if not headers.get("content-type", "").startswith(_FORM):  # parameters stand in the query alone
            body = b""
            headers["content-type"] = _FORM
        path = "/"
    else:
        path = "/" + _VARIABLE.sub(
            lambda match: quote(mapped.path.get(match[1], match[0]), safe=""), uri.rest
        ).lstrip("/")
    if "?" in path:
        path, _, query_text = path.partition("?")
        text = "&".join(part for part in (query_text, urlencode(query)) if part)
    else:
        text = urlencode(query)
    return Request(method, path, text, headers, body, "https", exchange.request.client_host)


def _failure(headers: Mapping[str, str], body: bytes) -> str | None:
    """The message of a function that failed; None: it did not fail."""
    if not any(name.lower() == _FUNCTION_ERROR.lower() for name in headers):
        return None
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")
    message = document.get("errorMessage") if isinstance(document, dict) else None
    return str(message) if message is not None else ""
