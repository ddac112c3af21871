"""Amazon Resource Names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.wire.arn import Arn, parse_arn

_element = st.text(alphabet=st.characters(exclude_characters=":"))
_named = st.text(alphabet=st.characters(exclude_characters=":"), min_size=1)


@pytest.mark.parametrize(
    ("text", "arn"),
    [
        (
            "arn:aws:sns:us-east-1:123456789012:rentals",
            Arn("aws", "sns", "us-east-1", "123456789012", "rentals"),
        ),
        (
            "arn:aws:sns:us-east-1:123456789012:rentals:7f6e2b1c",
            Arn("aws", "sns", "us-east-1", "123456789012", "rentals:7f6e2b1c"),
        ),
        ("arn:aws:iam::123456789012:user/a/b", Arn("aws", "iam", "", "123456789012", "user/a/b")),
        ("arn:aws-cn:s3:::bucket", Arn("aws-cn", "s3", "", "", "bucket")),
    ],
)
def test_reads_an_arn(text: str, arn: Arn) -> None:
    assert parse_arn(text) == arn
    assert str(arn) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "An ARN must have at least 6 elements, not 1"),
        ("rentals", "An ARN must have at least 6 elements, not 1"),
        ("arn:aws:sns:us-east-1:123456789012", "An ARN must have at least 6 elements, not 5"),
        ("urn:aws:sns:us-east-1:123456789012:rentals", "An ARN must begin with 'arn', not 'urn'"),
        ("arn::sns:us-east-1:123456789012:rentals", "An ARN must name a partition"),
        ("arn:aws::us-east-1:123456789012:rentals", "An ARN must name a service"),
        ("arn:aws:sns:us-east-1:123456789012:", "An ARN must name a resource"),
    ],
)
def test_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the message is compared whole below
        parse_arn(text)
    assert str(refused.value) == message


@given(_named, _named, _element, _element, st.text(min_size=1))
def test_a_written_arn_is_parsed_back(
    partition: str, service: str, region: str, account: str, resource: str
) -> None:
    arn = Arn(partition, service, region, account, resource)
    assert parse_arn(str(arn)) == arn
