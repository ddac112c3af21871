"""Tokens that others issue: HTTP APIs verify them by their issuer's keys."""

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from typing_extensions import override

from tests.contracts.aws.apigateway.gateways import ACCOUNT, Gateways
from tests.services.answering import answering


class Issuer:
    """An issuer of tokens on this machine.

    Attributes:
        url: Its address, which tokens name.
        asked: The paths that it was asked for.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.keys = {name: rsa.generate_private_key(65537, 2048) for name in ("one", "two")}
        self.shown = ["one"]
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                body = json.dumps(issuer.document(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            @override
            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def document(self, path: str) -> dict[str, Any]:
        if path.endswith("/openid-configuration"):
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        algorithm = jwt.algorithms.RSAAlgorithm
        keys = {name: json.loads(algorithm.to_jwk(self.keys[name].public_key())) for name in self.shown}
        return {"keys": [{**key, "kid": name, "use": "sig"} for name, key in keys.items()]}

    def token(self, key: str = "one", signed_by: str = "", **claims: Any) -> str:
        now = int(time.time())
        whole = {"iss": self.url, "aud": "cars", "exp": now + 60, "iat": now, "sub": "ann", **claims}
        present = {name: value for name, value in whole.items() if value is not None}
        return jwt.encode(present, self.keys[signed_by or key], "RS256", {"kid": key})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    started = Issuer()
    with answering(started.server):
        yield started


@pytest.fixture
def api(gateway: Gateways, issuer: Issuer) -> str:
    """An API that answers who asks, and on another route whoever may read as well."""
    client = gateway.of("apigatewayv2")
    api_id: str = client.create_api(Name="Cars", ProtocolType="HTTP")["ApiId"]
    client.create_stage(ApiId=api_id, StageName="$default", AutoDeploy=True)
    configuration = {"Issuer": issuer.url, "Audience": ["cars", "vans"]}
    authorizer = client.create_authorizer(
        ApiId=api_id,
        Name="issuer",
        AuthorizerType="JWT",
        IdentitySource=["$request.header.Authorization"],
        JwtConfiguration=configuration,
    )
    assert authorizer["JwtConfiguration"] == configuration
    made = client.create_integration(
        ApiId=api_id,
        IntegrationType="HTTP_PROXY",
        IntegrationMethod="GET",
        IntegrationUri=f"{gateway.server.url}/_redrive/health",
        PayloadFormatVersion="1.0",
    )["IntegrationId"]
    jwt_members = {"AuthorizationType": "JWT", "AuthorizerId": authorizer["AuthorizerId"]}
    for key, scopes in (("GET /cars", []), ("GET /all", ["read", "admin"])):
        client.create_route(
            ApiId=api_id,
            RouteKey=key,
            Target=f"integrations/{made}",
            AuthorizationScopes=scopes,
            **jwt_members,
        )
    return api_id


def test_a_token_is_verified_by_its_issuers_keys(gateway: Gateways, issuer: Issuer, api: str) -> None:
    def ask(token: str | None, path: str = "/cars") -> tuple[int, str | None]:
        said = gateway.ask(api, path, headers={} if token is None else {"Authorization": token})
        expected = {401: "Unauthorized", 403: "Forbidden"}
        assert said.status == 200 or said.document == {"message": expected[said.status]}
        return said.status, said.headers.get("www-authenticate")

    def invalid(why: str) -> tuple[int, str]:
        return 401, f'Bearer scope="" error="invalid_token" error_description="{why}"'

    now = int(time.time())
    assert ask(None) == (401, "Bearer")
    assert ask(f"Bearer {issuer.token()}") == (200, None)
    assert ask(issuer.token(aud=["other", "vans"])) == (200, None)
    assert ask(issuer.token(aud=None, client_id="cars")) == (200, None)
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"], "the keys are remembered"
    for token, why in (
        ("x.y.z", "the token is malformed"),
        (jwt.encode({"iss": issuer.url}, "k" * 32, "HS256", {"kid": "one"}), "signing method is invalid"),
        (issuer.token(signed_by="two"), "signature is invalid"),
        (issuer.token(exp=now - 1), "the token has expired"),
        (issuer.token(exp=None), "the token has expired"),
        (issuer.token(nbf=now + 600), "the token is not valid yet"),
        (issuer.token(iat=now + 600), "the token was issued in the future"),
        (issuer.token(iss="https://other.example"), "the token has an invalid issuer"),
        (issuer.token(aud="other"), "the token does not have a valid audience"),
        (issuer.token(aud=[{}]), "the token does not have a valid audience"),
        (issuer.token(aud={}), "the token does not have a valid audience"),
        (issuer.token("two"), "unable to find the key that signed the token"),
    ):
        assert ask(token) == invalid(why)
    assert len(issuer.asked) == 2, "an unknown key asks again a minute after, at the earliest"
    assert ask(issuer.token(scope="write read"), "/all") == (200, None)
    assert ask(issuer.token(scp=["admin"]), "/all") == (200, None)
    for claims in ({}, {"scope": "write"}):
        assert ask(issuer.token(**claims), "/all") == (
            403,
            'Bearer scope="read admin" error="insufficient_scope"',
        )


def test_claims_are_handed_on_and_written_down(gateway: Gateways, issuer: Issuer, api: str) -> None:
    client = gateway.of("apigatewayv2")
    url = gateway.sqs.create_queue(QueueName="told")["QueueUrl"]
    queue = f"http://localhost/{ACCOUNT}/told"
    made = client.create_integration(
        ApiId=api,
        IntegrationType="AWS_PROXY",
        IntegrationSubtype="SQS-SendMessage",
        CredentialsArn=f"arn:aws:iam::{ACCOUNT}:role/Gateway",
        PayloadFormatVersion="1.0",
        RequestParameters={"QueueUrl": queue, "MessageBody": "$context.authorizer.claims.sub"},
    )["IntegrationId"]
    (route,) = (each for each in client.get_routes(ApiId=api)["Items"] if each["RouteKey"] == "GET /cars")
    client.update_route(ApiId=api, RouteId=route["RouteId"], Target=f"integrations/{made}")
    assert gateway.ask(api, "/cars", headers={"Authorization": issuer.token()}).status == 200
    (message,) = gateway.received(url)
    assert message["Body"] == "ann"


def test_a_definition_names_issuers_and_scopes(gateway: Gateways, issuer: Issuer) -> None:
    client = gateway.of("apigatewayv2")
    guard = {
        "type": "jwt",
        "identitySource": "$request.header.Authorization",
        "jwtConfiguration": {"issuer": issuer.url, "audience": ["cars"]},
    }
    proxy = {
        "type": "http_proxy",
        "httpMethod": "GET",
        "uri": f"{gateway.server.url}/_redrive/health",
        "payloadFormatVersion": "1.0",
    }
    operation = {"security": [{"Guard": ["read"]}], "x-amazon-apigateway-integration": proxy}
    document = {
        "openapi": "3.0.1",
        "info": {"title": "Cars", "version": "1"},
        "components": {
            "securitySchemes": {"Guard": {"type": "oauth2", "x-amazon-apigateway-authorizer": guard}}
        },
        "paths": {"/cars": {"get": operation}},
    }
    api = client.import_api(Body=json.dumps(document))["ApiId"]
    client.create_stage(ApiId=api, StageName="$default", AutoDeploy=True)
    asked = [
        gateway.ask(api, "/cars", headers={"Authorization": issuer.token(scope=scope)}).status
        for scope in ("read", "write")
    ]
    assert asked == [200, 403]
    assert gateway.ask(api, "/cars").status == 401
