import asyncio
import json
from pathlib import Path

import pytest

from redrive.access.identities import USER, User
from redrive.access.keys import KEY_USE, KeyUse
from redrive.cli.main import main
from redrive.composition.store import open_store
from redrive.engine.ports import Put
from redrive.runtime.machine import SystemClock, real_runtime
from redrive.settings import Settings


@pytest.fixture
def store(tmp_path: Path) -> tuple[str, str]:
    return ("--store", f"sqlite:///{tmp_path}/redrive.db")


def create(store: tuple[str, str], *words: str) -> int:
    return main(["keys", "create", "--account", "123456789012", *words, *store])


def test_a_key_may_have_an_id_and_a_secret_of_ones_own(
    store: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(store, "--id", "ci-runner", "--secret", "sixteen-or-more/+") == 0
    said = capsys.readouterr()
    assert said.out == "AWS_ACCESS_KEY_ID=ci-runner\nAWS_SECRET_ACCESS_KEY=sixteen-or-more/+\n"
    assert said.err == ""
    assert main(["keys", "list", *store]) == 0
    assert capsys.readouterr().out == "ci-runner  123456789012  active\n"


def test_a_store_without_keys_says_so(store: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "list", *store]) == 0
    assert capsys.readouterr() == ("", "redrive: there are no access keys\n")


def test_a_secret_that_can_be_guessed_is_told_of(
    store: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(store, "--id", "test", "--secret", "test") == 0
    assert "fewer than 16 characters can be guessed" in capsys.readouterr().err


def test_an_id_is_given_once(store: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert create(store, "--id", "test", "--secret", "sixteen-or-more/+") == 0
    assert create(store, "--id", "test", "--secret", "another-secret/+") == 1
    assert "there is a key test already; remove it first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--id", "test"), "--id needs --secret, and --secret needs --id"),
        (("--secret", "x" * 16), "--id needs --secret, and --secret needs --id"),
        (("--id", "a/b", "--secret", "x" * 16), "An access key id has 1 to 128 letters"),
        (("--id", "test", "--secret", "a secret with blanks"), "A secret has 1 to 128 characters"),
        (("--id", "", "--secret", ""), "An access key id has 1 to 128 letters"),
    ],
)
def test_keys_that_cannot_sign_are_refused(
    words: tuple[str, ...], why: str, store: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(store, *words) == 2
    assert why in capsys.readouterr().err.splitlines()[-1]


def test_a_key_that_was_used_says_when_and_by_which_service(
    store: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(store, "--id", "ci-runner", "--secret", "sixteen-or-more/+") == 0
    use = KeyUse(1_700_000_000_000, "sqs", "eu-west-1")
    write(store, Put(KEY_USE.name, "ci-runner", use.to_document()))
    capsys.readouterr()
    assert main(["keys", "list", *store]) == 0
    assert capsys.readouterr().out.rstrip().endswith("active  last used 2023-11-14 22:13:20Z by sqs")
    assert main(["keys", "list", "--json", *store]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["keys"]
    assert listed["last_used"] == {"at": use.at, "service": "sqs", "region": "eu-west-1"}


def make_user(place: tuple[str, str], name: str) -> None:
    """Put a user into the store, as IAM does."""
    user = User("123456789012", "/", name, "AIDAEXAMPLE", 0)
    write(place, Put(USER.name, user.key, user.to_document()))


def write(place: tuple[str, str], put: Put) -> None:
    """Put a document into the store."""

    async def make() -> None:
        runtime = real_runtime(SystemClock())
        opened = open_store(Settings(store=place[1]), runtime)
        await opened.open()
        await opened.write([put])
        await opened.close()

    asyncio.run(make())


def test_a_user_has_two_keys_of_its_own(store: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert create(store, "--user", "ann") == 1
    assert "account 123456789012 has no user ann" in capsys.readouterr().err
    make_user(store, "ann")
    for key_id in ("first", "second"):
        assert create(store, "--user", "ANN", "--id", key_id, "--secret", "sixteen-or-more/+") == 0
    assert create(store, "--user", "ann") == 1
    assert "user ann has 2 keys already" in capsys.readouterr().err
    assert main(["keys", "list", *store]) == 0
    assert capsys.readouterr().out == "first  123456789012  active  ann\nsecond  123456789012  active  ann\n"
    assert main(["keys", "list", "--json", *store]) == 0
    listed = json.loads(capsys.readouterr().out)["keys"]
    assert [key["user"] for key in listed] == ["ann", "ann"]
    assert main(["keys", "remove", "first", *store]) == 0
    assert create(store, "--user", "ann") == 0
