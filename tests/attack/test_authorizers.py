"""Authorizers of APIs: what issuers' keys cost, and what answers of functions take while they are remembered."""

import asyncio
import base64
import json
import random
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any, cast

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from redrive.aws.apigateway.authorizers.functions import (
    AuthorizerFunctions,
    AuthorizerVerdict,
    FunctionAuthorizer,
)
from redrive.aws.apigateway.authorizers.http import Issuers, TokenRefusal, read_token
from redrive.aws.apigateway.authorizers.rest import RestAuthorizers
from redrive.aws.apigateway.control.exchange import Exchange, Refusal, StagePlace
from redrive.aws.apigateway.control.targets import InvokeTarget
from redrive.aws.apigateway.http.definitions import read_tree
from redrive.aws.wire.errors import AwsError
from redrive.model.http import Request, Response
from tests.attack.test_filter_costs import TIMES_MAX, times_counting

OWN, OTHER = "1" * 12, "2" * 12
ISSUER = "https://issuer.example"
FUNCTION = f"arn:aws:lambda:us-east-1:{OWN}:function:guard"
SIGNING = rsa.generate_private_key(65537, 2048)


class Clock:
    """Time stands still."""

    def now(self) -> int:
        return 1_000_000


def base64_of(number: int) -> str:
    return (
        base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8, "big")).decode().rstrip("=")
    )


PRIME = SIGNING.private_numbers().p  # has no factors, so each of 500 attempts to find them fails
MODULUS = base64_of(SIGNING.public_key().public_numbers().n)


class IssuerWeb:
    """An issuer with one key."""

    def __init__(self, key: Mapping[str, Any]) -> None:
        self.key = {"kty": "RSA", "kid": "one", "n": MODULUS, "e": "AQAB", **key}

    async def fetch(self, method: str, url: str, *_: Any) -> Response:
        shown = {"keys": [self.key]} if url.endswith("/keys") else {"jwks_uri": f"{ISSUER}/keys"}
        return Response(200, orjson.dumps(shown))


def claims_by(key: Mapping[str, Any]) -> Mapping[str, Any]:
    """The claims of a token that this key of the issuer verifies."""
    token = jwt.encode({"iss": ISSUER, "exp": 2_000}, SIGNING, "RS256", {"kid": "one"})
    issuers = Issuers(IssuerWeb(key), cast("Any", Clock()))
    return asyncio.run(issuers.claims(read_token(token), ISSUER))


def test_a_key_of_an_issuer_verifies() -> None:
    assert claims_by({}) == claims_by({"e": "AQAB=="}) == {"iss": ISSUER, "exp": 2_000}


REFUSED_KEYS: Mapping[str, Mapping[str, Any]] = {
    "a private exponent": {"d": base64_of(pow(65537, -1, PRIME - 1)), "n": base64_of(PRIME)},
    "an exponent of 41 bits": {"e": base64_of(2**40 + 1)},
    "an exponent of 0": {"e": "AAAA"},
    "no exponent": {"e": None},
    "a modulus of 8,201 bits": {"n": base64_of(2**8_200 + 1)},
    "a modulus of 30 KB": {"n": "A" * 40_000},
    "a modulus that is no base64": {"n": "AAAAA"},
    "a modulus that is not ASCII": {"n": "é"},
    "a modulus that is no text": {"n": 7},
}


@pytest.mark.parametrize("key", REFUSED_KEYS.values(), ids=REFUSED_KEYS)
def test_a_key_that_is_not_a_public_one_of_usual_size_is_not_read(key: Mapping[str, Any]) -> None:
    """One with a private exponent was searched for its prime factors: 40 KB of numbers took hours."""

    def read() -> None:
        with pytest.raises(TokenRefusal, match="unable to find the key"):
            claims_by(key)

    assert times_counting(read) < TIMES_MAX / 10


class Functions:
    """A function that authorizes, and how often it was asked."""

    def __init__(self, answer: Callable[[int], Any]) -> None:
        self.answer, self.count = answer, 0

    async def call(self, *_: Any) -> Mapping[str, Any]:
        self.count += 1
        return {"Payload": json.dumps(self.answer(self.count)).encode()}

    async def of(self, *_: Any) -> None:
        """Callers as well: nobody checks them here."""

    def authorizers(self) -> AuthorizerFunctions:
        return AuthorizerFunctions(cast("Any", self), cast("Any", self), cast("Any", Clock()))


def exchange(account: str) -> Exchange:
    place = StagePlace(account, "us-east-1", "rental", "Rental", "prod")
    target = InvokeTarget("rental", "/cars", "localhost", "prod")
    return Exchange(Request("GET", "/prod/cars", "", {"token": "a"}, b""), target, place, "/cars", "id", 0)


async def asked(functions: AuthorizerFunctions, account: str, token: str) -> AuthorizerVerdict:
    authorizer = FunctionAuthorizer("guard", FUNCTION, "", 3_600)
    return await functions.verdict(exchange(account), authorizer, [token], {}, AuthorizerVerdict)


async def test_an_account_takes_none_of_the_room_of_another() -> None:
    function = Functions(lambda number: {"number": number})
    functions = function.authorizers()
    assert (await asked(functions, OTHER, "ann")).context == {"number": 1}
    for token in range(5_000):
        await asked(functions, OWN, str(token))
    assert (await asked(functions, OTHER, "ann")).context == {"number": 1}
    assert (await asked(functions, OWN, "4999")).context == {"number": 5_001}
    assert (await asked(functions, OWN, "0")).context == {"number": 5_002}


async def test_answers_are_remembered_as_they_came() -> None:
    """Parsed, 16 KB of brackets are 346 KB, and 4,096 such answers 1.4 GB."""
    functions = Functions(lambda _: {"context": [[]] * 4_000}).authorizers()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for token in range(20):
            await asked(functions, OWN, str(token))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20 * 2 * 16 * 1024


async def test_an_answer_that_rest_apis_refuse_is_not_remembered() -> None:
    statement = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    function = Functions(lambda _: {"principalId": "a", "policyDocument": document, "context": {"a": [1]}})
    rest = RestAuthorizers(function.authorizers(), cast("Any", Clock()))
    authorizer = {
        "id": "guard",
        "type": "TOKEN",
        "authorizerUri": FUNCTION,
        "authorizerResultTtlInSeconds": 60,
    }
    for count in (1, 2):
        with pytest.raises(Refusal, match="AUTHORIZER_CONFIGURATION_ERROR") as refused:
            await rest.verdict(exchange(OWN), {**authorizer, "identitySource": "method.request.header.Token"})
        assert "the context has an object or an array" in refused.value.reason
        assert function.count == count


@pytest.mark.parametrize("seconds", [3_601, -1, 10**12])
def test_a_definition_remembers_no_longer_than_an_hour(seconds: int) -> None:
    guard = {
        "type": "request",
        "identitySource": "$request.header.Authorization",
        "authorizerUri": FUNCTION,
        "authorizerPayloadFormatVersion": "2.0",
        "authorizerResultTtlInSeconds": seconds,
    }
    schemes = {"Guard": {"type": "apiKey", "x-amazon-apigateway-authorizer": guard}}
    document = {"openapi": "3.0.1", "components": {"securitySchemes": schemes}, "paths": {}}
    with pytest.raises(AwsError, match="Authorizer result TTL must be between 0 and 3600 seconds"):
        read_tree(document, random.Random(1))
