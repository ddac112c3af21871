"""A memory of texts is bounded by their number and by their length."""

from collections import Counter

import pytest

from redrive.azure.eventgrid import settings
from redrive.model import metric
from redrive.model.memo import remembered
from redrive.model.metric import Series


def made_of(texts: list[str], longer_max: int) -> Counter[int]:
    """The number of times something was made of each text, by its length, where each is asked for three times."""
    made: Counter[int] = Counter()

    @remembered(entries_max=4, chars_max=10, longer_max=longer_max)
    def make(text: str, suffix: str) -> str:
        made[len(text)] += 1
        return text + suffix

    for text in texts:
        for _ in range(3):
            assert make(text, "!") == text + "!"
    return made


def test_short_texts_are_remembered_and_long_ones_as_many_as_are_allowed() -> None:
    assert made_of(["a" * 9, "b" * 10], longer_max=0) == {9: 1, 10: 3}  # with the suffix, eleven characters
    assert made_of(["a" * 9, "b" * 10], longer_max=1) == {9: 1, 10: 1}


def test_of_longer_texts_few_stay() -> None:
    texts = ["b" * 10, "c" * 11] * 2
    assert made_of(texts, longer_max=1) == {10: 2, 11: 2}
    assert made_of(texts, longer_max=2) == {10: 1, 11: 1}


def test_series_with_much_text_are_not_remembered() -> None:
    short, long = (Series("1", "here", "n", "m", (("d", "x" * chars),)) for chars in (511, 512))
    before = metric._remembered_id.cache_info().misses
    assert short.id != long.id
    assert {short.id, long.id} == {short.id, long.id}
    assert metric._remembered_id.cache_info().misses == before + 1


@pytest.mark.parametrize("read", [settings._topic, settings._delivery, settings.network])
def test_few_long_properties_of_event_grids_resources_are_remembered(read: object) -> None:
    short, longer = (
        each.cell_contents for each in read.__closure__ if hasattr(each.cell_contents, "cache_info")
    )  # type: ignore[attr-defined]  # a function's
    entries = sorted(each.cache_info().maxsize for each in (short, longer))
    assert entries == [32, 4096]
