"""A signature as a request presents it, in its Authorization header or in its query; nothing is proved yet.

Whoever sends a request decides what stands in it, so every step here is bounded (`QUERY_FIELDS_MAX` and its like).
"""

import base64
import hashlib
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple
from urllib.parse import unquote

from redrive.model.http import Request

SKEW_MS: Final = 15 * 60 * 1000  # how far the signer's clock may be off, as SQS, SNS and STS answer it
EXPIRES_SECONDS_MAX: Final = 604_800  # a presigned URL's longest life: a week

#: Parameters of a presigned query. 16 KiB of them would be eight thousand, and 10 ms to put in order; the longest call
#: that fits into a URL, a batch of ten messages with ten attributes each, has some 400.
QUERY_FIELDS_MAX: Final = 512
_AUTHORIZATION_PARTS_MAX: Final = 16  # four are usual
_DATE_CHARS_MAX: Final = 64

_BASIC_FORMAT: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_WHOLE_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_IN_HEADER: Final = ("Credential", "Signature", "SignedHeaders")
_IN_QUERY: Final = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
    "X-Amz-Date",
)
_SESSION_HEADER: Final = "x-amz-security-token"  # the header; a presigned URL has it in its query
_READ_IN_QUERY: Final = frozenset((*_IN_QUERY, "X-Amz-Expires"))


# ---- how a request without a good signature is answered --------------------------------------------------------


class SignatureRefused(Exception):  # noqa: N818 - these are answers, named as a caller says them
    """The caller is not who the request says, or the request does not say.

    Attributes:
        code: The query and REST-XML protocols' error code.
        json_code: The JSON and REST-JSON protocols' name for the same.
        status: The query protocol's HTTP status.
        message: The service's sentence.
    """

    code: ClassVar[str]
    json_code: ClassVar[str]
    status: ClassVar[int] = 403

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MissingToken(SignatureRefused):
    """The request carries no signature of this version."""

    code = "MissingAuthenticationToken"
    json_code = "MissingAuthenticationTokenException"

    def __init__(self) -> None:
        super().__init__("Request is missing Authentication Token")


class IncompleteSignature(SignatureRefused):
    """A part of the signature is absent or cannot be read."""

    code = "IncompleteSignature"
    json_code = "IncompleteSignatureException"
    status = 400


class UnknownKey(SignatureRefused):
    """Nobody has that access key, or it was switched off."""

    code = "InvalidClientTokenId"
    json_code = "UnrecognizedClientException"

    def __init__(self) -> None:
        super().__init__("The security token included in the request is invalid.")


class SignatureMismatch(SignatureRefused):
    """The request is not the one that was signed, or not now, or not here."""

    code = "SignatureDoesNotMatch"
    json_code = "InvalidSignatureException"

    def __init__(
        self,
        message: str = (
            "The request signature we calculated does not match the signature you provided. Check your AWS "
            "Secret Access Key and signing method. Consult the service documentation for details."
        ),
    ) -> None:
        super().__init__(message)


# ---- what the request says of its signature --------------------------------------------------------------------


class PresentedSignature(NamedTuple):
    """The claims of a request about its signature."""

    algorithm: str  # As named
    credential: str  # `key id/date/region/service/aws4_request`, if it is well-formed
    signed_headers: str  # Header names, separated by semicolons
    signature: str  # Hexadecimal, if it is well-formed
    timestamp: str  # When it was signed: ISO 8601's basic format, UTC
    signed_at: int  # The same in milliseconds since the epoch
    life_ms: int  # How long it may be used from then on
    query: str  # The request's query without the signature
    presigned: bool  # It stands in the query


def read_signature(request: Request) -> PresentedSignature:
    """Find and take apart the request's signature; raises SignatureRefused if there is not exactly one."""
    authorization = request.headers.get("authorization")
    in_query = bool(request.query) and "&X-Amz-Algorithm=" in f"&{request.query}"
    if authorization is None:
        if not in_query:
            raise MissingToken
        return _signature_in_query(request)
    if in_query:
        raise SignatureMismatch(
            "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
        )
    if not authorization.startswith("AWS4-"):
        raise MissingToken
    return _signature_in_header(request, authorization)


