"""Tokens: whom they name, and which are not believed."""

import base64
from typing import Any

import orjson
import pytest

from redrive.access.keyring import KIND, Keyring
from redrive.access.keys import AccessKey
from redrive.engine.ports import Put
from redrive.protocols.azure.wire.bearer import Believing, Caller, Verifying, issue
from redrive.protocols.azure.wire.errors import AzureError
from redrive.protocols.http import Request
from redrive.testing import VirtualClock
from tests.protocols.azure.stage import Stage

KEY = AccessKey("AKIAEXAMPLE", "s3cret", "123456789012", 0)
HOUR_MS = 3600 * 1000


@pytest.fixture
async def keyring(stage: Stage, clock: VirtualClock) -> Keyring:
    await stage.engine.store.write([Put(KIND, KEY.access_key_id, KEY.to_document())])
    return Keyring(stage.engine.store, clock)


def claims(clock: VirtualClock, **other: Any) -> dict[str, Any]:
    return {"appid": KEY.access_key_id, "exp": (clock.now() + HOUR_MS) // 1000, **other}


def request(authorization: str | None) -> Request:
    headers = {} if authorization is None else {"authorization": authorization}
    return Request("GET", "/subscriptions", "", headers, b"")


async def test_a_token_names_the_account_of_its_key(keyring: Keyring, clock: VirtualClock) -> None:
    token = issue(claims(clock), KEY.secret)
    caller = await Verifying(keyring, clock).caller(request(f"bearer {token}"))
    assert caller == Caller(KEY.account)
    assert caller.manages(f"00000000-0000-0000-0000-{KEY.account}")
    assert not caller.manages("00000000-0000-0000-0000-000000000000")


async def test_who_may_have_a_token(keyring: Keyring, clock: VirtualClock) -> None:
    verifying = Verifying(keyring, clock)
    assert await verifying.accepts(KEY.access_key_id, KEY.secret)
    assert not await verifying.accepts(KEY.access_key_id, "another")
    assert not await verifying.accepts("nobody", KEY.secret)


def unsigned(clock: VirtualClock) -> str:
    """The oldest trick: a header that asks for no signature."""
    parts = [orjson.dumps({"typ": "JWT", "alg": "none"}), orjson.dumps(claims(clock))]
    return ".".join([base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts] + [""])


async def test_tokens_that_are_not_believed(keyring: Keyring, clock: VirtualClock) -> None:
    good = issue(claims(clock), KEY.secret)
    head, body, signature = good.split(".")
    others = issue(claims(clock, appid="nobody"), KEY.secret).split(".")
    refused = [
        None,
        "Bearer",
        f"Basic {good}",
        "Bearer x.y.z",
        "Bearer ....",
        f"Bearer {head}.{body}",
        f"Bearer {head}.{body}.{signature[:-2]}AA",
        f"Bearer {head}.{others[1]}.{signature}",
        f"Bearer {'.'.join(others)}",
        f"Bearer {issue(claims(clock), 'another')}",
        f"Bearer {issue(claims(clock, exp=clock.now() // 1000), KEY.secret)}",
        f"Bearer {issue(claims(clock, exp='never'), KEY.secret)}",
        f"Bearer {unsigned(clock)}",
    ]
    verifying = Verifying(keyring, clock)
    for authorization in refused:
        with pytest.raises(AzureError) as refusal:
            await verifying.caller(request(authorization))
        assert (refusal.value.status, refusal.value.code) == (401, "AuthenticationFailed"), authorization


async def test_a_token_ends_with_its_key(keyring: Keyring, clock: VirtualClock) -> None:
    token = issue(claims(clock), KEY.secret)
    await keyring.remove(KEY.access_key_id)
    with pytest.raises(AzureError):
        await Verifying(keyring, clock).caller(request(f"Bearer {token}"))


async def test_where_everybody_is_believed_everything_is_theirs() -> None:
    caller = await Believing().caller(request(None))
    assert caller.manages("any")
