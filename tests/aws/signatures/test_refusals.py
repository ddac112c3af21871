"""Refusals of a signed request: codes, statuses and sentences as AWS services answer them."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.gateway.authentication import TrustAll
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.signatures.sigv4 import (
    EXPIRES_SECONDS_MAX,
    SKEW_MS,
    IncompleteSignature,
    MissingToken,
    SignatureMismatch,
    SignatureRefused,
    UnknownKey,
)
from redrive.model.http import Request
from tests.aws.signatures.signing import SIGNED_AT, check, sign, with_headers

_SCOPE = "AKIAREDRIVETESTS2345/20150830/us-east-1/sqs/aws4_request"


def _refusal(request: Request, now: int = SIGNED_AT, **expected: str) -> SignatureRefused:
    with pytest.raises(SignatureRefused) as refused:
        check(request, now, **expected)
    return refused.value


@pytest.mark.parametrize(
    ("kind", "code", "json_code", "status"),
    [
        (MissingToken, "MissingAuthenticationToken", "MissingAuthenticationTokenException", 403),
        (IncompleteSignature, "IncompleteSignature", "IncompleteSignatureException", 400),
        (UnknownKey, "InvalidClientTokenId", "UnrecognizedClientException", 403),
        (SignatureMismatch, "SignatureDoesNotMatch", "InvalidSignatureException", 403),
    ],
)
def test_codes_and_statuses(kind: type[SignatureRefused], code: str, json_code: str, status: int) -> None:
    assert (kind.code, kind.json_code, kind.status) == (code, json_code, status)


# ---- time -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (SIGNED_AT, None),
        (SIGNED_AT + SKEW_MS, None),
        (
            SIGNED_AT + SKEW_MS + 1000,
            (
                "Signature expired: 20150830T123600Z is now earlier than 20150830T123601Z "
                "(20150830T125101Z - 15 min.)"
            ),
        ),
        (SIGNED_AT - SKEW_MS, None),
        (
            SIGNED_AT - SKEW_MS - 1000,
            (
                "Signature not yet current: 20150830T123600Z is still later than 20150830T123559Z "
                "(20150830T122059Z + 15 min.)"
            ),
        ),
    ],
)
def test_a_header_signature_is_good_for_a_quarter_of_an_hour_either_way(
    now: int, message: str | None
) -> None:
    request = sign()
    if message is None:
        assert check(request, now).date == "20150830"
    else:
        refusal = _refusal(request, now)
        assert (refusal.code, refusal.message) == ("SignatureDoesNotMatch", message)


@pytest.mark.parametrize(
    ("expires_seconds", "age_ms", "message"),
    [
        (1, 1000, None),
        (60, 60_000, None),
        (60, 61_000, "20150830T123601Z (20150830T123701Z - 1 min.)"),
        (90, 91_000, "20150830T123601Z (20150830T123731Z - 90 sec.)"),
        (EXPIRES_SECONDS_MAX, EXPIRES_SECONDS_MAX * 1000, None),
        (
            EXPIRES_SECONDS_MAX,
            EXPIRES_SECONDS_MAX * 1000 + 1,
            "20150830T123600Z (20150906T123600Z - 10080 min.)",
        ),
        (60, -SKEW_MS, None),
    ],
)
def test_a_presigned_request_lives_as_long_as_it_says(
    expires_seconds: int, age_ms: int, message: str | None
) -> None:
    request = sign("GET", expires_seconds=expires_seconds)
    if message is None:
        assert check(request, SIGNED_AT + age_ms).presigned
    else:
        refusal = _refusal(request, SIGNED_AT + age_ms)
        assert refusal.message == f"Signature expired: 20150830T123600Z is now earlier than {message}"


def test_a_presigned_request_from_the_future_is_refused() -> None:
    refusal = _refusal(sign("GET", expires_seconds=60), SIGNED_AT - SKEW_MS - 1)
    assert refusal.message.startswith("Signature not yet current: ")


@pytest.mark.parametrize("expires", ["0", "604801", "-1", "1.5", "", "soon", "9" * 5000])
def test_a_presigned_life_must_be_between_a_second_and_a_week(expires: str) -> None:
    query = sign("GET", expires_seconds=60).query.replace("X-Amz-Expires=60", f"X-Amz-Expires={expires}")
    refusal = _refusal(Request("GET", "/", query, {"host": "127.0.0.1:4566"}, b""))
    assert refusal.code == "IncompleteSignature"
    assert refusal.message.startswith("X-Amz-Expires ")


def test_a_presigned_request_without_a_life_has_a_header_signatures() -> None:
    request = sign("GET", expires_seconds=60)
    shortened = replace(request, query=request.query.replace("&X-Amz-Expires=60", ""))
    assert "(20150830T125101Z - 15 min.)" in _refusal(shortened, SIGNED_AT + SKEW_MS + 1000).message


# ---- scope and key ----------------------------------------------------------------------------------------


def test_region_and_service_must_be_the_ones_asked_for() -> None:
    request = sign(service="sns", region="eu-west-1")
    assert check(request, region="eu-west-1", service="sns").service == "sns"
    refusal = _refusal(request, region="us-east-1", service="sqs")
    assert refusal.code == "SignatureDoesNotMatch"
    assert refusal.message == (
        "Credential should be scoped to a valid region, not 'eu-west-1'. "
        "Credential should be scoped to correct service: 'sqs'."
    )


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        (
            "AKIAREDRIVETESTS2345/20150829/us-east-1/sqs/aws4_request",
            (
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
                "'20150829' != '20150830', from '20150830T123600Z'."
            ),
        ),
        (
            "AKIAREDRIVETESTS2345/20150830/us-east-1/sqs/aws5_request",
            "Credential should be scoped with a valid terminator: 'aws4_request', not 'aws5_request'.",
        ),
    ],
)
def test_the_credential_scope_must_fit_the_request(scope: str, message: str) -> None:
    request = sign()
    authorization = request.headers["authorization"].replace(_SCOPE, scope)
    refusal = _refusal(with_headers(request, authorization=authorization))
    assert (refusal.code, refusal.message) == ("SignatureDoesNotMatch", message)


@pytest.mark.parametrize("scope", ["AKIAREDRIVETESTS2345", "a/20150830/us-east-1/sqs/aws4_request/b", "/"])
def test_a_credential_has_five_elements(scope: str) -> None:
    request = sign()
    authorization = request.headers["authorization"].replace(_SCOPE, scope)
    refusal = _refusal(with_headers(request, authorization=authorization))
    assert refusal.code == "IncompleteSignature"
    assert refusal.message == (
        "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got "
        f"'{scope}'"
    )


def test_an_unknown_key_is_refused_before_its_signature_is_looked_at() -> None:
    request = sign()
    authorization = request.headers["authorization"].replace("AKIAREDRIVETESTS2345", "AKIASOMEBODYELSE2345")
    refusal = _refusal(with_headers(request, authorization=authorization))
    assert isinstance(refusal, UnknownKey)
    assert refusal.message == "The security token included in the request is invalid."


def test_the_host_must_be_signed() -> None:
    request = sign()
    authorization = request.headers["authorization"].replace("host;x-amz-date", "x-amz-date")
    refusal = _refusal(with_headers(request, authorization=authorization))
    assert refusal.code == "SignatureDoesNotMatch"
    assert refusal.message == "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."


# ---- form -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer eyJhbGciOiJub25lIn0"},
        {"authorization": "AWS AKIAREDRIVETESTS2345:c2lnbmF0dXJl"},
    ],
)
def test_no_signature_of_this_version_is_a_missing_token(headers: dict[str, str]) -> None:
    refusal = _refusal(Request("POST", "/", "", {"host": "127.0.0.1:4566", **headers}, b""))
    assert isinstance(refusal, MissingToken)
    assert refusal.message == "Request is missing Authentication Token"


_GOOD = f"AWS4-HMAC-SHA256 Credential={_SCOPE}, SignedHeaders=host, Signature=00"
_NO_DATE = "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."


@pytest.mark.parametrize(
    ("authorization", "date", "messages"),
    [
        (_GOOD.replace("Credential=", "Cred="), "20150830T123600Z", ["requires 'Credential' parameter."]),
        (
            _GOOD.replace("SignedHeaders=host", "a=b"),
            "20150830T123600Z",
            ["requires 'SignedHeaders' parameter."],
        ),
        (
            _GOOD.replace("Signature=00", "Signature="),
            "20150830T123600Z",
            ["requires 'Signature' parameter."],
        ),
        (_GOOD, "", [_NO_DATE]),
        ("AWS4-HMAC-SHA256", "", ["'Credential'", "'Signature'", "'SignedHeaders'", _NO_DATE]),
        (
            _GOOD.replace("2345/", "2345 /"),
            "20150830T123600Z",
            ["Invalid key=value pair (missing equal-sign)"],
        ),
        (
            _GOOD,
            "2015-08-30T12:36:00Z",
            ["Date must be in ISO-8601 'basic format'. Got '2015-08-30T12:36:00Z'."],
        ),
        (_GOOD, "20151330T123600Z", ["Got '20151330T123600Z'"]),
        (_GOOD, "Sun, 99 Aug 2015 12:36:00 GMT", ["Got 'Sun, 99 Aug 2015 12:36:00 GMT'"]),
        (_GOOD, "Sun, 30 Aug 99999999999 12:36:00 GMT", ["Got 'Sun, 30 Aug 99999999999 12:36:00 GMT'"]),
        (
            _GOOD.replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"),
            "20150830T123600Z",
            ["Unsupported AWS 'algorithm': 'AWS4-ECDSA-P256-SHA256' (only AWS4-HMAC-SHA256 for now)."],
        ),
    ],
)
def test_a_signature_that_cannot_be_read_is_incomplete(
    authorization: str, date: str, messages: list[str]
) -> None:
    headers = {"host": "127.0.0.1:4566", "authorization": authorization, "x-amz-date": date}
    refusal = _refusal(Request("POST", "/", "", headers, b""))
    assert refusal.code == "IncompleteSignature"
    for message in messages:
        assert message in refusal.message


def test_a_refusal_does_not_repeat_the_authorization() -> None:
    headers = {"host": "127.0.0.1:4566", "authorization": "AWS4-HMAC-SHA256 Signature=topsecret"}
    message = _refusal(Request("POST", "/", "", headers, b"")).message
    assert "topsecret" not in message
    assert "(Hashed with SHA-256 and encoded with Base64) Authorization=" in message


@pytest.mark.parametrize("name", ["X-Amz-Credential", "X-Amz-Signature", "X-Amz-SignedHeaders", "X-Amz-Date"])
def test_a_presigned_request_needs_all_its_parameters(name: str) -> None:
    request = sign("GET", expires_seconds=60)
    kept = "&".join(piece for piece in request.query.split("&") if not piece.startswith(name + "="))
    refusal = _refusal(replace(request, query=kept))
    assert refusal.code == "IncompleteSignature"
    assert refusal.message == (
        f"AWS query-string parameters must include '{name}'. Re-examine the query-string parameters."
    )


def test_two_signatures_on_one_request_are_refused() -> None:
    in_query = sign("GET", expires_seconds=60)
    both = with_headers(in_query, authorization=sign().headers["authorization"])
    assert _refusal(both).message == (
        "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
    )


_noise = st.text(alphabet=st.characters(max_codepoint=0xFF), max_size=60)
_almost = st.sampled_from([_GOOD, "AWS4-HMAC-SHA256 ", "Credential=", ",", "=", "Signature=é", "/", " "])


@given(
    st.lists(st.one_of(_almost, _noise), max_size=5).map("".join),
    st.one_of(_noise, st.just("20150830T123600Z"), st.just("Sun, 30 Aug 99999999999 12:36:00 -9999")),
    st.one_of(
        _noise,
        st.just(sign("GET", expires_seconds=60).query),
        _noise.map(lambda text: f"X-Amz-Algorithm={text}"),
    ),
    _noise,
)
def test_no_request_does_worse_than_be_refused(authorization: str, date: str, query: str, path: str) -> None:
    for headers in ({"authorization": authorization, "x-amz-date": date}, {}):
        with pytest.raises(SignatureRefused):
            check(Request("GET", path, query, headers, b""))


# ---- regions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("region", ["", "us-east-1:lambda", 'a"b', "a\nb", "US-EAST-1", "ü", "a" * 33])
def test_a_region_that_is_none_is_refused_with_and_without_signatures(region: str) -> None:
    request = sign(region=region, expires_seconds=60)  # a URL spells any character
    words = f"Credential should be scoped to a valid region, not '{region}'."
    assert _refusal(request).message == words
    with pytest.raises(AwsError) as refused:
        asyncio.run(TrustAll("us-east-1").caller(request, "sqs"))
    assert (refused.value.code, refused.value.message) == ("InvalidSignatureException", words)


@pytest.mark.parametrize("region", ["us-east-1", "aws-global", "local", "a" * 32])
def test_any_region_of_small_letters_will_do(region: str) -> None:
    request = sign(region=region)
    assert check(request, SIGNED_AT).region == region
    assert asyncio.run(TrustAll("us-east-1").caller(request, "sqs")).region == region


def test_an_older_url_of_s3_makes_nobody_of_later_requests_its_caller() -> None:
    trust_all = TrustAll("us-east-1")
    older_url = Request("GET", "/bucket/key", "AWSAccessKeyId=111111111111&Expires=1&Signature=0", {}, b"")
    assert asyncio.run(trust_all.caller(older_url, "s3")).principal.account == "111111111111"
    assert trust_all.remembered_caller(replace(older_url, query=""), "s3") is None
