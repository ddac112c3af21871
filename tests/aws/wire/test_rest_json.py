"""REST JSON against botocore: it writes the requests that are read here, and reads the answers that are written."""

import io
from typing import Any
from urllib.parse import urlencode

import botocore.parsers
import botocore.serialize
import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel

from redrive.aws.gateway.recognise import recognise
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Service
from redrive.model.http import Request, Response

LAMBDA = ServiceModel(Loader().load_service_model("lambda", "service-2"))


def request_of(operation: str, params: dict[str, Any]) -> Request:
    """The request that an SDK would send."""
    serializer = botocore.serialize.create_serializer("rest-json")
    made = serializer.serialize_to_request(params, LAMBDA.operation_model(operation))
    path, _, query = made["url_path"].partition("?")
    given = urlencode(made["query_string"], doseq=True)
    body = made["body"]
    raw = body if isinstance(body, bytes) else body.read() if isinstance(body, io.IOBase) else body.encode()
    headers = {name.lower(): value for name, value in made["headers"].items()}
    return Request(made["method"], path, "&".join(filter(None, (query, given))), headers, raw)


def parsed(operation: str, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters read from that request."""
    request = request_of(operation, params)
    recognised = recognise(request)
    assert recognised is not None
    assert (recognised.service, recognised.operation) == ("lambda", operation)
    assert recognised.codec is not None
    return recognised.codec.parse(Service.load("lambda").operation(operation), request)


def read_back(operation: str, response: Response) -> dict[str, Any]:
    """The answer as an SDK reads it."""
    parser = botocore.parsers.create_parser("rest-json")
    answer = {"status_code": response.status, "headers": dict(response.headers), "body": response.body}
    result: dict[str, Any] = parser.parse(answer, LAMBDA.operation_model(operation).output_shape)
    return result


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("CreateFunction", {"FunctionName": "f", "Role": "r", "Code": {"ZipFile": b"zip"}, "Timeout": 5}),
        ("Invoke", {"FunctionName": "f", "Payload": b"{}", "InvocationType": "Event", "Qualifier": "live"}),
        ("GetFunction", {"FunctionName": "arn:aws:lambda:us-east-1:000000000000:function:f:live"}),
        ("ListFunctions", {"FunctionVersion": "ALL", "MaxItems": 10}),
        ("ListEventSourceMappings", {"EventSourceArn": "arn:aws:sqs:us-east-1:000000000000:q"}),
        ("GetLayerVersionByArn", {"Arn": "arn:aws:lambda:us-east-1:000000000000:layer:l:1"}),
        ("ListLayers", {"CompatibleRuntime": "python3.11"}),
        (
            "UntagResource",
            {"Resource": "arn:aws:lambda:us-east-1:000000000000:function:f", "TagKeys": ["a", "b"]},
        ),
        ("PutFunctionEventInvokeConfig", {"FunctionName": "f", "MaximumRetryAttempts": 1}),
        (
            "AddPermission",
            {"FunctionName": "f", "StatementId": "s", "Action": "lambda:*", "Principal": "sns"},
        ),
    ],
)
def test_a_request_of_an_sdk_is_read_as_it_was_meant(operation: str, params: dict[str, Any]) -> None:
    assert parsed(operation, params) == params


def test_every_path_of_the_model_is_recognised_as_its_operation() -> None:
    for name, (method, uri) in Service.load("lambda").routes.items():
        path, _, query = uri.replace("{", "x-").replace("}", "").partition("?")
        found = recognise(Request(method, path, query, {}, b""))
        assert found is not None, name
        assert found.operation == name


def test_members_of_an_answer_stand_in_headers_status_and_payload() -> None:
    operation = Service.load("lambda").operation("Invoke")
    recognised = recognise(request_of("Invoke", {"FunctionName": "f"}))
    assert recognised is not None
    assert recognised.codec is not None
    result = {"StatusCode": 202, "FunctionError": "Unhandled", "ExecutedVersion": "7", "Payload": b"[1]"}
    response = recognised.codec.render(operation, result, "id")
    assert response.status == 202
    assert response.body == b"[1]"
    back = read_back("Invoke", response)
    assert back["FunctionError"] == "Unhandled"
    assert back["ExecutedVersion"] == "7"


def test_an_error_has_its_code_in_a_header_and_its_text_where_the_model_has_it() -> None:
    service = Service.load("lambda")
    recognised = recognise(request_of("Invoke", {"FunctionName": "f"}))
    assert recognised is not None
    assert recognised.codec is not None
    missing = recognised.codec.render_error(service, service.error("ResourceNotFoundException", "gone"), "id")
    assert missing.status == 404
    assert missing.headers["x-amzn-ErrorType"] == "ResourceNotFoundException"
    assert missing.body == b'{"Type":"User","Message":"gone"}'
    throttled = AwsError(
        "TooManyRequestsException", "slow", status=429, details={"Reason": "r", "Retry-After": "1"}
    )
    answer = recognised.codec.render_error(service, throttled, "id")
    assert answer.body == b'{"Type":"User","message":"slow","Reason":"r"}'
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"Timeout": "x"}'])
def test_a_body_of_another_type_is_refused(body: bytes) -> None:
    request = request_of("CreateFunction", {"FunctionName": "f", "Role": "r", "Code": {}})
    request.body = body
    recognised = recognise(request)
    assert recognised is not None
    assert recognised.codec is not None
    with pytest.raises(AwsError) as refused:
        recognised.codec.parse(Service.load("lambda").operation("CreateFunction"), request)
    assert refused.value.code == "SerializationException"
