"""Requests signed by botocore, as they arrive on the wire."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from unittest import mock
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from redrive.aws.wire.signatures.sigv4 import VerifiedSignature, verify
from redrive.model.http import Request

KEY_ID: Final = "AKIAREDRIVETESTS2345"
SECRET: Final = "c2VjcmV0+of/forty.characters-and+a/slash"
SIGNED_AT: Final = 1_440_938_160_000  # 2015-08-30T12:36:00Z
ENDPOINT: Final = "http://127.0.0.1:4566"

Headers = Iterable[tuple[str, str]]


def sign(
    method: str = "POST",
    url: str = f"{ENDPOINT}/",
    *,
    headers: Headers = (),
    params: Mapping[str, str] | None = None,
    body: bytes = b"",
    expires_seconds: int | None = None,
    token: str | None = None,
    signed_at: int = SIGNED_AT,
    service: str = "sqs",
    region: str = "us-east-1",
) -> Request:
    """Sign as botocore does, in the query if `expires_seconds` is given, and put the result on the wire."""
    unsigned = AWSRequest(method=method, url=url, data=body, params=params)
    for name, value in headers:
        unsigned.headers.add_header(name, value)
    credentials = Credentials(KEY_ID, SECRET, token)
    signer = (
        SigV4Auth(credentials, service, region)
        if expires_seconds is None
        else SigV4QueryAuth(credentials, service, region, expires=expires_seconds)
    )
    moment = datetime.fromtimestamp(signed_at / 1000, UTC)
    with mock.patch("botocore.auth.get_current_datetime", return_value=moment):
        signer.add_auth(unsigned)
    return wire(unsigned)


def wire(signed: AWSRequest) -> Request:
    parts = urlsplit(signed.prepare().url)
    headers = {"host": parts.netloc, "user-agent": "Boto3/1.44", "content-length": "7"}
    for name in dict.fromkeys(name.lower() for name in signed.headers):
        headers[name] = ",".join(value.strip() for value in signed.headers.get_all(name, []))
    return Request(signed.method or "", parts.path, parts.query, headers, signed.data or b"")


def secret_of(access_key_id: str) -> str | None:
    return SECRET if access_key_id == KEY_ID else None


def check(request: Request, now: int = SIGNED_AT, **expected: str) -> VerifiedSignature:
    return verify(request, secret_of, now, **expected)


def with_headers(request: Request, **changes: str | None) -> Request:
    """The request with headers changed, or taken away where the change is None."""
    headers = {**request.headers, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return replace(request, headers={name: value for name, value in headers.items() if value is not None})
