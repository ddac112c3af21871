"""Presigned URLs of S3 in the form before Signature Version 4, which boto3 still makes in S3's older regions.

Source: "Signing and Authenticating REST Requests" (Signature Version 2) of the S3 API reference, and botocore's
`HmacV1QueryAuth`. It is accepted for no other service, and in no header.
"""

import base64
import hmac
import re
from collections.abc import Callable
from functools import cache
from typing import Final
from urllib.parse import parse_qsl

from redrive.aws.wire.service import Service
from redrive.aws.wire.signatures.sigv4 import (
    EXPIRES_SECONDS_MAX,
    CredentialScope,
    SignatureMismatch,
    UnknownKey,
    VerifiedSignature,
)
from redrive.model.http import Request

_FIELDS: Final = frozenset({"AWSAccessKeyId", "Signature", "Expires"})
_FIELDS_MAX: Final = 100
_NUMBER: Final = re.compile(r"[0-9]{1,12}")
#: The parameters that are signed besides those that select an operation; no others are part of the resource.
_SIGNED_PARAMETERS: Final = frozenset(
    (
        *("defaultObjectAcl", "partNumber", "uploadId", "versionId", "response-cache-control"),
        *("response-content-disposition", "response-content-encoding", "response-content-language"),
        *("response-content-type", "response-expires"),
    )
)


def is_presigned_v2(request: Request) -> bool:
    """True if a request has such a signature in its query, and names no action: queries of other services do."""
    query = f"&{request.query}"
    return "&AWSAccessKeyId=" in query and "&Signature=" in query and "&Action=" not in query


def scope_v2(request: Request, region: str) -> CredentialScope:
    """Read the key, without verifying anything; the URL says nothing of a region."""
    return CredentialScope(_fields(request).get("AWSAccessKeyId", ""), "", region, "s3")


def verify_v2(
    request: Request, bucket: str | None, secret_of: Callable[[str], str | None], now: int, region: str
) -> VerifiedSignature:
    """Prove who presigned a URL.

    Args:
        request: As it arrived.
        bucket: The one that the host names.
        secret_of: From an access key id to its secret.
        now: Milliseconds since the epoch, UTC.
        region: The server's own.

    Raises:
        SignatureRefused: `UnknownKey` or `SignatureMismatch`.
    """
    fields = _fields(request)
    expires = fields.get("Expires", "")
    if not _NUMBER.fullmatch(expires):
        raise SignatureMismatch(
            "Query-string authentication requires the Signature, Expires and AWSAccessKeyId"
        )
    if not now <= int(expires) * 1000 <= now + EXPIRES_SECONDS_MAX * 1000:
        raise SignatureMismatch("Request has expired")
    secret = secret_of(fields.get("AWSAccessKeyId", ""))
    if secret is None:
        raise UnknownKey
    text = _signed_text(request, bucket, fields, expires)
    expected = base64.b64encode(hmac.digest(secret.encode(), text.encode(), "sha1"))
    if not hmac.compare_digest(expected, fields.get("Signature", "").encode()):
        raise SignatureMismatch
    return VerifiedSignature(fields["AWSAccessKeyId"], "", region, "s3", presigned=True)


@cache
def _signed_parameters() -> frozenset[str]:
    """The parameters that are signed, with younger ones that select an operation: a link is of one operation alone."""
    queries = (uri.partition("?")[2] for _, uri in Service.load("s3").routes.values())
    return _SIGNED_PARAMETERS | {
        name for query in queries for name in query.split("&") if name and "=" not in name
    }


def _fields(request: Request) -> dict[str, str]:
    try:
        return dict(parse_qsl(request.query, keep_blank_values=True, max_num_fields=_FIELDS_MAX))
    except ValueError:
        raise SignatureMismatch from None


def _signed_text(request: Request, bucket: str | None, fields: dict[str, str], expires: str) -> str:
    """The text that is signed: method, MD5, type, expiry, `x-amz-` headers and resource."""
    values = {name.lower(): value for name, value in fields.items() if name not in _FIELDS} | request.headers
    amazon_headers = [
        f"{name}:{values[name].strip()}\n" for name in sorted(values) if name.startswith("x-amz-")
    ]
    resource = request.path if bucket is None else f"/{bucket}{request.path}"
    resource_parameters = [
        name if not value else f"{name}={value}"
        for name, value in sorted(fields.items())
        if name in _signed_parameters()
    ]
    query = f"?{'&'.join(resource_parameters)}" if resource_parameters else ""
    head = [request.method, values.get("content-md5", ""), values.get("content-type", ""), expires]
    return "\n".join([*head, "".join(amazon_headers)]) + resource + query
