"""JSON bodies: what is read from every JSON type, and the recorded sentence for every one that does not fit."""

import dataclasses

import orjson
import pytest

from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.json.rpc import JSON_1_0
from redrive.aws.wire.json.values import reader
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Shapes
from redrive.model.http import Request

SHAPES = Shapes(
    {
        "All": {
            "type": "structure",
            "members": {
                "String": {"shape": "String"},
                "Integer": {"shape": "Integer"},
                "Long": {"shape": "Long"},
                "Double": {"shape": "Double"},
                "Boolean": {"shape": "Boolean"},
                "Blob": {"shape": "Blob"},
                "Time": {"shape": "Time"},
                "IsoTime": {"shape": "IsoTime"},
                "List": {"shape": "List"},
                "Map": {"shape": "Map"},
                "Structure": {"shape": "All"},
                "Renamed": {"shape": "String", "locationName": "renamed"},
            },
        },
        "String": {"type": "string"},
        "Integer": {"type": "integer"},
        "Long": {"type": "long"},
        "Double": {"type": "double"},
        "Boolean": {"type": "boolean"},
        "Blob": {"type": "blob"},
        "Time": {"type": "timestamp"},
        "IsoTime": {"type": "timestamp", "timestampFormat": "iso8601"},
        "List": {"type": "list", "member": {"shape": "String"}},
        "Map": {"type": "map", "key": {"shape": "String"}, "value": {"shape": "Integer"}},
    }
)
read = reader(SHAPES["All"])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"String": "ä\\ud83d\\ude00\\u0000"}', {"String": "ä\U0001f600\x00"}),
        ('{"Integer": 5, "Long": -9223372036854775808}', {"Integer": 5, "Long": -(2**63)}),
        ('{"Integer": 1.9, "Long": -1.9}', {"Integer": 1, "Long": -1}),
        ('{"Integer": 99999999999}', {"Integer": 99999999999}),
        ('{"Double": 1}', {"Double": 1.0}),
        ('{"Double": "-Infinity"}', {"Double": float("-inf")}),
        ('{"Boolean": false}', {"Boolean": False}),
        ('{"Blob": ""}', {"Blob": b""}),
        ('{"Blob": "AP8="}', {"Blob": b"\x00\xff"}),
        ('{"Time": 1700000000}', {"Time": 1_700_000_000_000}),
        ('{"Time": 1.7000000005E9}', {"Time": 1_700_000_000_500}),
        ('{"IsoTime": "2026-01-02T03:04:05Z"}', {"IsoTime": 1_767_323_045_000}),
        ('{"List": [], "Map": {}, "Structure": {}}', {"List": [], "Map": {}, "Structure": {}}),
        ('{"List": ["a", null, "b"]}', {"List": ["a", "b"]}),
        ('{"Map": {"a": null, "b": 1}}', {"Map": {"b": 1}}),
        ('{"String": null, "Structure": null, "Unknown": {"a": [1]}, "string": 1}', {}),
        ('{"renamed": "x", "Renamed": "y"}', {"Renamed": "x"}),
        ('{"String": "a", "String": "b"}', {"String": "b"}),
        ('{"Structure": {"Structure": {"String": "x"}}}', {"Structure": {"Structure": {"String": "x"}}}),
    ],
)
def test_json_values_are_read_by_their_shape(body: str, expected: dict) -> None:
    assert read(orjson.loads(body)) == expected


