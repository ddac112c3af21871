"""Prefixes: what expressions become, and which are refused."""

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.firehose import objects
from redrive.aws.wire.errors import AwsError

MOMENT = datetime(2026, 3, 9, 7, 5, 3, 42_000, tzinfo=UTC)
ERRORS = "e/!{firehose:error-output-type}/"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy/MM/dd/HH", "2026/03/09/07"),
        ("yy-M-d-H", "26-3-9-7"),
        ("'year='yyyy'/month='MM", "year=2026/month=03"),
        ("EEE, d MMM uuuu h a", "Mon, 9 Mar 2026 7 AM"),
        ("HH:mm:ss.SSS", "07:05:03.042"),
        ("D DDD", "68 068"),
        ("yyyy''MM", "2026'03"),
        ("", ""),
    ],
)
def test_timestamps_are_in_the_letters_of_java(pattern: str, text: str) -> None:
    assert objects.format_moment(pattern, MOMENT) == text


@pytest.mark.parametrize("pattern", ["yyyy'", "Q", "ddd", "VV", "MMMMM"])
def test_other_letters_are_refused(pattern: str) -> None:
    with pytest.raises(AwsError):
        objects.format_moment(pattern, MOMENT)


@pytest.mark.parametrize(
    ("prefix", "text"),
    [
        ("", "2026/03/09/07/"),
        ("orders", "orders2026/03/09/07/"),
        ("a/!{timestamp:yyyy}/!{timestamp:MM}/", "a/2026/03/"),
    ],
)
def test_the_hour_is_added_where_there_is_no_time(prefix: str, text: str) -> None:
    assert objects.evaluate(prefix, MOMENT, Random(1)) == text


@pytest.mark.parametrize(
    ("prefix", "errors", "text"),
    [
        ("", "", "processing-failed/2026/03/09/07/"),
        ("orders/", "", "orders/processing-failed/2026/03/09/07/"),
        ("orders/", "bad/", "bad/processing-failed/2026/03/09/07/"),
        ("orders/", ERRORS, "e/processing-failed/"),
        ("", "!{timestamp:yyyy}-!{firehose:error-output-type}/", "2026-processing-failed/"),
    ],
)
def test_errors_have_a_folder(prefix: str, errors: str, text: str) -> None:
    found = objects.evaluate_for_errors(prefix, errors, objects.PROCESSING_FAILED, MOMENT, Random(1))
    assert found == text


def test_random_strings_are_others_each_time() -> None:
    rng = Random(1)
    first, second = (objects.evaluate("!{firehose:random-string}", MOMENT, rng)[:11] for _ in range(2))
    assert first.isalnum()
    assert first != second


@pytest.mark.parametrize(
    ("prefix", "errors"),
    [
        ("!{firehose:error-output-type}/", ERRORS),
        ("!{other:value}/", ERRORS),
        ("!{firehose:other}/", ERRORS),
        ("!{timestamp:yyyy", ERRORS),
        ("!{timestamp:Q}", ERRORS),
        ("!{timestamp:yyyy}/", ""),
        ("!{timestamp:yyyy}/", "bad/"),
        ("!{partitionKeyFromQuery:customer}/", ERRORS),
    ],
)
def test_prefixes_that_cannot_be_evaluated_are_refused(prefix: str, errors: str) -> None:
    with pytest.raises(AwsError):
        objects.check_prefixes(prefix, errors)


@given(st.text(max_size=40), st.text("yMdHhmsSDEa' /-!{}:", max_size=20))
def test_checked_prefixes_can_be_evaluated(prefix: str, pattern: str) -> None:
    whole = f"{prefix}!{{timestamp:{pattern}}}"
    try:
        objects.check_prefixes(whole, ERRORS)
    except AwsError:
        return
    assert isinstance(objects.evaluate(whole, MOMENT, Random(1)), str)
