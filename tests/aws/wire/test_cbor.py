"""CBOR against RFC 8949's own examples, botocore's serialiser and parser, and hostile input."""

import math
import random
from typing import Any

import pytest
from cbor2 import CBORTag, dumps, undefined
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.gateway.recognise import recognise
from redrive.aws.wire.cbor import cbor
from redrive.aws.wire.cbor.rpc import CBOR, reader, writer
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Member, Shape
from redrive.model.http import Request
from tests.aws.wire.clients import Client, sample

CLOUDWATCH = Client("cloudwatch", "smithy-rpc-v2-cbor")


def asked(operation: str, body: bytes) -> Request:
    return Request("POST", f"/service/GraniteServiceVersion20100801/operation/{operation}", "", {}, body)


@pytest.mark.parametrize(
    ("written", "value"),
    [  # RFC 8949, appendix A
        ("00", 0),
        ("17", 23),
        ("1818", 24),
        ("1903e8", 1000),
        ("1a000f4240", 1_000_000),
        ("1bffffffffffffffff", 2**64 - 1),
        ("20", -1),
        ("3903e7", -1000),
        ("3bffffffffffffffff", -(2**64)),
        ("f90000", 0.0),
        ("f93e00", 1.5),
        ("f97bff", 65504.0),
        ("fa47c35000", 100_000.0),
        ("fb3ff199999999999a", 1.1),
        ("f97c00", math.inf),
        ("f9fc00", -math.inf),
        ("f4", False),
        ("f5", True),
        ("f6", None),
        ("f7", undefined),
        ("4401020304", b"\x01\x02\x03\x04"),
        ("62c3bc", "ü"),
        ("64f0908591", "\U00010151"),
        ("83010203", [1, 2, 3]),
        ("a26161016162820203", {"a": 1, "b": [2, 3]}),
        ("c11a514b67b0", CBORTag(1, 1_363_896_240)),
        ("5f42010243030405ff", b"\x01\x02\x03\x04\x05"),
        ("7f657374726561646d696e67ff", "streaming"),
        ("9fff", []),
        ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]),
        ("bf6346756ef563416d7421ff", {"Fun": True, "Amt": -2}),
    ],
)
def test_the_examples_of_the_standard(written: str, value: Any) -> None:
    decoded = cbor.decode(bytes.fromhex(written))
    assert (decoded, type(decoded)) == (value, type(value))


@pytest.mark.parametrize(
    ("number", "size"),
    [
        *((0, 1), (23, 1), (24, 2), (255, 2), (256, 3), (65_535, 3), (65_536, 5)),
        *((2**32 - 1, 5), (2**32, 9), (2**63 - 1, 9), (-1, 1), (-24, 1), (-25, 2), (-(2**63), 9)),
    ],
)
def test_integers_are_written_as_short_as_they_can_be(number: int, size: int) -> None:
    written = cbor.encode(number)
    assert (cbor.decode(written), len(written)) == (number, size)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "18",  # no argument
        "1c",  # reserved
        "1f",  # an integer without end
        "62c3",  # shorter than it says
        "61ff",  # not UTF-8
        "9bffffffffffffffff",  # 2^64 elements, none of which is there
        "bbffffffffffffffff",
        "5bffffffffffffffff",
        "9f01",  # no end
        "bf61",
        "5f6161ff",  # text among bytes
        "a10102",  # a number as key
        "ff",
        "fc",
        "0000",  # two items
    ],
)
def test_malformed_items_are_refused(written: str) -> None:
    with pytest.raises(cbor.MalformedCbor):
        cbor.decode(bytes.fromhex(written))


@given(st.binary(max_size=64))
def test_no_bytes_do_harm(content: bytes) -> None:
    assert refusal(content) in (None, "SerializationException")


def refusal(content: bytes) -> str | None:
    """Return PutMetricData's refusal of a body that cannot be read; None where it can."""
    try:
        CBOR.parse(CLOUDWATCH.service.operation("PutMetricData"), asked("PutMetricData", content))
    except AwsError as error:
        return error.code
    return None


def test_a_valid_request_that_was_damaged_does_no_harm() -> None:
    operation = CLOUDWATCH.service.operation("PutMetricData")
    whole = CLOUDWATCH.request("PutMetricData", sample(operation.input, sdk=True)).body
    rng = random.Random(7)
    for _ in range(2000):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        assert refusal(bytes(damaged)) in (None, "SerializationException")


@pytest.mark.parametrize("written", ["f8ff", "e0", "c100", "1863"])  # simple values, a tag, a number
def test_a_request_that_is_another_item_than_a_map_is_refused(written: str) -> None:
    assert refusal(bytes.fromhex(written)) == "SerializationException"


def test_no_tag_is_interpreted() -> None:
    """An exponent, a reference or a regular expression would be work that a few bytes ask for."""
    for tag in range(66_000):
        assert cbor.decode(dumps(CBORTag(tag, 0))) == CBORTag(tag, 0)


@pytest.mark.parametrize("written", ["", "ff" * 9])
def test_large_numbers_and_references_stay_tags(written: str) -> None:
    bignum = bytes.fromhex("c2") + dumps(bytes.fromhex(written))
    assert cbor.decode(bignum) == CBORTag(2, bytes.fromhex(written))
    assert cbor.decode(bytes.fromhex("d81c81d81d00")) == CBORTag(28, [CBORTag(29, 0)])  # a list within itself


@pytest.mark.parametrize(
    "item", [b"\xc1\x01", b"\xc9\x01", b"\xa0", b"\x80"], ids=["date", "tag", "map", "array"]
)
def test_a_mebibyte_of_small_items_is_refused_before_most_of_them_are_made(item: bytes) -> None:
    number = 950_000 // len(item)
    with pytest.raises(cbor.MalformedCbor):
        cbor.decode(b"\x9a" + number.to_bytes(4, "big") + item * number)


