"""Bearer tokens: the accounts that they name, and the ones that are refused."""

import base64
import hmac
from collections.abc import Callable
from typing import Any

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from redrive.access.keys import KIND, AccessKey, Keyring
from redrive.access.refusals import Refusals
from redrive.azure.wire.answers import AzureError
from redrive.azure.wire.bearer import BearerCaller, BearerVerifier, TrustAllBearers, issue
from redrive.engine.ports import Put
from redrive.model.http import Request
from redrive.testing import VirtualClock
from tests.azure.stage import Stage

KEY = AccessKey("AKIAEXAMPLE", "s3cret", "123456789012", 0)
HEADER = {"typ": "JWT", "alg": "HS256"}
HOUR_MS = 3600 * 1000


@pytest.fixture
async def keyring(stage: Stage, clock: VirtualClock) -> Keyring:
    await stage.engine.parts.store.write([Put(KIND, KEY.access_key_id, KEY.to_document())])
    return Keyring(stage.engine.parts.store, clock)


def claims(clock: VirtualClock, **other: Any) -> dict[str, Any]:
    return {"appid": KEY.access_key_id, "exp": (clock.now() + HOUR_MS) // 1000, **other}


def request(authorization: str | None) -> Request:
    headers = {} if authorization is None else {"authorization": authorization}
    return Request("GET", "/subscriptions", "", headers, b"")


async def test_a_token_names_the_account_of_its_key(keyring: Keyring, clock: VirtualClock) -> None:
    token = issue(claims(clock), KEY.secret)
    caller = await BearerVerifier(keyring, clock).caller(request(f"bearer {token}"))
    assert caller == BearerCaller(KEY.account)
    assert caller.manages(f"00000000-0000-0000-0000-{KEY.account}")
    assert not caller.manages("00000000-0000-0000-0000-000000000000")


async def test_the_secret_of_a_key_gets_a_token(keyring: Keyring, clock: VirtualClock) -> None:
    verifier = BearerVerifier(keyring, clock)
    assert await verifier.accepts(request(None), KEY.access_key_id, KEY.secret)
    assert not await verifier.accepts(request(None), KEY.access_key_id, "another")
    assert not await verifier.accepts(request(None), "nobody", KEY.secret)


async def test_refused_callers_are_counted_and_logged(
    keyring: Keyring, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    refusals = Refusals(clock)
    verifier = BearerVerifier(keyring, clock, refusals)
    foreign = issue(claims(clock), "another secret")
    late = issue({**claims(clock), "exp": 1}, KEY.secret)
    for authorization in (f"Bearer {foreign}", None, f"Bearer {late}", "Bearer x", "Bearer x"):
        with pytest.raises(AzureError):
            await verifier.caller(request(authorization))
    assert not await verifier.accepts(request(None), KEY.access_key_id, "another")
    await verifier.caller(request(f"Bearer {issue(claims(clock), KEY.secret)}"))
    assert refusals.totals == {
        "BearerTokenMissing": 1,
        "BearerTokenInvalid": 3,
        "BearerTokenExpired": 1,
        "ClientSecretInvalid": 1,
    }
    (line,) = caplog.messages  # the others come within its minute
    assert "address=127.0.0.1 identity='AKIAEXAMPLE' reason=BearerTokenInvalid" in line
    assert foreign not in line


async def test_a_token_that_is_too_long_to_be_ours_is_not_read(
    keyring: Keyring, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = issue(claims(clock, padding="x" * 4096), KEY.secret)
    monkeypatch.setattr(jwt, "decode_complete", None)
    await assert_refused(keyring, clock, f"Bearer {long}")


def encoded(part: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(part)).decode().rstrip("=")


def forged(header: Any, said: Any, sign: Callable[[bytes], bytes]) -> str:
    """A token of any header, claims and signature."""
    text = f"{encoded(header)}.{encoded(said)}"
    return f"{text}.{base64.urlsafe_b64encode(sign(text.encode())).decode().rstrip('=')}"


def hmac_with(secret: bytes, digest: str = "sha256") -> Callable[[bytes], bytes]:
    return lambda text: hmac.digest(secret, text, digest)


async def assert_refused(keyring: Keyring, clock: VirtualClock, authorization: str | None) -> None:
    with pytest.raises(AzureError) as refusal:
        await BearerVerifier(keyring, clock).caller(request(authorization))
    assert (refusal.value.status, refusal.value.code) == (401, "AuthenticationFailed"), authorization


async def test_broken_and_foreign_tokens_are_refused(keyring: Keyring, clock: VirtualClock) -> None:
    good = issue(claims(clock), KEY.secret)
    head, body, signature = good.split(".")
    others = issue(claims(clock, appid="nobody"), KEY.secret).split(".")
    for authorization in (
        None,
        "Bearer",
        f"Basic {good}",
        "Bearer x.y.z",
        "Bearer ....",
        f"Bearer {head}.{body}",
        f"Bearer {head}.{body}.",
        f"Bearer {good}.{signature}.{signature}",
        f"Bearer {head}.{body}.{signature[:-2]}AA",
        f"Bearer {head}.{others[1]}.{signature}",
        f"Bearer {'.'.join(others)}",
        f"Bearer {issue(claims(clock), 'another')}",
        f"Bearer {forged(HEADER, [1], hmac_with(KEY.secret.encode()))}",
        f"Bearer {forged(HEADER, {}, hmac_with(KEY.secret.encode()))}",
        f"Bearer {forged([1], claims(clock), hmac_with(KEY.secret.encode()))}",
    ):
        await assert_refused(keyring, clock, authorization)


@pytest.mark.parametrize("end", ["never", None, True, 1.5, -1, [], {}, "1e9", 0])
async def test_a_token_without_an_end_to_come_is_refused(
    keyring: Keyring, clock: VirtualClock, end: Any
) -> None:
    await assert_refused(keyring, clock, f"Bearer {issue(claims(clock, exp=end), KEY.secret)}")
    over = issue(claims(clock, exp=clock.now() // 1000), KEY.secret)
    await assert_refused(keyring, clock, f"Bearer {over}")


@pytest.mark.parametrize(
    "header",
    [
        {"typ": "JWT", "alg": "none"},
        {"typ": "JWT", "alg": "None"},
        {"typ": "JWT", "alg": ""},
        {"typ": "JWT"},
        {"alg": "HS256"},
        {"typ": "JWT", "alg": "HS384"},
        {"typ": "JWT", "alg": "RS256"},
        {"typ": "JWT", "alg": ["HS256"]},
        {"typ": "JWT", "alg": "HS256", "kid": "AKIAEXAMPLE"},
        {"typ": "JWT", "alg": "HS256", "kid": "../../dev/null"},
        {"typ": "JWT", "alg": "HS256", "jku": "http://127.0.0.1/keys"},
        {"typ": "JWT", "alg": "HS256", "jwk": {"kty": "oct", "k": "czNjcmV0"}},
        {"typ": "JWT", "alg": "HS256", "b64": False, "crit": ["b64"]},
        {"typ": "JWT", "alg": "HS256", "crit": ["exp"]},
    ],
)
async def test_a_token_that_asks_for_another_check_is_refused(
    keyring: Keyring, clock: VirtualClock, header: dict[str, Any]
) -> None:
    """Also with the right signature: no header chooses the algorithm or the key."""
    for sign in (hmac_with(KEY.secret.encode()), hmac_with(KEY.secret.encode(), "sha384"), lambda _: b""):
        await assert_refused(keyring, clock, f"Bearer {forged(header, claims(clock), sign)}")


async def test_the_public_key_of_webhooks_tokens_opens_nothing(keyring: Keyring, clock: VirtualClock) -> None:
    """Neither as the secret of an HMAC, in each of its forms, nor as the key of the signature that it checks."""
    private = rsa.generate_private_key(65537, 2048)
    public = private.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, pem.strip(), der):
        await assert_refused(keyring, clock, f"Bearer {forged(HEADER, claims(clock), hmac_with(secret))}")
    signed = jwt.encode(claims(clock), private, "RS256")
    await assert_refused(keyring, clock, f"Bearer {signed}")
    _, body, signature = signed.split(".")
    await assert_refused(keyring, clock, f"Bearer {encoded(HEADER)}.{body}.{signature}")


async def test_a_token_of_earlier_versions_is_accepted(keyring: Keyring, clock: VirtualClock) -> None:
    """They were signed by hand, with the header's members in this order."""
    token = forged(HEADER, claims(clock), hmac_with(KEY.secret.encode()))
    assert await BearerVerifier(keyring, clock).caller(request(f"Bearer {token}")) == BearerCaller(
        KEY.account
    )
    assert issue(claims(clock), KEY.secret).partition(".")[0] == encoded(HEADER)


async def test_a_token_ends_with_its_key(keyring: Keyring, clock: VirtualClock) -> None:
    token = issue(claims(clock), KEY.secret)
    await keyring.remove(KEY.access_key_id)
    with pytest.raises(AzureError):
        await BearerVerifier(keyring, clock).caller(request(f"Bearer {token}"))


async def test_without_authentication_everybody_manages_everything() -> None:
    caller = await TrustAllBearers().caller(request(None))
    assert caller.manages("any")
