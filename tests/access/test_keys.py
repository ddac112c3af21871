"""Access keys."""

import json
import random
import re

import pytest

from redrive.access.keys import ANY_ACCOUNT, AccessKey, account_of_key_id, new_access_key

_NOW = 1_440_938_160_000


def test_a_new_key_has_the_form_of_amazons() -> None:
    key = new_access_key("111111111111", _NOW, random.Random(1))
    assert re.fullmatch("AKIA[A-Z2-7]{16}", key.access_key_id)
    assert re.fullmatch("[A-Za-z0-9+/]{40}", key.secret)
    assert (key.account, key.created_at, key.active) == ("111111111111", _NOW, True)


def test_chance_makes_the_key() -> None:
    rng = random.Random(1)
    first, second = (new_access_key("111111111111", _NOW, rng) for _ in range(2))
    assert first.access_key_id != second.access_key_id
    assert first.secret != second.secret
    assert new_access_key("111111111111", _NOW, random.Random(1)) == first


def test_a_secret_is_not_shown() -> None:
    key = new_access_key("111111111111", _NOW, random.Random(1))
    assert key.secret not in repr(key)


def test_a_document_brings_the_key_back() -> None:
    key = AccessKey("AKIAREDRIVETESTS2345", "s" * 40, "111111111111", _NOW, active=False)
    assert AccessKey.from_document(json.loads(json.dumps(key.to_document()))) == key


@pytest.mark.parametrize("account", ["", "1", "1234567890123", "12345678901x", "١٢٣٤٥٦٧٨٩٠١٢"])
def test_an_account_is_twelve_digits(account: str) -> None:
    with pytest.raises(ValueError, match="An account is 12 digits"):
        new_access_key(account, _NOW, random.Random(1))


@pytest.mark.parametrize(
    ("key_id", "account"),
    [
        ("123456789012", "123456789012"),
        ("000000000000", "000000000000"),
        ("AKIAREDRIVETESTS2345", ANY_ACCOUNT),
        ("test", ANY_ACCOUNT),
        ("12345678901x", ANY_ACCOUNT),
        ("1234567890123", ANY_ACCOUNT),
        ("", ANY_ACCOUNT),
    ],
)
def test_unverified_a_key_id_of_twelve_digits_is_the_account(key_id: str, account: str) -> None:
    assert account_of_key_id(key_id) == account
    assert ANY_ACCOUNT == "000000000000"
