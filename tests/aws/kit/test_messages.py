"""Rules for messages that SQS and SNS share."""

from hypothesis import example, given
from hypothesis import strategies as st

from redrive.aws.kit.messages import sequence_number

PLACES = st.integers(0, 2**58)


@given(st.sets(PLACES, min_size=2, max_size=20))
@example({0, 1})
@example({2**58 - 1, 2**58})
def test_sequence_numbers_grow_with_the_place(places: set[int]) -> None:
    numbers = [sequence_number(place) for place in sorted(places)]
    assert numbers == sorted(set(numbers))
    assert {len(number) for number in numbers} == {20}


@given(PLACES)
def test_the_next_sequence_number_is_not_the_next_integer(place: int) -> None:
    steps = [int(sequence_number(place + n + 1)) - int(sequence_number(place + n)) for n in range(20)]
    assert len(set(steps)) > 1
    assert all(157 <= step <= 415 for step in steps)


@given(PLACES)
def test_sequence_numbers_are_above_those_of_former_releases(place: int) -> None:
    assert int(sequence_number(place)) > 10**19 + place
