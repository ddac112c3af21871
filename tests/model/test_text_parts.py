import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redrive.model.text_parts import parts_of, text_of

SEPTETS = "".join(text_of(bytes([code]), wide=False) for code in range(128) if code != 0x1B)


@pytest.mark.parametrize(
    ("text", "wide", "lengths"),
    [
        ("", False, [0]),
        ("x" * 160, False, [160]),
        ("x" * 161, False, [153, 8]),
        ("x" * 306, False, [153, 153]),
        ("€" * 80, False, [160]),
        ("€" * 81, False, [152, 10]),
        ("ж" * 70, True, [140]),
        ("ж" * 71, True, [134, 8]),
        ("🚗" * 35, True, [140]),
        ("🚗" * 36, True, [132, 12]),  # 33 and 3: a pair of surrogates is not parted
        ("x" * 150 + " yyyy " + "z" * 20, False, [151, 25]),
        ("x" * 152 + " " + "z" * 20, False, [153, 20]),
        ("at " + "x" * 153 + " zz zz", False, [3, 153, 6]),
        ("at " + "x" * 154 + " zz zz", False, [153, 10]),  # a word that no part has room for
        (" " + "x" * 152 + "€" + "y" * 9, False, [153, 11]),
        ("ж " + "ж" * 66 + "🚗" + "ж" * 9, True, [134, 24]),
        ("x" * 1600, False, [153] * 10 + [70]),
        ("ж" * 1600, True, [134] * 23 + [118]),
    ],
)
def test_a_text_is_cut_into_parts_by_its_alphabet(text: str, wide: bool, lengths: list[int]) -> None:
    parts = parts_of(text)
    assert (parts.wide, [len(part) for part in parts.parts]) == (wide, lengths)


@pytest.mark.parametrize(
    ("text", "octets"),
    [
        ("@£$_ÄÖÜäöüß§à", b"\x00\x01\x02\x11\x5b\x5c\x5e\x7b\x7c\x7e\x1e\x5f\x7f"),
        ("[]{}\\~|^€", b"\x1b\x3c\x1b\x3e\x1b\x28\x1b\x29\x1b\x2f\x1b\x3d\x1b\x40\x1b\x14\x1b\x65"),
        ("Az09", b"Az09"),
    ],
)
def test_texts_of_the_default_alphabet_have_its_septets(text: str, octets: bytes) -> None:
    assert parts_of(text).parts == [octets]


def test_undecodable_octets_become_replacement_characters() -> None:
    assert text_of(b"a\x1b\x00b\x1b", wide=False) == "a?b?"
    assert text_of(b"\xd8\x00\x00a", wide=True) == "\ufffda"


@given(st.text(st.characters(codec="utf-8")) | st.text(SEPTETS + "€[] ", max_size=700))
@example(" " + "x" * 152 + "€" * 80)
def test_the_parts_of_a_text_join_to_the_same_text(text: str) -> None:
    cut = parts_of(text)
    assert text_of(b"".join(cut.parts), wide=cut.wide) == text
    most = (140 if cut.wide else 160) if len(cut.parts) == 1 else (134 if cut.wide else 153)
    assert all(0 < len(part) <= most for part in cut.parts) or text == ""
    for part in cut.parts:  # each can be read by itself
        assert "\ufffd" not in text_of(part, wide=cut.wide) or "\ufffd" in text


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=20), min_size=40, max_size=60))
def test_words_stay_whole(words: list[str]) -> None:
    cut = parts_of(" ".join(words))
    together = [word for part in cut.parts for word in text_of(part, wide=False).split()]
    assert together == words