def _signature_in_header(request: Request, authorization: str) -> PresentedSignature:
    """The signature in an `Authorization` header; raises IncompleteSignature."""
    algorithm, *pieces = authorization.replace(",", " ").split(maxsplit=_AUTHORIZATION_PARTS_MAX)
    parts: dict[str, str] = {}
    for piece in pieces:
        name, separator, value = piece.partition("=")
        if not separator:
            raise IncompleteSignature(
                "Invalid key=value pair (missing equal-sign) in Authorization header (hashed with SHA-256 and "
                f"encoded with Base64): '{_fingerprint(authorization)}'."
            )
        parts.setdefault(name, value)  # the first of two, as `credential_scope` reads it
    timestamp = _header_timestamp(request)
    faults = [
        f"Authorization header requires '{name}' parameter." for name in _IN_HEADER if not parts.get(name)
    ]
    if not timestamp:
        faults.append("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.")
    if faults:
        digest = _fingerprint(authorization)
        faults.append(f"(Hashed with SHA-256 and encoded with Base64) Authorization={digest}")
        raise IncompleteSignature(" ".join(faults))
    return PresentedSignature(
        algorithm=algorithm,
        credential=parts["Credential"],
        signed_headers=parts["SignedHeaders"],
        signature=parts["Signature"],
        timestamp=timestamp,
        signed_at=_milliseconds(timestamp),
        life_ms=SKEW_MS,
        query=request.query,
        presigned=False,
    )


def _signature_in_query(request: Request) -> PresentedSignature:
    """The signature of a presigned URL; raises IncompleteSignature."""
    if request.query.count("&") >= QUERY_FIELDS_MAX:
        raise IncompleteSignature(
            f"A presigned query string has at most {QUERY_FIELDS_MAX} parameters. Send them in the body."
        )
    pieces = request.query.split("&")
    values: dict[str, str] = {}
    for piece in pieces:
        name, _, value = piece.partition("=")
        if name in _READ_IN_QUERY:
            values.setdefault(name, unquote(value))  # the first of two, as `credential_scope` reads it
    faults = [
        f"AWS query-string parameters must include '{name}'." for name in _IN_QUERY if not values.get(name)
    ]
    if faults:
        raise IncompleteSignature(" ".join([*faults, "Re-examine the query-string parameters."]))
    timestamp = values["X-Amz-Date"]
    return PresentedSignature(
        algorithm=values["X-Amz-Algorithm"],
        credential=values["X-Amz-Credential"],
        signed_headers=values["X-Amz-SignedHeaders"],
        signature=values["X-Amz-Signature"],
        timestamp=timestamp,
        signed_at=_milliseconds(timestamp),
        life_ms=_life_ms(values.get("X-Amz-Expires")),
        query="&".join(piece for piece in pieces if not piece.startswith("X-Amz-Signature=")),
        presigned=True,
    )


def _life_ms(expires: str | None) -> int:
    """A presigned request's life; without X-Amz-Expires it is as long as a header-signed one's."""
    if expires is None:
        return SKEW_MS
    if not _WHOLE_NUMBER.fullmatch(expires):
        raise IncompleteSignature("X-Amz-Expires should be a number")
    seconds = int(expires)
    if not 1 <= seconds <= EXPIRES_SECONDS_MAX:
        raise IncompleteSignature(
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be from "
            f"1 to {EXPIRES_SECONDS_MAX} seconds"
        )
    return seconds * 1000


def _header_timestamp(request: Request) -> str:
    """The signing time in ISO 8601's basic format, or whatever the headers have in its place."""
    date = request.headers.get("x-amz-date") or request.headers.get("date", "")
    if "," not in date or len(date) > _DATE_CHARS_MAX:
        return date
    try:
        moment = parsedate_to_datetime(date)
        # botocore writes its Date header with the zone -0000, which is read back without a zone: it is UTC.
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return date
    return f"{moment:%Y%m%dT%H%M%SZ}"


# A busy client signs many requests in one second. Only timestamps of sixteen characters are ever remembered: what has
# another form raises.
@lru_cache(maxsize=64)
def _milliseconds(timestamp: str) -> int:
    """The milliseconds since the epoch of a timestamp such as `20260102T030405Z`; raises IncompleteSignature."""
    try:
        if _BASIC_FORMAT.fullmatch(timestamp):
            return int(datetime.fromisoformat(timestamp).timestamp()) * 1000
    except ValueError:  # a thirteenth month
        pass
    raise IncompleteSignature(
        f"Date must be in ISO-8601 'basic format'. Got '{timestamp}'. See http://en.wikipedia.org/wiki/ISO_8601"
    )


def _fingerprint(text: str) -> str:
    """The digest that AWS answers instead of repeating a credential into somebody's log."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def token_of(request: Request) -> str:
    """The token that comes along with temporary credentials; empty: none."""
    token = request.headers.get(_SESSION_HEADER)
    if token is not None or not request.query:
        return token or ""
    for field in request.query.split("&"):
        name, _, value = field.partition("=")
        if name.lower() == _SESSION_HEADER:
            return unquote(value)
    return ""
