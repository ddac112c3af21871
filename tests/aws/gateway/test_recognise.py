"""Recognition of a request's service, operation and protocol."""

import pytest

from redrive.aws.gateway import recognise as recognition
from redrive.aws.gateway.recognise import recognise, unrecognised
from redrive.aws.wire.json.rpc import JSON_1_0, JSON_1_1
from redrive.aws.wire.query.query import QueryAsJsonCodec, QueryCodec
from redrive.model.http import Request

SCOPED = (
    "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"
)


def asked(path: str = "/", query: str = "", body: bytes = b"", **headers: str):
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    recognised = recognise(Request("POST", path, query, named, body))
    return recognised and (recognised.service, recognised.operation)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("AmazonSQS.SendMessage", ("sqs", "SendMessage")),
        ("AmazonSQS.Nonsense", ("sqs", "Nonsense")),
        ("Logs_20140328.PutLogEvents", ("logs", "PutLogEvents")),
        ("TrentService.Encrypt", ("kms", "Encrypt")),
        ("GraniteServiceVersion20100801.PutMetricData", ("cloudwatch", "PutMetricData")),
        ("DynamoDB_20120810.GetItem", None),
        ("SendMessage", None),
        ("", None),
    ],
)
def test_a_target_header_names_service_and_operation(target: str, expected: tuple[str, str] | None) -> None:
    assert asked(x_amz_target=target) == expected


@pytest.mark.parametrize(
    ("content_type", "target", "codec"),
    [
        ("application/x-amz-json-1.0", "AmazonSQS.SendMessage", JSON_1_0),
        ("application/x-amz-json-1.1; charset=utf-8", "AmazonSQS.SendMessage", JSON_1_1),
        ("application/json", "AmazonSQS.SendMessage", JSON_1_0),
        ("", "TrentService.Encrypt", JSON_1_1),
    ],
)
def test_the_json_version_is_the_client_s_or_the_service_s(
    content_type: str, target: str, codec: object
) -> None:
    request = Request("POST", "/", "", {"x-amz-target": target, "content-type": content_type}, b"{}")
    recognised = recognise(request)
    assert recognised is not None
    assert recognised.codec is codec


def test_no_more_targets_are_remembered_than_the_models_have_operations() -> None:
    for target, content_type in (
        ("AmazonSQS.SendMessage", "application/x-amz-json-1.0"),
        ("AmazonSQS.Nonsense", "application/x-amz-json-1.0"),
        ("AmazonSQS.SendMessage", "application/x-amz-json-1.0; charset=nonsense"),
    ):
        asked(x_amz_target=target, content_type=content_type)
    remembered = recognition.KNOWN_TARGETS
    assert ("AmazonSQS.SendMessage", "application/x-amz-json-1.0") in remembered
    assert not any("nonsense" in f"{target} {content_type}".lower() for target, content_type in remembered)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/service/GraniteServiceVersion20100801/operation/PutMetricData", ("cloudwatch", "PutMetricData")),
        ("/service/AmazonSQS/operation/SendMessage", None),
        ("/service/Nonsense/operation/X", None),
        ("/service/GraniteServiceVersion20100801", None),
    ],
)
def test_a_cbor_path_names_service_and_operation(path: str, expected: tuple[str, str] | None) -> None:
    assert asked(path) == expected


FORM = b"Action=ListTagsForResource"  # SNS, CloudWatch and IAM know people by similar names


@pytest.mark.parametrize(
    ("headers", "query", "service"),
    [
        ({"authorization": SCOPED.format("sns")}, "", "sns"),
        ({"authorization": SCOPED.format("monitoring")}, "", "cloudwatch"),
        ({}, "X-Amz-Credential=AKID%2F20260101%2Fus-east-1%2Fmonitoring%2Faws4_request", "cloudwatch"),
        ({"host": "sns.us-east-1.amazonaws.com"}, "", "sns"),
        ({"host": "monitoring.us-east-1.localhost.localstack.cloud:4566"}, "", "cloudwatch"),
        ({"host": "queue.amazonaws.com"}, "", "sqs"),
        ({"host": "us-east-1.queue.amazonaws.com"}, "", "sqs"),
        ({"host": "vpce-0a1b.sqs.us-east-1.vpce.amazonaws.com"}, "", "sqs"),
        ({"host": "localhost:4566"}, "Version=2010-08-01", "cloudwatch"),
        ({"host": "SNS.us-east-1.amazonaws.com", "authorization": SCOPED.format("sqs")}, "", "sqs"),
        ({"host": "sns.localhost", "authorization": SCOPED.format("execute-api")}, "", "sns"),
        ({"host": "sns.localhost"}, "Version=2010-08-01", "sns"),
        ({"authorization": "Bearer x"}, "Version=2010-03-31", "sns"),
        ({"authorization": "Credential=a/b/c"}, "Version=2010-03-31", "sns"),
    ],
)
def test_the_service_of_an_action(headers: dict[str, str], query: str, service: str) -> None:
    recognised = recognise(Request("POST", "/", query, headers, FORM))
    assert recognised is not None
    assert (recognised.service, recognised.operation) == (service, "ListTagsForResource")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (b"Action=Publish", ("sns", "Publish")),
        (b"Action=SendMessage", ("sqs", "SendMessage")),
        (b"Action=CreateStack", ("cloudformation", "CreateStack")),
        (
            b"TemplateBody=" + b"a" * 50_000 + b"&Action=CreateStack&Version=2010-05-15",
            ("cloudformation", "CreateStack"),
        ),
        (b"Action=TagResource", None),
        (b"Action=Nonsense", None),
        (b"Action=", None),
        (b"", None),
        (b'{"Action": "Publish"}', None),
        (b"\xff\xfe&Action=Publish", ("sns", "Publish")),
    ],
)
def test_actions_without_a_service(form: bytes, expected: tuple[str, str] | None) -> None:
    assert asked(body=form) == expected


def test_bodies_of_another_type_are_no_form() -> None:
    assert asked(body=b"Action=Publish", content_type="application/json") is None
    assert (
        asked(body=b"Action=Publish", content_type="application/x-www-form-urlencoded; charset=utf-8")
        is not None
    )


def test_bodies_that_cannot_be_unfolded_are_no_form() -> None:
    assert asked(body=b"Action=Publish", content_encoding="gzip") is None


@pytest.mark.parametrize(("accept", "codec"), [("application/json", QueryAsJsonCodec), ("*/*", QueryCodec)])
def test_the_answer_is_json_where_the_client_accepts_it(accept: str, codec: type) -> None:
    recognised = recognise(Request("POST", "/", "", {"accept": accept}, b"Action=Publish"))
    assert recognised is not None
    assert type(recognised.codec) is codec


def test_an_unrecognised_request_is_an_unknown_operation() -> None:
    response = unrecognised("an-id")
    assert (response.status, response.body) == (404, b"<UnknownOperationException/>\n")
    assert response.headers == {"x-amzn-RequestId": "an-id"}


def test_a_rest_service_without_dated_paths_is_recognised_by_the_scope(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(recognition._REST_ENDPOINTS, "scheduler", "scheduler")
    for scope, service in (("scheduler", "scheduler"), ("apigateway", "apigateway"), ("events", None)):
        request = Request("GET", "/schedule-groups", "", {"authorization": SCOPED.format(scope)}, b"")
        assert recognition.service_in_head(request) == service