def test_the_largest_request_of_metrics_is_read() -> None:
    dimensions = [{"Name": "a", "Value": "b"}] * 30
    metric = {"MetricName": "x", "Timestamp": CBORTag(1, 1.5), "Dimensions": dimensions}
    request = {"Namespace": "\u4e2d" * 100_000, "MetricData": [metric] * 1_000}
    assert cbor.decode(dumps(request)) == request


def test_nesting_has_an_end() -> None:
    assert refusal(b"\x81" * 100_000) == "SerializationException"


# ---- as an SDK speaks it ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLOUDWATCH.operations)
def test_requests_are_read_as_they_were_meant(name: str) -> None:
    operation = CLOUDWATCH.service.operation(name)
    request = CLOUDWATCH.request(name, sample(operation.input, sdk=True))
    assert CBOR.parse(operation, request) == sample(operation.input, sdk=False)


@pytest.mark.parametrize("name", CLOUDWATCH.operations)
def test_answers_are_read_as_they_were_meant(name: str) -> None:
    operation = CLOUDWATCH.service.operation(name)
    output = operation.output
    result = {} if output is None else sample(output, sdk=False)
    answer = CLOUDWATCH.answer(name, CBOR.render(operation, result, "an-id"))
    metadata = answer.pop("ResponseMetadata")
    assert answer == ({} if output is None else sample(output, sdk=True))
    assert metadata.get("RequestId", "an-id") == "an-id"


def test_absent_members_stay_absent() -> None:
    operation = CLOUDWATCH.service.operation("ListMetrics")
    response = CBOR.render(operation, {"Metrics": [], "NextToken": None}, "an-id")
    assert cbor.decode(response.body) == {"Metrics": []}


def test_a_result_with_a_member_the_model_has_not_is_a_fault() -> None:
    with pytest.raises(KeyError):
        CBOR.render(CLOUDWATCH.service.operation("ListMetrics"), {"NoSuchMember": 1}, "an-id")


def test_half_a_surrogate_pair_is_written_as_a_question_mark() -> None:
    operation = CLOUDWATCH.service.operation("ListMetrics")
    response = CBOR.render(operation, {"Metrics": [{"MetricName": "a\ud800b"}]}, "an-id")
    assert cbor.decode(response.body) == {"Metrics": [{"MetricName": "a?b"}]}


def test_an_empty_body_is_no_parameters() -> None:
    assert CBOR.parse(CLOUDWATCH.service.operation("ListMetrics"), asked("ListMetrics", b"")) == {}


def test_errors_carry_their_code_and_their_query_code() -> None:
    error = Service.load("cloudwatch").error("InvalidParameterValueException", "The value é is invalid.")
    response = CBOR.render_error(CLOUDWATCH.service, error, "an-id")
    assert response.headers["smithy-protocol"] == "rpc-v2-cbor"
    answer = CLOUDWATCH.answer("ListMetrics", response)
    assert answer["Error"]["Code"] == "InvalidParameterValue"
    assert answer["Error"]["Message"] == "The value é is invalid."
    assert cbor.decode(CBOR.render_error(CLOUDWATCH.service, common("InternalFailure"), "an-id").body) == {
        "__type": "com.amazon.coral.service#InternalFailure"
    }


def test_the_recogniser_speaks_it() -> None:
    recognised = recognise(asked("ListMetrics", b""))
    assert recognised is not None
    assert recognised.codec is CBOR


# ---- values of the wrong type ----------------------------------------------------------------------------------


def of(kind: str) -> Shape:
    inner = Member("member", Shape("Inner", "string"), "member", None, flattened=False)
    return Shape("Outer", kind, parts={"member": inner, "key": inner, "value": inner})


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("structure", []),
        ("list", {}),
        ("list", [1]),
        ("map", []),
        ("string", b"bytes"),
        ("integer", 1.5),
        ("integer", True),
        ("long", 2**63),
        ("double", "1"),
        ("double", True),
        ("boolean", 1),
        ("blob", "text"),
        ("timestamp", "2026-01-01"),
        ("timestamp", CBORTag(0, 5)),
        ("timestamp", CBORTag(1, math.nan)),
        ("timestamp", CBORTag(1, 10**30)),
    ],
)
def test_an_item_of_another_type_is_refused(kind: str, item: Any) -> None:
    with pytest.raises(AwsError) as refused:
        reader(of(kind))(item)
    assert refused.value.code == "SerializationException"


@pytest.mark.parametrize(
    ("kind", "item", "value"),
    [
        ("double", 3, 3.0),
        ("timestamp", CBORTag(1, 5), 5000),
        ("timestamp", CBORTag(1, 1.5), 1500),
        ("timestamp", 7, 7000),
        ("list", ["a", None], ["a"]),
        ("list", ["a", undefined], ["a"]),
        ("map", {"a": undefined, "b": "c"}, {"b": "c"}),
        ("map", {"a": None, "b": "c"}, {"b": "c"}),
    ],
)
def test_odd_but_readable_items_are_read(kind: str, item: Any, value: Any) -> None:
    assert reader(of(kind))(item) == value


@pytest.mark.parametrize("timestamp_ms", [0, 1500, -1500, 1_700_000_000_123])
def test_points_in_time_keep_their_milliseconds(timestamp_ms: int) -> None:
    written = cbor.encode(writer(of("timestamp"))(timestamp_ms))
    assert reader(of("timestamp"))(cbor.decode(written)) == timestamp_ms
