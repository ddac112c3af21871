"""The answers of API Gateway itself, where an API or what is behind it does not answer.

https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Told(NamedTuple):
    """An answer as it is unless an API has one of its own."""

    status: int  # 0: that of the refusal
    message: str  # Its text
    error: str  # The code in `x-amzn-ErrorType`


RESPONSES: Final[Mapping[str, Told]] = {
    "ACCESS_DENIED": Told(403, "User is not authorized to access this resource", "AccessDeniedException"),
    "API_CONFIGURATION_ERROR": Told(500, "Internal server error", "InternalServerErrorException"),
    "AUTHORIZER_CONFIGURATION_ERROR": Told(500, "", "AuthorizerConfigurationException"),  # `null` (recorded)
    "AUTHORIZER_FAILURE": Told(500, "Internal server error", "AuthorizerFailureException"),
    "BAD_REQUEST_BODY": Told(400, "Invalid request body", "BadRequestException"),
    "BAD_REQUEST_PARAMETERS": Told(400, "Missing required request parameters: [{}]", "BadRequestException"),
    "DEFAULT_4XX": Told(0, "", ""),
    "DEFAULT_5XX": Told(0, "Internal server error", "InternalServerErrorException"),
    "EXPIRED_TOKEN": Told(
        403, "The security token included in the request is expired", "ExpiredTokenException"
    ),
    "INTEGRATION_FAILURE": Told(
        504, "Network error communicating with endpoint", "InternalServerErrorException"
    ),
    "INTEGRATION_TIMEOUT": Told(504, "Endpoint request timed out", "InternalServerErrorException"),
    "INVALID_API_KEY": Told(403, "Forbidden", "ForbiddenException"),
    "INVALID_SIGNATURE": Told(
        403,
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access"
        " Key and signing method. Consult the service documentation for details.",
        "InvalidSignatureException",
    ),
    "MISSING_AUTHENTICATION_TOKEN": Told(
        403, "Missing Authentication Token", "MissingAuthenticationTokenException"
    ),
    "QUOTA_EXCEEDED": Told(429, "Limit Exceeded", "LimitExceededException"),
    "REQUEST_TOO_LARGE": Told(413, "Request Too Long", "RequestTooLargeException"),
    "RESOURCE_NOT_FOUND": Told(404, "Not Found", "NotFoundException"),
    "THROTTLED": Told(429, "Too Many Requests", "TooManyRequestsException"),
    "UNAUTHORIZED": Told(401, "Unauthorized", "UnauthorizedException"),
    "UNSUPPORTED_MEDIA_TYPE": Told(415, "Unsupported Media Type", "BadRequestException"),
    "WAF_FILTERED": Told(403, "Forbidden", "ForbiddenException"),
}
#: The answers for all of a class, by the first digit of its statuses.
DEFAULTS: Final[Mapping[int, str]] = {4: "DEFAULT_4XX", 5: "DEFAULT_5XX"}
#: A function that fails, or whose answer is no HTTP response: 502 where all else of the kind is 500.
BAD_GATEWAY: Final = 502
_SERVER: Final = 500


class Refusal(Exception):  # noqa: N818 - an answer
    """A request that is answered by API Gateway itself.

    Attributes:
        kind: Of the answer: a key of `RESPONSES`.
        status: Of the answer.
        message: Its text.
        error: Its code.
        reason: What happened, for execution logs; callers are not told.
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
        """Refuse by an answer of the table.

        Args:
            kind: The answer's.
            status: In the place of the table's; 0: the table's.
            message: In the place of the table's; empty: the table's.
            detail: What the table's text leaves open.
            reason: What happened.
            challenge: See the attribute.
        """
        default = RESPONSES[kind]
        super().__init__(kind)
        self.kind = kind
        self.status = status or default.status or _SERVER
        self.message = message or default.message.format(detail)
        self.error = default.error
        self.reason = reason or self.message
        self.challenge = challenge
