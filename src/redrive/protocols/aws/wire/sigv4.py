"""AWS Signature Version 4, the server's half: who signed a request, and did it arrive as it was signed.

Pure: the time and the secrets come in as arguments. The checks run in the order in which AWS services were seen
to answer: form, date, Host, algorithm, credential scope, key, signature.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from redrive.protocols.aws.wire.sigv4_canonical import canonical_digests
from redrive.protocols.aws.wire.sigv4_claim import EXPIRES_SECONDS_MAX, SKEW_MS, Claim, read_claim
from redrive.protocols.aws.wire.sigv4_refusals import (
    IncompleteSignature,
    MissingToken,
    SignatureMismatch,
    SignatureRefused,
    UnknownKey,
)
from redrive.protocols.http import Request

__all__ = [
    "EXPIRES_SECONDS_MAX",
    "SKEW_MS",
    "IncompleteSignature",
    "MissingToken",
    "Scope",
    "SignatureMismatch",
    "SignatureRefused",
    "Signed",
    "UnknownKey",
    "credential_scope",
    "verify",
]

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_TERMINATOR: Final = "aws4_request"
_SCOPE_ELEMENTS: Final = 5


@dataclass(frozen=True, slots=True)
class Scope:
    """What a credential says of itself; only a verified signature makes it true.

    Attributes:
        access_key_id: Whose.
        date: The day it was signed, `YYYYMMDD`, UTC.
        region: Where it may be used.
        service: The signing name of the service it may be used with.
    """

    access_key_id: str
    date: str
    region: str
    service: str


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature that holds: the Scope's attributes, now true, and whether it came in the query."""

    access_key_id: str
    date: str
    region: str
    service: str
    presigned: bool


def credential_scope(request: Request) -> Scope | None:
    """Read the credential without verifying anything: for routing, and for `--auth off`.

    Returns:
        None where the request has no readable credential.
    """
    authorization = request.headers.get("authorization")
    if authorization is not None:
        _, found, rest = authorization.partition("Credential=")
        return _scope(rest.partition(",")[0].rstrip()) if found else None
    _, found, rest = f"&{request.query}".partition("&X-Amz-Credential=")
    return _quoted_scope(rest.partition("&")[0]) if found else None


def verify(
    request: Request,
    secret_of: Callable[[str], str | None],
    now: int,
    *,
    region: str | None = None,
    service: str | None = None,
) -> Signed:
    """Prove who signed a request.

    Args:
        request: As it arrived.
        secret_of: From an access key id to its secret; None where the key is unknown or switched off.
        now: Milliseconds since the epoch, UTC.
        region: The only region to accept, if there is one.
        service: The only signing name to accept, where something else chose the route.

    Raises:
        SignatureRefused: One of its four kinds.
    """
    claim = read_claim(request)
    _check_time(claim, now)
    if "host" not in claim.signed_headers.lower().split(";"):
        raise SignatureMismatch("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
    if claim.algorithm != _ALGORITHM:
        named = f"'{claim.algorithm}' (only {_ALGORITHM} for now)"
        raise IncompleteSignature(f"Unsupported AWS 'algorithm': {named}.")
    scope = _checked_scope(claim, region, service)
    secret = secret_of(scope.access_key_id)
    if secret is None:
        raise UnknownKey
    _check_signature(request, claim, scope, secret)
    return Signed(scope.access_key_id, scope.date, scope.region, scope.service, claim.presigned)


# The strings repeat for a day per key, region and service, so nearly every request finds its credential here.
@lru_cache(maxsize=1024)
def _scope(credential: str) -> Scope | None:
    elements = credential.split("/")
    if len(elements) != _SCOPE_ELEMENTS:
        return None
    return Scope(*elements[:4])


@lru_cache(maxsize=1024)
def _quoted_scope(credential: str) -> Scope | None:
    return _scope(unquote(credential))


def _check_time(claim: Claim, now: int) -> None:
    if claim.signed_at < now - claim.life_ms:
        raise SignatureMismatch(
            f"Signature expired: {claim.timestamp} is now earlier than {_basic_format(now - claim.life_ms)} "
            f"({_basic_format(now)} - {_span(claim.life_ms)})"
        )
    if claim.signed_at > now + SKEW_MS:
        raise SignatureMismatch(
            f"Signature not yet current: {claim.timestamp} is still later than {_basic_format(now + SKEW_MS)} "
            f"({_basic_format(now)} + {_span(SKEW_MS)})"
        )


def _basic_format(moment_ms: int) -> str:
    return f"{datetime.fromtimestamp(moment_ms // 1000, UTC):%Y%m%dT%H%M%SZ}"


def _span(span_ms: int) -> str:
    minutes, rest_ms = divmod(span_ms, 60_000)
    return f"{span_ms // 1000} sec." if rest_ms else f"{minutes} min."


def _checked_scope(claim: Claim, region: str | None, service: str | None) -> Scope:
    scope = _scope(claim.credential)
    if scope is None:
        raise IncompleteSignature(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got "
            f"'{claim.credential}'"
        )
    wrong = []
    if region is not None and scope.region != region:
        wrong.append(f"Credential should be scoped to a valid region, not '{scope.region}'.")
    if service is not None and scope.service != service:
        wrong.append(f"Credential should be scoped to correct service: '{service}'.")
    terminator = claim.credential.rpartition("/")[2]
    if terminator != _TERMINATOR:
        wrong.append(
            f"Credential should be scoped with a valid terminator: '{_TERMINATOR}', not '{terminator}'."
        )
    if scope.date != claim.timestamp[:8]:
        wrong.append(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
            f"'{scope.date}' != '{claim.timestamp[:8]}', from '{claim.timestamp}'."
        )
    if wrong:
        raise SignatureMismatch(" ".join(wrong))
    return scope


def _check_signature(request: Request, claim: Claim, scope: Scope, secret: str) -> None:
    key = _signing_key(secret, scope.date, scope.region, scope.service)
    scope_text = f"{scope.date}/{scope.region}/{scope.service}/{_TERMINATOR}"
    given = claim.signature.encode()
    for digest in canonical_digests(request, claim.query, claim.signed_headers):
        text = f"{_ALGORITHM}\n{claim.timestamp}\n{scope_text}\n{digest}"
        if hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex().encode(), given):
            return
    raise SignatureMismatch


# Saves four HMACs a request; 256 keys in use at one node on one day is already a crowd.
@lru_cache(maxsize=256)
def _signing_key(secret: str, date: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for element in (date, region, service, _TERMINATOR):
        key = hmac.digest(key, element.encode(), "sha256")
    return key
