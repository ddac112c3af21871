"""AWS Signature Version 4, the server's half: who signed a request, and did it arrive as it was signed.

Pure: the time and the secrets come in as arguments. The checks run in the order in which AWS services were seen
to answer: form, date, signed headers, algorithm, credential scope, key, signature. Nothing is hashed for a key that
nobody has.

A request is put in the form that is hashed as botocore's `SigV4Auth` and `SigV4QueryAuth` put it: a path is normalised
and encoded twice. S3's other rules are in `sigv4_s3`.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote, unquote_to_bytes

from redrive.aws.wire.signatures.sigv4_request import (
    EXPIRES_SECONDS_MAX,
    QUERY_FIELDS_MAX,
    SKEW_MS,
    IncompleteSignature,
    MissingToken,
    PresentedSignature,
    SignatureMismatch,
    SignatureRefused,
    UnknownKey,
    read_signature,
)
from redrive.model.http import Request

__all__ = [
    "EXPIRES_SECONDS_MAX",
    "GENERAL",
    "SKEW_MS",
    "CredentialScope",
    "IncompleteSignature",
    "MissingToken",
    "Rules",
    "SignatureMismatch",
    "SignatureRefused",
    "UnknownKey",
    "VerifiedSignature",
    "credential_scope",
    "credential_text",
    "is_region",
    "normal_path",
    "payload_hash",
    "signing_key",
    "verify",
    "wrong_region",
]

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_TERMINATOR: Final = "aws4_request"
_REGION: Final = re.compile(r"[a-z0-9-]{1,32}")
_SCOPE_ELEMENTS: Final = 5
#: Nobody's credential is longer (a key id has 128 characters at most), and what is shorter may be remembered.
_CREDENTIAL_CHARS_MAX: Final = 256
_UNSIGNED_PAYLOAD: Final = "UNSIGNED-PAYLOAD"


@dataclass(frozen=True, slots=True)
class CredentialScope:
    """The scope that a credential claims; only a verified signature makes it true."""

    access_key_id: str  # Whose
    date: str  # The day it was signed, `YYYYMMDD`, UTC
    region: str  # Region it is valid in
    service: str  # The signing name of the service it may be used with


@dataclass(frozen=True, slots=True)
class VerifiedSignature:
    """A signature that holds: the Scope's attributes, now true, and whether it came in the query."""

    access_key_id: str
    date: str
    region: str
    service: str
    presigned: bool


def credential_scope(request: Request) -> CredentialScope | None:
    """Read the credential without verifying anything: for routing, and for `--auth off`.

    Returns:
        None if the request has no readable credential.
    """
    return _scope(credential_text(request))


def credential_text(request: Request) -> str:
    """The credential that a request shows, as it stands there; empty if it shows none."""
    authorization = request.headers.get("authorization")
    if authorization is not None:
        return authorization.partition("Credential=")[2].partition(",")[0].rstrip()
    if not request.query:
        return ""
    rest = f"&{request.query}".partition("&X-Amz-Credential=")[2]
    return unquote(rest.partition("&")[0][:_CREDENTIAL_CHARS_MAX])


