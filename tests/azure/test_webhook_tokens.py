"""Tokens for webhooks: what they say, how long they are used, and where they go."""

from typing import Any, Final

import jwt
import orjson
import pytest

from redrive.access.keys import Keyring
from redrive.access.signing_pair import make_pair
from redrive.azure.entra import WebhookTokens
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA, TokenAudience
from redrive.azure.handshake import Handshakes
from redrive.azure.wire.answers import AzureError
from redrive.azure.wire.bearer import BearerVerifier
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.http import Request
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import VirtualClock
from tests.azure.stage import BASE_URL as BASE
from tests.azure.stage import EVENT, Scripted, Stage, signing_pair

TENANT: Final = "11111111-1111-1111-1111-111111111111"
SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"
AUDIENCE: Final = TokenAudience(TENANT, "api://billing", SUBSCRIPTION)
PROTECTED: Final = {
    "azureActiveDirectoryTenantId": TENANT,
    "azureActiveDirectoryApplicationIdOrUri": "api://billing",
}
MINUTE: Final = 60_000


@pytest.fixture
def tokens(clock: VirtualClock) -> WebhookTokens:
    return WebhookTokens(clock, signing_pair(), BASE)


async def issued(tokens: WebhookTokens, audience: TokenAudience = AUDIENCE) -> str:
    scheme, _, token = tokens.authorization(audience)["Authorization"].partition(" ")
    assert scheme == "Bearer"
    return token


async def read(tokens: WebhookTokens, token: str, audience: str = "api://billing") -> dict[str, Any]:
    """Return a token's claims, verified by the published key; these tests' clock is not PyJWT's."""
    keys = jwt.PyJWKSet.from_dict(dict(await tokens.key_set()))
    key = keys[jwt.get_unverified_header(token)["kid"]]
    timeless = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
    claims: dict[str, Any] = jwt.decode(token, key, ["RS256"], timeless, audience=audience)
    return claims


async def test_a_token_has_the_claims_of_event_grid(tokens: WebhookTokens, clock: VirtualClock) -> None:
    claims = await read(tokens, await issued(tokens))
    began = claims["iat"]
    assert began * 1000 <= clock.now() < (began + 55 * 60) * 1000
    event_grid = "4962773b-9cdb-44cf-a8bf-237846a00ab7"
    assert claims == {
        "aud": "api://billing",
        "iss": f"{BASE}/{TENANT}/v2.0",
        "iat": began,
        "nbf": began,
        "exp": began + 3600,
        "appid": event_grid,
        "azp": event_grid,
        "oid": SUBSCRIPTION,
        "sub": SUBSCRIPTION,
        "tid": TENANT,
        "ver": "2.0",
    }


async def test_another_key_checks_nothing(tokens: WebhookTokens, clock: VirtualClock) -> None:
    other = WebhookTokens(clock, make_pair(clock.now()), BASE)
    token = await issued(other)
    with pytest.raises(KeyError):
        await read(tokens, token)
    with pytest.raises(jwt.InvalidAudienceError):
        await read(other, token, "api://others")


async def test_a_token_is_used_until_shortly_before_its_end(
    tokens: WebhookTokens, clock: VirtualClock
) -> None:
    seen = []
    for _ in range(240):
        token = await issued(tokens)
        claims = await read(tokens, token)
        assert claims["nbf"] * 1000 <= clock.now()
        assert clock.now() + 5 * MINUTE <= claims["exp"] * 1000
        seen.append(token)
        await clock.sleep_until(clock.now() + MINUTE)
    assert len(set(seen)) in (5, 6)  # of four hours


async def test_each_audience_has_its_own_and_all_nodes_the_same(
    tokens: WebhookTokens, clock: VirtualClock
) -> None:
    node = WebhookTokens(clock, signing_pair(), BASE)
    others = [
        TokenAudience("contoso.example", AUDIENCE.application, SUBSCRIPTION),
        TokenAudience(TENANT, "api://shipping", SUBSCRIPTION),
        TokenAudience(TENANT, AUDIENCE.application, "00000000-0000-0000-0000-123456789012"),
    ]
    made = [await issued(tokens, one) for one in (AUDIENCE, *others)]
    assert len(set(made)) == 4
    assert [await issued(node, one) for one in (AUDIENCE, *others)] == made


async def test_a_webhook_without_an_audience_gets_no_token(tokens: WebhookTokens) -> None:
    assert tokens.authorization(None) == {}


async def test_this_server_does_not_accept_them_itself(tokens: WebhookTokens, clock: VirtualClock) -> None:
    store = SqliteStore(None)
    await store.open()
    headers = {"authorization": f"Bearer {await issued(tokens)}"}
    with pytest.raises(AzureError) as refusal:
        await BearerVerifier(Keyring(store, clock), clock).caller(Request("GET", "/", "", headers, b""))
    await store.close()
    assert refusal.value.status == 401


@pytest.mark.parametrize(
    ("kind", "destination", "protected"),
    [
        ("WebHook", PROTECTED, True),
        ("WebHook", {}, False),
        ("WebHook", {**PROTECTED, "azureActiveDirectoryTenantId": ""}, False),
        ("AzureFunction", {**PROTECTED, "azureActiveDirectoryTenantId": []}, False),
    ],
)
async def test_deliveries_to_protected_webhooks_carry_a_token(
    stage: Stage, kind: str, destination: dict[str, Any], protected: bool
) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, kind=kind, destination=destination)
    await stage.publish(topic, EVENT)
    await stage.pass_time(1)
    ((_, push_request),) = stage.web.pushed
    assert ("Authorization" in push_request.headers) is protected
    if protected:
        token = push_request.headers["Authorization"].removeprefix("Bearer ")
        assert (await read(stage.tokens, token))["sub"] == SUBSCRIPTION


@pytest.mark.parametrize(("schema", "method"), [("EventGridSchema", "POST"), (CLOUD_EVENT_SCHEMA, "OPTIONS")])
async def test_handshakes_with_protected_webhooks_carry_a_token(
    stage: Stage, schema: str, method: str
) -> None:
    topic = await stage.topic()
    asked = await stage.subscribe(topic, destination=PROTECTED, eventDeliverySchema=schema)
    silent = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, orjson.dumps({}).decode(), 1)
    hook = Scripted(stage.clock, silent)
    handshakes = Handshakes(stage.engine, {"https": hook}, stage.tokens, stage.clock)
    await handshakes.ask(asked, BASE, stage.clock.now())
    ((_, push_request),) = hook.pushed
    assert push_request.method == method
    token = push_request.headers["Authorization"].removeprefix("Bearer ")
    assert (await read(stage.tokens, token))["aud"] == "api://billing"
