"""One request to an API on its way: what is known of it, and what became of it so far."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from redrive.access.principals import Principal
from redrive.aws.apigateway.control.targets import InvokeTarget
from redrive.aws.wire.http_events import forwarding, moment_text, query_of, trace_of
from redrive.model.http import Request

_STAGE_VARIABLE: Final = re.compile(r"\$\{stageVariables\.([A-Za-z0-9_]+)\}")


@dataclass(frozen=True, slots=True)
class StagePlace:
    """The stage of an API that a request came to."""

    account: str  # The API's
    region: str  # Where it is
    api: str  # The API's id
    name: str  # The API's
    stage: str  # Its name
    deployment: str = ""  # The id of the deployment that the stage shows
    variables: Mapping[str, str] = field(default_factory=dict)  # Of the stage

    def arn(self, method: str, path: str) -> str:
        """The ARN that policies know a method by."""
        return f"arn:aws:execute-api:{self.region}:{self.account}:{self.api}/{self.stage}/{method}{path}"

    def authorizer_arn(self, authorizer_id: str) -> str:
        """The ARN that policies of functions know an authorizer by."""
        return f"arn:aws:execute-api:{self.region}:{self.account}:{self.api}/authorizers/{authorizer_id}"


@dataclass
class Exchange:
    """A request to an API."""

    request: Request  # As it came
    target: InvokeTarget  # Where it leads
    place: StagePlace  # The stage that it is for
    path: str  # Behind the stage, still percent-encoded
    id: str  # Of the request
    now: int  # When it came (ms)
    route: str = ""  # The path of the resource, or the key of the route: `/orders/{id}`, `POST /orders`
    resource: str = ""  # The id of the resource
    method: str = ""  # The method that was declared for it: `ANY` may be one
    parameters: Mapping[str, str] = field(default_factory=dict)  # Of the path, decoded
    caller: Principal | None = None  # Who signed it; None: nobody had to
    api_key: tuple[str, str] = ("", "")  # The id and the value of the key that it showed, where it had to
    authorizer: Mapping[str, Any] = field(default_factory=dict)  # What an authorizer told of its caller
    authorizer_kind: str = ""  # Of an HTTP API's authorizer, as events call it: `jwt` or `lambda`
    usage_key: str = ""  # The API key that the authorizer chose for the caller
    # What is known of the answer of what is behind the method: `status`, `latency`, `error`.
    integration: dict[str, Any] = field(default_factory=dict)
    # What went wrong: `message`, `responseType`, `validationErrorString`.
    error: dict[str, Any] = field(default_factory=dict)
    # What a template put in the place of the mapped request or response.
    overrides: dict[str, Any] = field(default_factory=dict)
    # What went to the integration and what came back, each with a name, for a test; None: nobody asks.
    trail: list[tuple[str, object]] | None = None

    @cached_property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The parameters of the query; none of one that has too many."""
        return query_of(self.request)

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The headers as functions and templates see them."""
        return {**_headers(self.request), "X-Amzn-Trace-Id": self.trace_id}

    @property
    def trace_id(self) -> str:
        """The request's name in traces: the caller's, or a new one."""
        return trace_of(self.request, self.now, self.id)

    @cached_property
    def body_text(self) -> str:
        """The body as text."""
        return self.request.body.decode("utf-8", "replace")

    def header(self, name: str) -> str | None:
        """A header's value, whatever the case of its name."""
        return self.request.headers.get(name.lower())

    @property
    def content_type(self) -> str:
        """The body's type without parameters."""
        content_type = self.request.headers.get("content-type", "")
        return content_type.partition(";")[0].strip().lower() or "application/json"

    def context(self) -> dict[str, Any]:
        """`$context` as templates, parameter mappings and access logs have it."""
        request, api_place = self.request, self.place
        return {
            "accountId": api_place.account,
            "apiId": api_place.api,
            "authorizer": dict(self.authorizer),
            "deploymentId": api_place.deployment,
            "domainName": self.target.domain,
            "domainPrefix": self.target.domain.partition(".")[0],
            "error": dict(self.error),
            "extendedRequestId": self.extended_id,
            "httpMethod": request.method,
            "identity": self.identity(),
            "integration": dict(self.integration),
            "path": f"/{api_place.stage}{self.path}",
            "protocol": "HTTP/1.1",
            "requestId": self.id,
            "requestTime": moment_text(self.now // 1000),
            "requestTimeEpoch": self.now,
            "resourceId": self.resource,
            "resourcePath": self.route,
            "stage": api_place.stage,
        }

    def identity(self) -> dict[str, Any]:
        """The identity of the caller, as far as it is known; the rest stays null."""
        caller = self.caller
        user = None if caller is None else caller.keys.get("aws:userid", caller.account)
        return {
            "accessKey": None,
            "accountId": None if caller is None else caller.account,
            "apiKey": self.api_key[1] or None,
            "apiKeyId": self.api_key[0] or None,
            "caller": user,
            "cognitoAuthenticationProvider": None,
            "cognitoAuthenticationType": None,
            "cognitoIdentityId": None,
            "cognitoIdentityPoolId": None,
            "principalOrgId": None,
            "sourceIp": self.request.client_host,
            "user": user,
            "userAgent": self.request.headers.get("user-agent"),
            "userArn": None if caller is None else caller.name,
        }

    @property
    def extended_id(self) -> str:
        """The id that Amazon's front end has for a request besides."""
        return f"{self.id.replace('-', '')[:15]}="


def _headers(request: Request) -> Mapping[str, str]:
    """The headers with names as clients mostly write them, and those that a load balancer adds."""
    return {spelled(name): value for name, value in {**request.headers, **forwarding(request)}.items()}


def spelled(name: str) -> str:
    """A header's name with capitals: `Content-Type`."""
    return "-".join(word.capitalize() for word in name.split("-"))


def lists_of(headers: Mapping[str, str]) -> dict[str, list[str]]:
    """Headers as those of several values have them: a joined value is one."""
    return {name: [value] for name, value in headers.items()}


def last_values(query: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Parameters of a query by their last values."""
    return {name: values[-1] for name, values in query.items()}


def with_variables(exchange: Exchange, uri: str) -> str:
    """A URI with the stage's variables in their places."""
    variables = exchange.place.variables
    return _STAGE_VARIABLE.sub(lambda match: variables.get(match[1], ""), uri)
