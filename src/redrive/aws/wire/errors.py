"""Errors of AWS services: one exception, whatever the protocol it is rendered in."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


class AwsError(Exception):
    """A refusal in the service's own words.

    Attributes:
        code: The error shape's name, what JSON protocols print in `__type`.
        message: The text for JSON protocols; empty if the real service prints none.
        query_code: The code query protocols print, and `x-amzn-query-error` carries.
        query_message: The text for query protocols, where it differs from the JSON text.
        status: The HTTP status.
        sender: Whether the caller is at fault (`Sender`) or the service (`Receiver`).
        namespace: The Smithy namespace of `code`; empty means the service's own.
        details: Further members of a REST error's body, and headers by the names that the model gives them.
    """

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        query_code: str = "",
        query_message: str | None = None,
        status: int = 400,
        sender: bool = True,
        namespace: str = "",
        details: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.query_code = query_code or code
        self.query_message = message if query_message is None else query_message
        self.status = status
        self.sender = sender
        self.namespace = namespace
        self.details = details

    @property
    def fault(self) -> str:
        """`Sender` or `Receiver`, the word query protocols and `x-amzn-query-error` use."""
        return "Sender" if self.sender else "Receiver"


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """The fixed half of an error: everything but its text."""

    code: str
    query_code: str
    status: int = 400
    sender: bool = True
    namespace: str = ""

    def says(self, message: str, query_message: str | None = None) -> AwsError:
        """Return the error with its text.

        Args:
            message: The text for JSON protocols, and for query unless `query_message` is given.
            query_message: The text for query protocols.
        """
        return AwsError(
            self.code,
            message,
            query_code=self.query_code,
            query_message=query_message,
            status=self.status,
            sender=self.sender,
            namespace=self.namespace,
        )


_CORAL: Final = "com.amazon.coral.service"

#: Errors no service model lists, because the framework in front of the services answers them. Codes and
#: statuses follow the "Common Errors" page of the AWS API references; the JSON spellings of the signature
#: errors and their 403 were captured from SQS.
COMMON: Final[tuple[ErrorKind, ...]] = (
    ErrorKind("SerializationException", "MalformedInput", namespace=_CORAL),
    ErrorKind("UnknownOperationException", "InvalidAction", namespace=_CORAL),
    ErrorKind("ValidationException", "ValidationError", namespace="com.amazon.coral.validate"),
    ErrorKind("AccessDeniedException", "AccessDenied", 403, namespace=_CORAL),
    ErrorKind("InvalidSignatureException", "SignatureDoesNotMatch", 403, namespace=_CORAL),
    ErrorKind("IncompleteSignatureException", "IncompleteSignature", namespace=_CORAL),
    ErrorKind("MissingAuthenticationTokenException", "MissingAuthenticationToken", 403, namespace=_CORAL),
    ErrorKind("UnrecognizedClientException", "InvalidClientTokenId", 403, namespace=_CORAL),
    ErrorKind("ExpiredTokenException", "ExpiredToken", 403, namespace=_CORAL),
    ErrorKind("RequestExpiredException", "RequestExpired", namespace=_CORAL),
    ErrorKind("ThrottlingException", "Throttling", namespace=_CORAL),
    ErrorKind("InternalFailure", "InternalFailure", 500, sender=False, namespace=_CORAL),
    ErrorKind("ServiceUnavailableException", "ServiceUnavailable", 503, sender=False, namespace=_CORAL),
    ErrorKind("MissingParameter", "MissingParameter", namespace=_CORAL),
    ErrorKind("InvalidParameterValue", "InvalidParameterValue", namespace=_CORAL),
    ErrorKind("InvalidParameterCombination", "InvalidParameterCombination", namespace=_CORAL),
)

_COMMON_BY_CODE: Final = {kind.code: kind for kind in COMMON}


def common(code: str, message: str = "", query_message: str | None = None) -> AwsError:
    """An error that all services have; raises KeyError if `code` is not one of `COMMON`."""
    return _COMMON_BY_CODE[code].says(message, query_message)