LIST_STARTS = "Start of list found where not expected"
MAP_STARTS = "Start of structure or map found where not expected."


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("Integer", '"1"', "STRING_VALUE can not be converted to an Integer"),
        ("Integer", "true", "TRUE_VALUE can not be converted to an Integer"),
        ("Integer", "false", "FALSE_VALUE can not be converted to an Integer"),
        ("Integer", "[1]", LIST_STARTS),
        ("Integer", '{"a": 1}', MAP_STARTS),
        ("Long", "9223372036854775808", "NUMBER_VALUE can not be converted to a Long"),
        ("Long", "1" + "0" * 300, "NUMBER_VALUE can not be converted to a Long"),
        ("Integer", "-1e300", "NUMBER_VALUE can not be converted to an Integer"),
        ("String", "1", "NUMBER_VALUE can not be converted to a String"),
        ("String", "1.5", "NUMBER_VALUE can not be converted to a String"),
        ("String", "true", "TRUE_VALUE can not be converted to a String"),
        ("String", '["x"]', LIST_STARTS),
        ("String", "{}", MAP_STARTS),
        ("List", '"x"', "Expected list or null"),
        ("List", "1", "Expected list or null"),
        ("List", "false", "Expected list or null"),
        ("List", "{}", MAP_STARTS),
        ("List", "[1]", "NUMBER_VALUE can not be converted to a String"),
        ("Structure", '"x"', "Expected null"),
        ("Structure", "1", "Expected null"),
        ("Structure", "[]", LIST_STARTS),
        ("Map", '"x"', "Expected null"),
        ("Map", "[]", LIST_STARTS),
        ("Map", '{"a": "x"}', "STRING_VALUE can not be converted to an Integer"),
        ("Boolean", '"true"', "STRING_VALUE can not be converted to a Boolean"),
        ("Boolean", "1", "NUMBER_VALUE can not be converted to a Boolean"),
        ("Double", '"nan"', "STRING_VALUE can not be converted to a Double"),
        ("Double", "true", "TRUE_VALUE can not be converted to a Double"),
        ("Blob", "1", "NUMBER_VALUE can not be converted to a Blob"),
        ("Blob", '"AP8"', "Value is not valid base64"),
        ("Blob", '"AP 8="', "Value is not valid base64"),
        ("Blob", '"ä"', "Value is not valid base64"),
        ("Time", '"2026-01-02T03:04:05Z"', "STRING_VALUE can not be converted to a Date"),
        ("Time", "true", "TRUE_VALUE can not be converted to a Date"),
        ("Time", "1e300", "1e+300 is not a valid date"),
        ("IsoTime", "1700000000", "NUMBER_VALUE can not be converted to a Date"),
        ("IsoTime", '"yesterday"', "yesterday is not a valid date"),
    ],
)
def test_json_values_of_another_shape_are_refused(member: str, value: str, message: str) -> None:
    with pytest.raises(AwsError) as refused:
        read(orjson.loads(f'{{"{member}": {value}}}'))
    assert (refused.value.code, refused.value.status) == ("SerializationException", 400)
    assert refused.value.message == message


def sent(body: bytes, **headers: str):
    operation = Service.load("sqs").operation("SendMessage")
    return JSON_1_0.parse(operation, Request("POST", "/", "", headers, body))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"{", ""),
        (b'{"QueueUrl": "x",}', ""),
        (b'{"DelaySeconds": NaN}', ""),
        (b'{"DelaySeconds": 1' + b"0" * 5000 + b"}", ""),
        (b'{"MessageBody": "\\ud800"}', ""),
        (b'{"MessageBody": "\xff"}', ""),
        (b"[" * 10_000, ""),
        (b"null", "Expected null"),
        (b'"x"', "Expected null"),
        (b"[]", LIST_STARTS),
    ],
)
def test_bodies_that_are_no_input(body: bytes, message: str) -> None:
    with pytest.raises(AwsError) as refused:
        sent(body)
    assert (refused.value.code, refused.value.status) == ("SerializationException", 400)
    assert refused.value.message == message


def test_a_shape_that_contains_itself_is_read_no_deeper_than_the_stack() -> None:
    operation = Service.load("logs").operation("StartQuery")
    nested = dataclasses.replace(operation, input=SHAPES["All"])
    shallow, deep = b'{"Structure":' * 50 + b"{}" + b"}" * 50, b'{"Structure":' * 1000 + b"{}" + b"}" * 1000
    assert JSON_1_0.parse(nested, Request("POST", "/", "", {}, shallow)).keys() == {"Structure"}
    with pytest.raises(AwsError) as refused:
        JSON_1_0.parse(nested, Request("POST", "/", "", {}, deep))
    assert refused.value.code == "SerializationException"