def verify(
    request: Request,
    secret_of: Callable[[str], str | None],
    now: int,
    *,
    region: str | None = None,
    service: str | None = None,
    rules: "Rules | None" = None,
) -> VerifiedSignature:
    """Prove who signed a request.

    Args:
        request: As it arrived.
        secret_of: From an access key id to its secret; None if the key is unknown or switched off.
        now: Milliseconds since the epoch, UTC.
        region: The only region to accept, if there is one.
        service: The only signing name to accept, where something else chose the route.
        rules: Those of a service that has others than most.

    Raises:
        SignatureRefused: One of its four kinds.
    """
    presented = read_signature(request)
    _check_time(presented, now)
    signed_headers = presented.signed_headers.split(";")
    if "host" not in signed_headers:
        raise SignatureMismatch("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
    if presented.algorithm != _ALGORITHM:
        algorithm = f"'{presented.algorithm}' (only {_ALGORITHM} for now)"
        raise IncompleteSignature(f"Unsupported AWS 'algorithm': {algorithm}.")
    scope = _checked_scope(presented, region, service)
    _check_signed_headers(request, signed_headers)
    secret = secret_of(scope.access_key_id)
    if secret is None:
        raise UnknownKey
    _check_signature(request, presented, signed_headers, scope, secret, rules or GENERAL)
    return VerifiedSignature(
        scope.access_key_id, scope.date, scope.region, scope.service, presented.presigned
    )


def _scope(credential: str) -> CredentialScope | None:
    return _remembered_scope(credential) if len(credential) <= _CREDENTIAL_CHARS_MAX else None


# The strings repeat for a day per key, region and service, so nearly every request finds its credential here.
@lru_cache(maxsize=1024)
def _remembered_scope(credential: str) -> CredentialScope | None:
    elements = credential.split("/")
    return None if len(elements) != _SCOPE_ELEMENTS else CredentialScope(*elements[:4])


def _check_signed_headers(request: Request, names: Sequence[str]) -> None:
    """Refuse a signature that leaves out an AWS header of the request or its encoding, or names a header twice.

    AWS too does not ask for `content-type`, which PHP's SDK never signs. A repeated name would repeat its header in
    what is signed: 64 KiB of names, each of a header of 64 KiB, would be gigabytes.
    """
    signed_names = set(names)
    if len(signed_names) < len(names):
        raise SignatureMismatch
    for name in request.headers.keys() - signed_names:
        if name.startswith("x-amz-") or name == "content-encoding":
            raise SignatureMismatch(f"'{name}' must be a 'SignedHeader' in the AWS Authorization.")


def _check_time(presented: PresentedSignature, now: int) -> None:
    if presented.signed_at < now - presented.life_ms:
        raise SignatureMismatch(
            f"Signature expired: {presented.timestamp} is now earlier than {_basic_format(now - presented.life_ms)} "
            f"({_basic_format(now)} - {_duration_text(presented.life_ms)})"
        )
    if presented.signed_at > now + SKEW_MS:
        raise SignatureMismatch(
            f"Signature not yet current: {presented.timestamp} is still later than {_basic_format(now + SKEW_MS)} "
            f"({_basic_format(now)} + {_duration_text(SKEW_MS)})"
        )


def _basic_format(moment_ms: int) -> str:
    return f"{datetime.fromtimestamp(moment_ms // 1000, UTC):%Y%m%dT%H%M%SZ}"


def _duration_text(span_ms: int) -> str:
    minutes, rest_ms = divmod(span_ms, 60_000)
    return f"{span_ms // 1000} sec." if rest_ms else f"{minutes} min."


def _checked_scope(presented: PresentedSignature, region: str | None, service: str | None) -> CredentialScope:
    scope = _scope(presented.credential)
    if scope is None:
        raise IncompleteSignature(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got "
            f"'{presented.credential}'"
        )
    faults = []
    if not is_region(scope.region) or (region is not None and scope.region != region):
        faults.append(wrong_region(scope.region))
    if service is not None and scope.service != service:
        faults.append(f"Credential should be scoped to correct service: '{service}'.")
    terminator = presented.credential.rpartition("/")[2]
    if terminator != _TERMINATOR:
        faults.append(
            f"Credential should be scoped with a valid terminator: '{_TERMINATOR}', not '{terminator}'."
        )
    if scope.date != presented.timestamp[:8]:
        faults.append(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
            f"'{scope.date}' != '{presented.timestamp[:8]}', from '{presented.timestamp}'."
        )
    if faults:
        raise SignatureMismatch(" ".join(faults))
    return scope


def is_region(region: str) -> bool:
    """True if a region is spelled as regions are; the engine's own places (`us-east-1:alarms`) never are."""
    return _REGION.fullmatch(region) is not None


def wrong_region(region: str) -> str:
    """The words in which AWS refuses a region."""
    return f"Credential should be scoped to a valid region, not '{region}'."


def _check_signature(
    request: Request,
    presented: PresentedSignature,
    signed_headers: Sequence[str],
    scope: CredentialScope,
    secret: str,
    rules: "Rules",
) -> None:
    """Refuse a signature that is of no form in which its signer may have written the request."""
    key = signing_key(secret, scope.date, scope.region, scope.service)
    scope_text = f"{scope.date}/{scope.region}/{scope.service}/{_TERMINATOR}"
    signature = presented.signature.encode()
    for digest in _canonical_digests(request, presented.query, signed_headers, rules):
        text = f"{_ALGORITHM}\n{presented.timestamp}\n{scope_text}\n{digest}"
        if hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex().encode(), signature):
            return
    raise SignatureMismatch


