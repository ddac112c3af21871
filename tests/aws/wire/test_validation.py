"""Refusals of requests that the services' models do not allow."""

import re

import pytest

from redrive.aws.services import FOLDERS
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Shapes
from redrive.aws.wire.validation import Checks, CoralSpelling
from redrive.aws.wire.violations import Violation, ViolationKind, coral_text

LONG = "x" * 257


def refused(service: str, operation: str, params: dict) -> AwsError:
    with pytest.raises(AwsError) as error:
        Service.load(service).operation(operation).check(params)
    return error.value


def test_one_violation_is_named_in_the_error() -> None:
    error = refused("sns", "GetTopicAttributes", {})
    assert (error.code, error.query_code, error.status) == ("ValidationException", "ValidationError", 400)
    assert error.message == (
        "1 validation error detected: Value null at 'topicArn' failed to satisfy constraint: "
        "Member must not be null"
    )


def test_the_path_goes_through_lists_and_maps() -> None:
    entry = {"Id": "a", "Message": "m", "MessageAttributes": {"attr1": {"StringValue": "v"}}}
    error = refused("sns", "PublishBatch", {"TopicArn": "t", "PublishBatchRequestEntries": [entry]})
    assert error.message.endswith(
        "Value null at 'publishBatchRequestEntries.1.member.messageAttributes.attr1.member.dataType' failed to "
        "satisfy constraint: Member must not be null"
    )


def test_several_violations_are_one_sentence() -> None:
    error = refused("kms", "CreateAlias", {"AliasName": "a b"})
    assert error.message == (
        "2 validation errors detected: Value null at 'targetKeyId' failed to satisfy constraint: "
        "Member must not be null; Value 'a b' at 'aliasName' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: ^[a-zA-Z0-9:/_-]+$"
    )


def test_logs_have_a_code_of_their_own() -> None:
    assert refused("logs", "CreateLogGroup", {}).code == "InvalidParameterException"


@pytest.mark.parametrize(
    ("operation", "params", "message"),
    [
        ("SendMessage", {"MessageBody": "x"}, "The request must contain the parameter QueueUrl."),
        ("SendMessage", {"QueueUrl": "x"}, "The request must contain the parameter MessageBody."),
        ("SendMessage", {}, "The request must contain the parameter QueueUrl."),
        (
            "SendMessageBatch",
            {"QueueUrl": "x", "Entries": [{"Id": "a", "MessageBody": "b"}, {"MessageBody": "b"}]},
            "The request must contain the parameter SendMessageBatchRequestEntry.2.Id.",
        ),
    ],
)
def test_sqs_names_the_first_missing_parameter(operation: str, params: dict, message: str) -> None:
    error = refused("sqs", operation, params)
    assert (error.code, error.query_code) == ("MissingRequiredParameterException", "MissingParameter")
    assert error.message == message


def test_sqs_takes_a_missing_batch_for_an_empty_one() -> None:
    error = refused("sqs", "DeleteMessageBatch", {"QueueUrl": "x"})
    assert error.query_code == "AWS.SimpleQueueService.EmptyBatchRequest"
    assert error.message == "There should be at least one DeleteMessageBatchRequestEntry in the request."


def test_sqs_answers_other_violations_itself() -> None:
    Service.load("sqs").operation("GetQueueAttributes").check(
        {"QueueUrl": "x", "AttributeNames": ["Nonsense"]}
    )


SHAPES = {
    "All": {
        "type": "structure",
        "required": ["Needed"],
        "members": {name: {"shape": name} for name in (
            "Needed", "Colour", "Name", "Count", "Ratio", "Blob", "Colours", "Tags", "Pairs", "All", "Alls")},
    },
    "Needed": {"type": "boolean"},
    "Colour": {"type": "string", "enum": ["red", "blue"]},
    "Name": {"type": "string", "min": 2, "max": 3, "pattern": "[a-z]+"},
    "Count": {"type": "integer", "min": 1, "max": 10},
    "Ratio": {"type": "double", "max": 1},
    "Blob": {"type": "blob", "max": 2},
    "Colours": {"type": "list", "member": {"shape": "Colour"}, "min": 1, "max": 2},
    "Tags": {"type": "map", "key": {"shape": "Name"}, "value": {"shape": "Colour"}, "max": 2},
    "Pairs": {"type": "map", "key": {"shape": "Name"}, "value": {"shape": "All"}},
    "Alls": {"type": "list", "member": {"shape": "All"}},
}  # fmt: skip

NAME_PHRASES = (
    "[Member must have length less than or equal to 3, Member must have length greater than or equal to 2, "
    "Member must satisfy regular expression pattern: [a-z]+]"
)


