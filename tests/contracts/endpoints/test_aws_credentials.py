"""Credentials that sign a call: keys of the URL, else those of botocore's chain, asked beside the event loop."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from redrive.aws.wire.signatures.sigv4 import MissingToken
from redrive.endpoints.aws import calls as aws_credentials
from redrive.endpoints.aws.calls import AwsClient, AwsCredentials, read_place
from redrive.endpoints.aws.function import FunctionEndpoint
from redrive.endpoints.http import HttpEndpoint
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.contracts.endpoints.aws import FUNCTION, TAKEN, call_of, with_keys
from tests.contracts.endpoints.kinds import NOW
from tests.contracts.endpoints.test_function import push_request
from tests.contracts.endpoints.webhook import Received, Webhook, answer
from tests.services.aws_calls import KEY_ID, SECRET


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No keys on this machine."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


class Caller:
    """Invokes a function at a webhook, signed by the chain."""

    def __init__(self, http: HttpEndpoint, hook: Webhook) -> None:
        self.now = NOW
        self.value = hook.url("")
        self._hook = hook
        client = AwsClient(http, lambda _: self.value, AwsCredentials(lambda: self.now))
        self._functions = FunctionEndpoint(lambda: NOW, client)

    async def push(self) -> Attempt:
        return await self._functions.push(push_request())

    async def signer(self) -> str:
        """Return the id of the key that signed a push."""
        self._hook.say(TAKEN)
        assert (await self.push()).delivered
        return call_of(self._hook.received[-1]).proved().access_key_id


@pytest.fixture
async def caller(endpoint: HttpEndpoint, hook: Webhook) -> Caller:
    return Caller(endpoint, hook)


async def test_the_environment_says_who_we_are(
    caller: Caller, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a token")
    assert await caller.signer() == "AKIDENV"
    assert hook.received[0].headers["x-amz-security-token"] == "a token"


async def test_a_file_says_who_we_are(caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = AKIDFILE\naws_secret_access_key = {SECRET}\n"
    )
    assert await caller.signer() == "AKIDFILE"


async def test_keys_of_the_url_stand_before_all(
    endpoint: HttpEndpoint, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    caller = Caller(endpoint, hook)
    caller.value = with_keys(caller.value)
    assert await caller.signer() == KEY_ID
    assert "authorization" in hook.received[0].headers
    assert SECRET not in repr(read_place(FUNCTION, with_keys(caller.value)))


def _keys(minutes: float, number: int = 1) -> bytes:
    """Answer of a container: keys that are valid for so many minutes."""
    expires = datetime.now(UTC) + timedelta(minutes=minutes)
    keys = {
        "AccessKeyId": f"AKID{number}",
        "SecretAccessKey": SECRET,
        "Token": "t",
        "Expiration": f"{expires:%Y-%m-%dT%H:%M:%SZ}",
    }
    return answer("200 OK", orjson.dumps(keys))


async def test_keys_that_expire_are_renewed_while_the_loop_goes_on(
    caller: Caller, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container's keys come from this very loop: asked on it, they would never come."""
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", hook.url("/keys"))
    numbers = iter(range(1, 10))

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        asked = request.line.startswith("GET /keys")
        writer.write(
            _keys(10, next(numbers)) if asked else TAKEN
        )  # botocore renews what holds for less than 15

    hook.script = script
    signers = []
    for _ in range(3):
        assert (await caller.push()).delivered
        signers.append(call_of(hook.received[-1]).proved().access_key_id)
    assert signers == ["AKID2", "AKID3", "AKID4"]  # the first were old when they came


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (answer("500 Internal Server Error", b"{}"), "metadata"),
        (answer("200 OK", b"no keys"), "metadata"),
        (_keys(-10), "expired"),
    ],
)
async def test_a_container_in_trouble_is_a_failed_attempt(
    caller: Caller, hook: Webhook, monkeypatch: pytest.MonkeyPatch, said: bytes, complaint: str
) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", hook.url("/keys"))
    hook.say(said)
    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.SLEEP_TIME", 0)
    attempt = await caller.push()
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.DENIED)
    assert complaint in attempt.response


async def test_without_keys_a_url_is_called_unsigned_and_amazon_is_not_called(
    caller: Caller, hook: Webhook
) -> None:
    hook.say(TAKEN)
    assert (await caller.push()).delivered
    with pytest.raises(MissingToken):
        call_of(hook.received[0]).proved()


async def test_without_keys_amazon_itself_is_not_called(endpoint: HttpEndpoint, hook: Webhook) -> None:
    caller = Caller(endpoint, hook)
    caller.value = "aws"
    attempt = await caller.push()
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.DENIED)
    assert attempt.response == "No credentials were found to sign with"


async def test_missing_credentials_are_looked_up_once_a_minute(
    caller: Caller, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0

    def look() -> None:
        nonlocal looked
        looked += 1

    monkeypatch.setattr(aws_credentials, "_look", look)
    hook.say(TAKEN)
    await asyncio.gather(*(caller.push() for _ in range(20)))
    caller.now += 59_999
    await caller.push()
    assert looked == 1
    caller.now += 1
    await caller.push()
    assert looked == 2


async def test_slow_credentials_time_out_with_the_attempt(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: AwsCredentials) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(AwsCredentials, "current", never)
    attempt = await caller._functions.push(push_request(timeout_ms=50))
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TIMED_OUT)


@pytest.mark.parametrize(
    ("arn", "url"),
    [
        ("arn:aws:lambda:eu-central-1:1:function:f", "https://lambda.eu-central-1.amazonaws.com"),
        ("arn:aws-cn:lambda:cn-north-1:1:function:f", "https://lambda.cn-north-1.amazonaws.com.cn"),
        (
            "arn:aws-us-gov:firehose:us-gov-west-1:1:deliverystream/s",
            "https://firehose.us-gov-west-1.amazonaws.com",
        ),
    ],
)
def test_amazon_s_own_servers(arn: str, url: str) -> None:
    place = read_place(arn, "aws")
    assert (place.url, place.is_aws, place.keys) == (url, True, None)
    assert place.name in ("f", "s")
