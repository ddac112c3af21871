"""Temporary credentials that were tampered with: tokens of others, changed, cut, stretched, and made by somebody else."""

import zlib
from dataclasses import replace
from urllib.parse import urlencode

import orjson

from redrive.access.secret import InstallationSecret, PurposeSealer, Session, SessionTokens
from redrive.model.http import Request
from tests.aws.stage import ACCOUNT, OTHER, Key, Stage, key_of, on_stage

ROOT = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
TENANT = "00000000-0000-0000-0000-111111111111"
INVALID = "InvalidClientTokenId: The security token included in the request is invalid."


async def refusal(stage: Stage, key: Key) -> str:
    return await stage.refusal(key, "sts", "GetCallerIdentity")


def test_a_token_is_good_with_its_own_key_alone() -> None:
    async def play(stage: Stage) -> None:
        role = await stage.role("worker", ROOT)
        ours, other = await stage.assume(stage.root, role), await stage.assume(stage.root, role)
        assert ours.token is not None
        for key in (
            ours._replace(token=other.token),
            ours._replace(token=None),
            ours._replace(token=""),
            ours._replace(token=ours.token[:-1]),
            ours._replace(token=ours.token + "A"),
            ours._replace(token=ours.token * 40),
            ours._replace(token="é" * 50),
            other._replace(id=ours.id),
            Key(ours.id, ours.secret, stage.root.secret),
            Key("ASIAAAAAAAAAAAAAAAAA", ours.secret, ours.token),
            Key("ASIA", "x", "x"),
        ):
            assert await refusal(stage, key) == INVALID, key
        assert "SignatureDoesNotMatch" in await refusal(stage, ours._replace(secret=other.secret))
        assert "SignatureDoesNotMatch" in await refusal(stage, ours._replace(secret=stage.root.secret))

    on_stage(play)


def test_no_letter_of_a_token_can_be_changed() -> None:
    tokens = SessionTokens(InstallationSecret(b"k" * 32))
    made = tokens.issue(Session(account=ACCOUNT, access_key_id="ASIAAAAAAAAAAAAAAAAA", expires_at=1))
    assert tokens.read(made.access_key_id, made.token) is not None
    for place, letter in enumerate(made.token):
        for other in "Ab0_-=\n ":
            if other != letter:
                changed = made.token[:place] + other + made.token[place + 1 :]
                read = tokens.read(made.access_key_id, changed)
                assert read is None or changed.strip("=") == made.token, (place, other)


def test_tokens_stretched_or_made_elsewhere_are_refused() -> None:
    async def play(stage: Stage) -> None:
        mine = SessionTokens(InstallationSecret(b"guess" * 7))
        role = await stage.role("worker", ROOT)
        asked = {"RoleArn": role, "RoleSessionName": "run"}
        answer = await stage.call(stage.root, "sts", "AssumeRole", **asked)
        ours = key_of(answer["Credentials"])
        tokens = stage.server.core.sessions.tokens
        session = tokens.read(ours.id, ours.token or "")
        assert session is not None
        for claimed in (
            session,
            replace(session, expires_at=2**62),
            replace(session, account=OTHER, role=""),
        ):
            forged = mine.issue(claimed)
            assert await refusal(stage, ours._replace(token=forged.token)) == INVALID
            assert await refusal(stage, Key(forged.access_key_id, forged.secret, forged.token)) == INVALID
        # What this installation seals for another purpose is no token.
        secret = stage.server.core.secret
        claims = zlib.compress(orjson.dumps({"account": OTHER, "access_key_id": ours.id}))
        sealed = PurposeSealer(secret, "receipt handles").seal(claims)
        assert await refusal(stage, ours._replace(token=sealed)) == INVALID

    on_stage(play)


def test_routes_of_the_operator_are_not_for_users_and_roles() -> None:
    async def play(stage: Stage) -> None:
        everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        ann = await stage.user("ann", everything)
        session = await stage.assume(stage.root, await stage.role("worker", ROOT, everything))
        for key, status in ((ann, 403), (session, 403), (stage.root, 200)):
            for method, path in (("POST", "/_redrive/reset"), ("GET", "/_redrive/queues")):
                response = await stage.send(stage.own(method, path, key))
                assert response.status == status, (path, response.body)

    on_stage(play, allow_reset=True)


def test_keys_of_users_open_nothing_of_azures() -> None:
    async def play(stage: Stage) -> None:
        ann = await stage.user("ann", {"Effect": "Allow", "Action": "*", "Resource": "*"})
        session = await stage.assume(stage.root, await stage.role("worker", ROOT))
        for key, status in ((stage.root, 200), (ann, 401), (session, 401)):
            asked = {"grant_type": "client_credentials", "client_id": key.id, "client_secret": key.secret}
            form = urlencode({**asked, "scope": "https://eventgrid.azure.net/.default"}).encode()
            headers = {"host": "localhost:4566", "content-type": "application/x-www-form-urlencoded"}
            request = Request("POST", f"/{TENANT}/oauth2/v2.0/token", "", headers, form)
            response = await stage.send(request)
            assert response.status == status, response.body

    on_stage(play)