def violations(params: dict, kinds: frozenset[ViolationKind] = frozenset(ViolationKind)) -> list[Violation]:
    return list(Checks(kinds, CoralSpelling()).violations(Shapes(SHAPES)["All"])({"Needed": True, **params}))


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"Colour": "green"}, "Value 'green' at 'colour' … Member must satisfy enum value set: [red, blue]"),
        ({"Name": "abcd"}, "Value 'abcd' at 'name' … Member must have length less than or equal to 3"),
        ({"Name": "a"}, "Value 'a' at 'name' … Member must have length greater than or equal to 2"),
        ({"Name": "ab\n"}, "Value 'ab\n' at 'name' … Member must satisfy regular expression pattern: [a-z]+"),
        ({"Count": 11}, "Value '11' at 'count' … Member must have value less than or equal to 10"),
        ({"Count": 0}, "Value '0' at 'count' … Member must have value greater than or equal to 1"),
        ({"Ratio": 1.5}, "Value '1.5' at 'ratio' … Member must have value less than or equal to 1"),
        (
            {"Blob": b"abc"},
            ("Value at 'blob' … Member must have length less than or equal to 2"),
        ),
        ({"Colours": []}, "Value '[]' at 'colours' … Member must have length greater than or equal to 1"),
        (
            {"Colours": ["red", "green"]},
            (
                "Value '[red, green]' at 'colours' … Member must satisfy constraint: "
                "[Member must satisfy enum value set: [red, blue]]"
            ),
        ),
        (
            {"Tags": {"a": "red"}},
            f"Value '{{a=red}}' at 'tags' … Map keys must satisfy constraint: {NAME_PHRASES}",
        ),
        (
            {"Tags": {"ab": "x"}},
            (
                "Value '{ab=x}' at 'tags' … Map value must satisfy constraint: "
                "[Member must satisfy enum value set: [red, blue]]"
            ),
        ),
        ({"All": {}}, "Value null at 'all.needed' … Member must not be null"),
        ({"Alls": [{"Needed": True}, {}]}, "Value null at 'alls.2.member.needed' … Member must not be null"),
        ({"Pairs": {"ab": {}}}, "Value null at 'pairs.ab.member.needed' … Member must not be null"),
        (
            {"Pairs": {"a": {"Needed": True}}},
            f"Value '{{a={{Needed=true}}}}' at 'pairs' … Map keys must satisfy constraint: {NAME_PHRASES}",
        ),
    ],
)
def test_each_violation_has_its_phrase(params: dict, expected: str) -> None:
    text = coral_text(violations(params)).removeprefix("1 validation error detected: ")
    assert text == expected.replace("…", "failed to satisfy constraint:")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"Colour": "red", "Name": "abc", "Count": 10, "Ratio": -5.0, "Blob": b"", "Colours": ["red", "red"]},
        {"Tags": {}, "Pairs": {"ab": {"Needed": False}}, "Alls": [], "All": {"Needed": True}},
    ],
)
def test_parameters_that_the_model_allows_have_no_violations(params: dict) -> None:
    assert violations(params) == []


def test_kinds_a_service_keeps_to_itself_are_not_checked() -> None:
    params = {"Colour": "green", "Name": "", "Colours": [], "Tags": {"x": "y"}}
    assert [v.kind for v in violations(params, frozenset({ViolationKind.ENUM}))] == [
        ViolationKind.ENUM,
        ViolationKind.VALUES,
    ]


def test_megabytes_are_matched_against_no_pattern() -> None:
    shapes = {"All": {"type": "structure", "members": {"Text": {"shape": "Text"}}},
              "Text": {"type": "string", "pattern": "(a+)+b"}}  # fmt: skip
    check = Checks(frozenset(ViolationKind), CoralSpelling()).violations(Shapes(shapes)["All"])
    assert check({"Text": "a" * 1_000_000}) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", FOLDERS)
def test_every_published_pattern_is_read_or_has_unicode_classes(name: str) -> None:
    for shape in Service.load(name).model["shapes"].values():
        pattern = shape.get("pattern", "")
        if r"\p{" not in pattern and r"\w-" not in pattern:
            re.compile(pattern, re.ASCII)


def test_a_thousand_violations_are_enough() -> None:
    """A megabyte of empty metrics was answered by 100 MB, put together in 3 s on the event loop."""
    params = {"Namespace": "n", "MetricData": [{}] * 20_000}
    assert refused("cloudwatch", "PutMetricData", params).message.startswith(
        "1000 validation errors detected"
    )