# Saves four HMACs a request; 256 keys in use at one node on one day is already a crowd.
@lru_cache(maxsize=256)
def signing_key(secret: str, date: str, region: str, service: str) -> bytes:
    """The key of a scope: a secret's for one day, region and service."""
    key = f"AWS4{secret}".encode()
    for element in (date, region, service, _TERMINATOR):
        key = hmac.digest(key, element.encode(), "sha256")
    return key


# ---- the canonical request -------------------------------------------------------------------------------------


def _canonical_digests(
    request: Request, query: str, signed_headers: Sequence[str], rules: "Rules"
) -> Iterator[str]:
    """The SHA-256, in hexadecimal, of each canonical request the signer may have meant.

    Args:
        request: As it arrived.
        query: Its query, without a signature in it.
        signed_headers: The names of the headers that were signed, as the signer listed them.
        rules: The service's.

    Raises:
        SignatureMismatch: The body is not the one whose hash the request declares.
    """
    head = f"{request.method}\n{rules.path(request.path)}\n"
    tail = f"\n{_canonical_headers(request, signed_headers)}\n{rules.payload(request)}"
    for canonical_query in _canonical_queries(query):
        yield hashlib.sha256(f"{head}{canonical_query}{tail}".encode()).hexdigest()


def normal_path(path: str) -> str:
    """A path without empty segments and without dot segments, as signers normalise it."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    first = "/" if path.startswith("/") else ""
    last = "/" if segments and path.endswith("/") else ""
    return f"{first}{'/'.join(segments)}{last}"


def _canonical_path(path: str) -> str:
    if path in ("", "/"):
        return "/"
    # The wire's path is encoded once already, so this quotes its per cent signs: the second encoding.
    return quote(normal_path(path), safe="/~")


def _canonical_queries(query: str) -> Iterator[str]:
    """The query as it may have been signed: as it stands on the wire, and as AWS would have encoded it.

    A client that signs `a b` as `a%20b` may still send `a+b`, and one that signs the URL it was given may leave
    in it what AWS encodes. Both readings say the same to a parser, so accepting either lets nothing be changed.
    """
    if not query:
        yield ""
        return
    if query.count("&") > QUERY_FIELDS_MAX:
        raise SignatureMismatch(f"A signed query string has at most {QUERY_FIELDS_MAX} parameters.")
    pairs = [(name, value) for name, _, value in (piece.partition("=") for piece in query.split("&"))]
    as_sent = _join(pairs)
    yield as_sent
    as_encoded = _join([(_encode(name), _encode(value)) for name, value in pairs])
    if as_encoded != as_sent:
        yield as_encoded


def _join(pairs: list[tuple[str, str]]) -> str:
    return "&".join([f"{name}={value}" for name, value in sorted(pairs)])


def _encode(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-_.~")


def _canonical_headers(request: Request, signed_headers: Sequence[str]) -> str:
    headers = request.headers
    lines = [f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed_headers]
    return f"{''.join(lines)}\n{';'.join(signed_headers)}"


def payload_hash(request: Request) -> str:
    """The hash the signer must have used: the body's, or the word by which the signer left the body out.

    The word is part of what was signed, so nobody else can put it there.
    """
    declared = request.headers.get("x-amz-content-sha256")
    if declared == _UNSIGNED_PAYLOAD:
        return declared
    actual = hashlib.sha256(request.body).hexdigest()
    if declared is not None and declared != actual:
        raise SignatureMismatch
    return actual


@dataclass(frozen=True, slots=True)
class Rules:
    """The parts of the form that is hashed which are not the same for every service."""

    path: Callable[[str], str]  # Puts a path in that form
    # The hash of the body that the signer must have used, or the word in its place.
    payload: Callable[[Request], str]


GENERAL: Final = Rules(_canonical_path, payload_hash)
