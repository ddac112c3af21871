"""Whatever a client sends, a request is understood or refused: only `AwsError` comes out."""

from collections.abc import Callable
from functools import cache
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.gateway.recognise import recognise
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.json.rpc import JSON_1_0
from redrive.aws.wire.service import Operation, Service
from redrive.model.http import Request
from tests.aws.wire.clients import Client, sample

JSON_OPERATIONS = [
    Service.load(service).operation(name)
    for service, name in (
        ("sqs", "SendMessage"),
        ("sqs", "SendMessageBatch"),
        ("sqs", "CreateQueue"),
        ("cloudwatch", "PutMetricData"),
        ("logs", "PutTransformer"),
        ("kms", "CreateGrant"),
        ("firehose", "CreateDeliveryStream"),
    )
]
QUERY_OPERATIONS = [
    Service.load(service).operation(name)
    for service, name in (
        ("sqs", "SendMessageBatch"),
        ("sqs", "SetQueueAttributes"),
        ("sns", "PublishBatch"),
        ("sns", "CreateTopic"),
        ("cloudwatch", "PutMetricData"),
        ("cloudformation", "CreateStack"),
    )
]

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


def accepts(parse_and_check: Callable[[], object]) -> bool:
    """True if the request was understood; anything but an AwsError fails the test."""
    refused = None
    try:
        parse_and_check()
    except AwsError as error:
        refused = error
    if refused is not None:
        assert 400 <= refused.status < 500
        assert JSON_1_0.render_error(Service.load("sqs"), refused, "an-id").body
    return refused is None


def as_json(operation: Operation, body: bytes) -> bool:
    request = Request("POST", "/", "", {}, body)
    return accepts(lambda: operation.check(JSON_1_0.parse(operation, request)))


def as_query(request: Request) -> bool:
    recognised = recognise(request)
    if recognised is None:
        return False
    codec, service = recognised.codec, Service.load(recognised.service)
    assert codec is not None

    def parse_and_check() -> None:
        operation = service.operation(recognised.operation)
        operation.check(codec.parse(operation, request))

    return accepts(parse_and_check)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every place in a document."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for step, inner in steps for found in paths(inner, (*path, step)))]


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    changed = value.copy()
    changed[path[0]] = replaced(value[path[0]], path[1:], other)
    return changed


each_json = pytest.mark.parametrize("operation", JSON_OPERATIONS, ids=lambda operation: operation.name)
each_query = pytest.mark.parametrize("operation", QUERY_OPERATIONS, ids=lambda operation: operation.name)


@given(body=st.binary())
def test_bytes_as_json(body: bytes) -> None:
    as_json(JSON_OPERATIONS[0], body)


@given(document=DOCUMENTS)
def test_any_json_document_is_parsed_or_refused(document: Any) -> None:
    for operation in JSON_OPERATIONS:
        as_json(operation, orjson.dumps(document))


@each_json
@given(data=st.data(), other=DOCUMENTS)
def test_documents_in_typed_places(operation: Operation, data: st.DataObject, other: Any) -> None:
    document = _document(operation)
    path = data.draw(st.sampled_from(paths(document)))
    as_json(operation, orjson.dumps(replaced(document, path, other)))


@each_json
@given(data=st.data())
def test_mutated_json_is_parsed_or_refused(operation: Operation, data: st.DataObject) -> None:
    as_json(operation, _mutated(data, orjson.dumps(_document(operation))))


@each_query
@given(data=st.data())
def test_mutated_forms_are_parsed_or_refused(operation: Operation, data: st.DataObject) -> None:
    as_query(Request("POST", "/", "", {}, _mutated(data, _form(operation))))


@given(body=st.binary())
def test_bytes_as_a_form(body: bytes) -> None:
    as_query(Request("POST", "/", "Action=SendMessageBatch", {}, body))


@each_query
@given(data=st.data())
def test_names_of_every_shape(operation: Operation, data: st.DataObject) -> None:
    known = _form(operation).decode().replace("=", "&").replace(".", "&").split("&")
    step = st.sampled_from(sorted(set(known))) | st.sampled_from(
        ["", "1", "2", "x", "-1", "entry", "member", "²"]
    )
    name = st.lists(step, min_size=1, max_size=6).map(".".join)
    fields = data.draw(st.dictionaries(name, st.text() | st.integers().map(str), max_size=6))
    fields["Action"] = operation.name
    prefix = operation.service.profile.endpoint_prefix
    form = "&".join(f"{name}={text}" for name, text in fields.items())
    as_query(Request("POST", "/", "", {"host": f"{prefix}.localhost"}, form.encode(errors="replace")))


@given(
    path=st.text(), query=st.text(), body=st.binary(), headers=st.dictionaries(
        st.sampled_from(["x-amz-target", "host", "authorization", "content-type", "content-encoding", "accept"]),
        st.text() | st.sampled_from(["AmazonSQS.SendMessage", "gzip", "Credential=a/b/c/sqs/e", "sqs."])),
)  # fmt: skip
def test_requests_of_any_kind(path: str, query: str, body: bytes, headers: dict[str, str]) -> None:
    as_query(Request("POST", path, query, headers, body))


@each_json
def test_the_unmutated_documents_are_parsed(operation: Operation) -> None:
    parsed = JSON_1_0.parse(operation, Request("POST", "/", "", {}, orjson.dumps(_document(operation))))
    assert parsed == sample(operation.input, sdk=False)


@each_query
def test_the_unmutated_forms_are_recognised(operation: Operation) -> None:
    recognised = recognise(Request("POST", "/", "", {}, _form(operation)))
    assert recognised is not None
    assert recognised.operation == operation.name


@cache
def _document(operation: Operation) -> Any:
    client = Client(operation.service.profile.name, "json")
    return orjson.loads(client.request(operation.name, sample(operation.input, sdk=True)).body)


@cache
def _form(operation: Operation) -> bytes:
    client = Client(operation.service.profile.name, "query")
    return client.request(operation.name, sample(operation.input, sdk=True)).body


def _mutated(data: st.DataObject, body: bytes) -> bytes:
    """Return the body with up to four short stretches of it replaced."""
    mutated = bytearray(body)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(mutated)))
        mutated[start : start + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    return bytes(mutated)
