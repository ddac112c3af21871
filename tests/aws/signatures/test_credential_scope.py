"""Reading a credential without verifying it, for routing and for servers that verify nothing."""

from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.wire.signatures.sigv4 import CredentialScope, UnknownKey, credential_scope
from redrive.model.http import Request
from tests.aws.signatures.signing import KEY_ID, check, sign, with_headers


def _get(query: str = "", **headers: str) -> Request:
    return Request("GET", "/", query, headers, b"")


@pytest.mark.parametrize("expires_seconds", [None, 60])
def test_reads_what_botocore_writes(expires_seconds: int | None) -> None:
    request = sign(service="sns", region="eu-west-1", expires_seconds=expires_seconds)
    assert credential_scope(request) == CredentialScope(KEY_ID, "20150830", "eu-west-1", "sns")


def test_reads_a_credential_whose_signature_is_wrong() -> None:
    request = sign()
    broken = with_headers(request, authorization=request.headers["authorization"] + "0")
    assert credential_scope(broken) == credential_scope(request)


@pytest.mark.parametrize(
    "authorization",
    [
        "AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/sqs/aws4_request, SignedHeaders=host, Signature=0",
        "AWS4-HMAC-SHA256 SignedHeaders=host,Signature=0,Credential=test/20260101/eu-west-1/sqs/aws4_request",
        "AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/sqs/aws4_request ,SignedHeaders=host, Signature=0",
    ],
)
def test_order_and_spaces_do_not_matter(authorization: str) -> None:
    assert credential_scope(_get(authorization=authorization)) == CredentialScope(
        "test", "20260101", "eu-west-1", "sqs"
    )


@pytest.mark.parametrize(
    "request_",
    [
        _get(),
        _get(authorization=""),
        _get(authorization="Bearer token"),
        _get(authorization="AWS4-HMAC-SHA256 Credential=test/20260101/sqs/aws4_request, SignedHeaders=host"),
        _get("a=X-Amz-Credential=test/20260101/eu-west-1/sqs/aws4_request"),
        _get("X-Amz-Credential="),
    ],
)
def test_requests_without_a_readable_credential_have_no_scope(request_: Request) -> None:
    assert credential_scope(request_) is None


@given(st.text(), st.one_of(st.none(), st.text().map("AWS4-HMAC-SHA256 Credential={}".format)))
def test_any_credential_text_is_read_without_an_error(query: str, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    scope = credential_scope(Request("GET", "/", f"X-Amz-Credential={query}", headers, b""))
    assert scope is None or isinstance(scope, CredentialScope)


_OTHER = "AKIASOMEBODYELSE2345/20150830/us-east-1/sqs/aws4_request"


def test_of_two_credentials_in_a_header_verifying_and_trusting_take_the_same() -> None:
    request = sign()
    signed = request.headers["authorization"]
    doubled = with_headers(request, authorization=f"{signed}, Credential={_OTHER}")
    assert credential_scope(doubled) == credential_scope(request)
    assert check(doubled).access_key_id == KEY_ID


def test_of_two_credentials_in_a_query_verifying_and_trusting_take_the_same() -> None:
    request = sign("GET", expires_seconds=60)
    doubled = replace(request, query=f"X-Amz-Credential={quote(_OTHER, safe='')}&{request.query}")
    scope = credential_scope(doubled)
    assert scope is not None
    assert scope.access_key_id == "AKIASOMEBODYELSE2345"
    with pytest.raises(UnknownKey):
        check(doubled)
