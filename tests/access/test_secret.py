"""The seal of an installation: its own secret alone opens it, and command lines take its text."""

from hypothesis import given
from hypothesis import strategies as st

from redrive.access.secret import InstallationSecret, PurposeSealer

SEALER = PurposeSealer(InstallationSecret(bytes(32)), "receipt handles")


@given(st.binary(min_size=1, max_size=40))
def test_sealed_content_is_read_back(content: bytes) -> None:
    assert SEALER.unseal(SEALER.seal(content)) == content


def test_no_text_begins_with_a_hyphen() -> None:
    texts = [SEALER.seal(number.to_bytes(4)) for number in range(1000)]
    assert {text[0] for text in texts} >= {".", "_"}  # some would have begun with one
    assert not [text for text in texts if text.startswith("-")]
    assert [SEALER.unseal(text) for text in texts] == [number.to_bytes(4) for number in range(1000)]


def test_the_hyphen_of_older_nodes_is_read() -> None:
    text = next(
        text for text in (SEALER.seal(number.to_bytes(4)) for number in range(1000)) if text[0] == "."
    )
    assert SEALER.unseal("-" + text[1:]) == SEALER.unseal(text) is not None


def test_another_purpose_and_other_texts_open_nothing() -> None:
    text = SEALER.seal(b"claim")
    assert PurposeSealer(InstallationSecret(bytes(32)), "lock tokens").unseal(text) is None
    assert [SEALER.unseal(other) for other in ("", ".", "-", text[:-1], text + "A", "é" + text[1:])] == [
        None
    ] * 6
