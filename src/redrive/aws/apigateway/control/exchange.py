"""One request to an API on its way, its refusal, and the responses of the API's own for each kind of refusal.

https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from redrive.access.principals import Principal
from redrive.aws.apigateway.control.targets import InvokeTarget
from redrive.aws.wire.http_events import forwarding_headers, moment_text, query_of, trace_of
from redrive.model.http import Request


class DefaultResponse(NamedTuple):
    """A response to a refused request, unless the API has one of its own."""

    status: int  # 0: the status of the refusal
    message: str  # Its text
    error: str  # The code in `x-amzn-ErrorType`


RESPONSES: Final[Mapping[str, DefaultResponse]] = {
    "ACCESS_DENIED": DefaultResponse(
        403, "User is not authorized to access this resource", "AccessDeniedException"
    ),
    "API_CONFIGURATION_ERROR": DefaultResponse(500, "Internal server error", "InternalServerErrorException"),
    # Its text is `null` (recorded).
    "AUTHORIZER_CONFIGURATION_ERROR": DefaultResponse(500, "", "AuthorizerConfigurationException"),
    "AUTHORIZER_FAILURE": DefaultResponse(500, "Internal server error", "AuthorizerFailureException"),
    "BAD_REQUEST_BODY": DefaultResponse(400, "Invalid request body", "BadRequestException"),
    "BAD_REQUEST_PARAMETERS": DefaultResponse(
        400, "Missing required request parameters: [{}]", "BadRequestException"
    ),
    "DEFAULT_4XX": DefaultResponse(0, "", ""),
    "DEFAULT_5XX": DefaultResponse(0, "Internal server error", "InternalServerErrorException"),
    "EXPIRED_TOKEN": DefaultResponse(
        403, "The security token included in the request is expired", "ExpiredTokenException"
    ),
    "INTEGRATION_FAILURE": DefaultResponse(
        504, "Network error communicating with endpoint", "InternalServerErrorException"
    ),
    "INTEGRATION_TIMEOUT": DefaultResponse(504, "Endpoint request timed out", "InternalServerErrorException"),
    "INVALID_API_KEY": DefaultResponse(403, "Forbidden", "ForbiddenException"),
    "INVALID_SIGNATURE": DefaultResponse(
        403,
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access"
        " Key and signing method. Consult the service documentation for details.",
        "InvalidSignatureException",
    ),
    "MISSING_AUTHENTICATION_TOKEN": DefaultResponse(
        403, "Missing Authentication Token", "MissingAuthenticationTokenException"
    ),
    "QUOTA_EXCEEDED": DefaultResponse(429, "Limit Exceeded", "LimitExceededException"),
    "REQUEST_TOO_LARGE": DefaultResponse(413, "Request Too Long", "RequestTooLargeException"),
    "RESOURCE_NOT_FOUND": DefaultResponse(404, "Not Found", "NotFoundException"),
    "THROTTLED": DefaultResponse(429, "Too Many Requests", "TooManyRequestsException"),
    "UNAUTHORIZED": DefaultResponse(401, "Unauthorized", "UnauthorizedException"),
    "UNSUPPORTED_MEDIA_TYPE": DefaultResponse(415, "Unsupported Media Type", "BadRequestException"),
    "WAF_FILTERED": DefaultResponse(403, "Forbidden", "ForbiddenException"),
}
#: The kinds of responses that stand for a whole class, by the first digit of its statuses.
DEFAULTS: Final[Mapping[int, str]] = {4: "DEFAULT_4XX", 5: "DEFAULT_5XX"}
#: The status if a function fails, or its answer is no HTTP response; other faults of the kind have 500.
BAD_GATEWAY: Final = 502
_SERVER: Final = 500


class Refusal(Exception):  # noqa: N818 - an answer
    """A request that is answered by API Gateway itself.

    Attributes:
        kind: The kind of the answer, a key of `RESPONSES`.
        status: The status of the answer.
        message: The text of the answer.
        error: The code of the answer.
        reason: The cause, for execution logs; it is not sent to the caller.
        challenge: The header that says how to authenticate; empty: there is none.
    """

    def __init__(
        self,
        kind: str,
        *,
        status: int = 0,
        message: str = "",
        detail: str = "",
        reason: str = "",
        challenge: str = "",
    ) -> None:
        """Refuse with a response of the table, whose members stand in for omitted arguments.

        - `detail`: completes the table's text.
        - `reason`: the cause, for logs.
        - `challenge`: see the attribute.
        """
        default = RESPONSES[kind]
        super().__init__(kind)
        self.kind = kind
        self.status = status or default.status or _SERVER
        self.message = message or default.message.format(detail)
        self.error = default.error
        self.reason = reason or self.message
        self.challenge = challenge


#: RFC 3986's, but for the wildcards of policies: authorizers allow the ARN that they are told of.
_SAFE_IN_PATHS: Final = "-._~!$&'()+,;=:@"
_STAGE_VARIABLE: Final = re.compile(r"\$\{stageVariables\.([A-Za-z0-9_]+)\}")


@dataclass(frozen=True, slots=True)
class StagePlace:
    """The stage of an API that a request came to."""

    account: str  # The API's
    region: str  # Region
    api: str  # The API's id
    name: str  # The API's
    stage: str  # Its name
    deployment: str = ""  # The id of the deployment that the stage serves
    variables: Mapping[str, str] = field(default_factory=dict)  # Stage variables

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
    target: InvokeTarget  # The API and path addressed
    stage_place: StagePlace  # The stage addressed
    path: str  # Behind the stage, still percent-encoded
    id: str  # Request id
    now: int  # When it came (ms)
    route: str = ""  # The path of the resource, or the key of the route: `/orders/{id}`, `POST /orders`
    resource: str = ""  # The id of the resource
    method: str = ""  # The declared method that it matched, which may be `ANY`
    parameters: Mapping[str, str] = field(default_factory=dict)  # Path parameters, decoded
    caller: Principal | None = None  # Principal that signed it; None: no signature is required
    api_key: tuple[str, str] = ("", "")  # The id and the value of its API key, if the method requires one
    authorizer: Mapping[str, Any] = field(default_factory=dict)  # Context from the authorizer
    authorizer_kind: str = ""  # Kind of an HTTP API's authorizer in events: `jwt` or `lambda`
    usage_key: str = ""  # The API key that the authorizer chose for the caller
    # Facts about the integration's answer: `status`, `latency`, `error`.
    integration: dict[str, Any] = field(default_factory=dict)
    # The failure: `message`, `responseType`, `validationErrorString`.
    error: dict[str, Any] = field(default_factory=dict)
    # The values by which a template overrides those of the mapped request or response.
    overrides: dict[str, Any] = field(default_factory=dict)
    # The requests to the integration and its answers, each with a name, for a test; None: it is no test.
    trail: list[tuple[str, object]] | None = None

    @cached_property
    def policy_path(self) -> str:
        """The path that policies are asked about, in one spelling: the routes take several, and a Deny holds for all.

        Parts of dots stay, as the routes take them for any other text.
        """
        parts = (quote(unquote_to_bytes(part), safe=_SAFE_IN_PATHS) for part in self.path.split("/") if part)
        return f"/{'/'.join(parts)}"

    @cached_property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The parameters of the query; empty if there are too many."""
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
        request, api_place = self.request, self.stage_place
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
        key_id, key_value = self.api_key
        return {
            "accessKey": None,
            "accountId": None if caller is None else caller.account,
            "apiKey": key_value or None,
            "apiKeyId": key_id or None,
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
        """The second id of a request, which Amazon's front end gives it."""
        return f"{self.id.replace('-', '')[:15]}="


def _headers(request: Request) -> Mapping[str, str]:
    """The headers, with capitals in their names, and those that a load balancer adds."""
    return {
        capitalized(name): value for name, value in {**request.headers, **forwarding_headers(request)}.items()
    }


def capitalized(name: str) -> str:
    """A header's name with capitals: `Content-Type`."""
    return "-".join(word.capitalize() for word in name.split("-"))


def lists_of(headers: Mapping[str, str]) -> dict[str, list[str]]:
    """Headers with lists of values; values that were joined by commas are one."""
    return {name: [value] for name, value in headers.items()}


def last_values(query: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Parameters of a query by their last values."""
    return {name: values[-1] for name, values in query.items()}


def with_variables(exchange: Exchange, uri: str) -> str:
    """A URI with the stage's variables in their places."""
    variables = exchange.stage_place.variables
    return _STAGE_VARIABLE.sub(lambda match: variables.get(match[1], ""), uri)
