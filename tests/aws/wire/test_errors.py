"""Errors as the services print them: recorded bodies and headers, and what SDKs make of them."""

import orjson
import pytest

from redrive.aws.services import FOLDERS
from redrive.aws.wire.errors import COMMON, AwsError
from redrive.aws.wire.json.rpc import JSON_1_0, JSON_1_1
from redrive.aws.wire.profiles import profile_of
from redrive.aws.wire.query.query import QUERY, QUERY_AS_JSON
from redrive.aws.wire.rest.rest_json import RestJsonCodec
from redrive.aws.wire.rest.rest_xml import RestXmlCodec, as_s3_error
from redrive.aws.wire.service import Service
from tests.aws.wire.clients import Client

SQS, SNS, KMS = Service.load("sqs"), Service.load("sns"), Service.load("kms")

NO_QUEUE = SQS.error(
    "QueueDoesNotExist",
    "The specified queue does not exist.",
    "The specified queue does not exist for this wsdl version.",
)


def test_sqs_in_json() -> None:
    response = JSON_1_0.render_error(SQS, NO_QUEUE, "an-id")
    assert (response.status, response.content_type) == (400, "application/x-amz-json-1.0")
    assert orjson.loads(response.body) == {
        "__type": "com.amazonaws.sqs#QueueDoesNotExist",
        "message": "The specified queue does not exist.",
    }
    assert response.headers == {
        "x-amzn-RequestId": "an-id",
        "x-amzn-query-error": "AWS.SimpleQueueService.NonExistentQueue;Sender",
    }


def test_sqs_in_query() -> None:
    response = QUERY.render_error(SQS, NO_QUEUE, "an-id")
    assert (response.status, response.content_type) == (400, "text/xml")
    assert response.headers == {"x-amzn-RequestId": "an-id"}
    assert response.body.decode() == (
        '<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error>'
        "<Type>Sender</Type><Code>AWS.SimpleQueueService.NonExistentQueue</Code>"
        "<Message>The specified queue does not exist for this wsdl version.</Message><Detail/></Error>"
        "<RequestId>an-id</RequestId></ErrorResponse>"
    )


def test_sns_in_query() -> None:
    response = QUERY.render_error(SNS, SNS.error("NotFound", "Topic does not exist"), "an-id")
    assert response.status == 404
    assert response.body.decode() == (
        '<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type>'
        "<Code>NotFound</Code><Message>Topic does not exist</Message></Error>"
        "<RequestId>an-id</RequestId></ErrorResponse>"
    )


def test_query_errors_in_json() -> None:
    response = QUERY_AS_JSON.render_error(SNS, SNS.error("InvalidParameter", "Invalid parameter: x"), "an-id")
    assert (response.status, response.content_type) == (400, "application/json")
    assert orjson.loads(response.body) == {
        "Error": {"Code": "InvalidParameter", "Message": "Invalid parameter: x", "Type": "Sender"},
        "RequestId": "an-id",
    }


def test_json_1_1_services_print_bare_codes() -> None:
    error = KMS.error("NotFoundException", "Key 'x' does not exist")
    response = JSON_1_1.render_error(KMS, error, "an-id")
    assert response.body == b'{"__type":"NotFoundException","message":"Key \'x\' does not exist"}'
    assert response.headers == {"x-amzn-RequestId": "an-id"}
    unread = JSON_1_1.render_error(KMS, KMS.error("SerializationException"), "an-id")
    assert unread.body == b'{"__type":"SerializationException"}'


@pytest.mark.parametrize(
    ("service", "code", "status", "query_code", "sender"),
    [
        ("sqs", "OverLimit", 403, "OverLimit", True),
        ("sqs", "PurgeQueueInProgress", 403, "AWS.SimpleQueueService.PurgeQueueInProgress", True),
        ("sqs", "QueueNameExists", 400, "QueueAlreadyExists", True),
        ("sqs", "ReceiptHandleIsInvalid", 400, "ReceiptHandleIsInvalid", True),
        ("sqs", "ResourceNotFoundException", 404, "ResourceNotFoundException", True),
        ("sqs", "InvalidParameterValueException", 400, "InvalidParameterValue", True),
        ("sns", "AuthorizationErrorException", 403, "AuthorizationError", True),
        ("sns", "ThrottledException", 429, "Throttled", True),
        ("sns", "InternalErrorException", 500, "InternalError", False),
        ("sns", "InvalidParameterValueException", 400, "ParameterValueInvalid", True),
        ("kms", "KMSInternalException", 500, "KMSInternalException", False),
        ("cloudwatch", "ResourceNotFound", 404, "ResourceNotFound", True),
        ("cloudformation", "AlreadyExistsException", 400, "AlreadyExistsException", True),
        ("logs", "ServiceUnavailableException", 500, "ServiceUnavailableException", False),
        ("iam", "InvalidSignatureException", 403, "SignatureDoesNotMatch", True),
    ],
)
def test_each_error_has_its_codes_and_status(
    service: str, code: str, status: int, query_code: str, sender: bool
) -> None:
    error = Service.load(service).error(code, "text")
    assert (error.code, error.status, error.query_code, error.sender) == (code, status, query_code, sender)
    assert Service.load(service).error(query_code).query_code == query_code


def test_a_service_prefers_its_own_error_to_the_framework_s() -> None:
    error = SQS.error("InvalidParameterValue", "text")
    assert (error.code, error.namespace) == ("InvalidParameterValueException", "")


def test_the_framework_s_errors_are_not_the_service_s() -> None:
    response = JSON_1_0.render_error(SQS, SQS.error("SignatureDoesNotMatch", "text"), "an-id")
    assert response.status == 403
    assert orjson.loads(response.body)["__type"] == "com.amazon.coral.service#InvalidSignatureException"
    assert response.headers["x-amzn-query-error"] == "SignatureDoesNotMatch;Sender"


def test_an_error_outside_the_model_is_a_fault() -> None:
    with pytest.raises(KeyError):
        SQS.error("NoSuchCode")


@pytest.mark.parametrize(
    ("service", "json_message", "query_message"),
    [
        ("sqs", "", "The action Nonsense is not valid for this endpoint."),
        ("sns", "", "Could not find operation Nonsense for version 2010-03-31"),
    ],
)
def test_an_unknown_operation_is_refused_by_name(service: str, json_message: str, query_message: str) -> None:
    with pytest.raises(AwsError) as refused:
        Service.load(service).operation("Nonsense")
    error = refused.value
    assert (error.code, error.query_code, error.status) == ("UnknownOperationException", "InvalidAction", 400)
    assert (error.message, error.query_message) == (json_message, query_message)


@pytest.mark.parametrize("name", FOLDERS)
def test_sdks_read_every_error_of_the_framework(name: str) -> None:
    service = Service.load(name)
    operation = min(service.operation_names)
    for code in (kind.code for kind in COMMON):
        error = service.error(code, "some <text>\r\n\x01")
        if "query" in profile_of(name).protocols:
            answer = Client(name, "query").answer(operation, QUERY.render_error(service, error, "an-id"))
            assert answer["Error"]["Code"] == error.query_code
            assert answer["Error"]["Message"] == "some <text>\r\n\ufffd"
            assert answer["Error"]["Type"] == error.fault
        if "json" in profile_of(name).protocols:
            answer = Client(name, "json").answer(operation, JSON_1_0.render_error(service, error, "an-id"))
            assert answer["Error"]["Code"] == (error.query_code if service.query_compatible else error.code)
            assert answer["Error"]["Message"] == "some <text>\r\n\x01"
        if "rest-json" in profile_of(name).protocols:
            answer = Client(name, "rest-json").answer(
                operation, RestJsonCodec({}).render_error(service, error, "an-id")
            )
            assert answer["Error"]["Code"] == error.code
            assert answer["Error"]["Message"] == "some <text>\r\n\x01"
        if "rest-xml" in profile_of(name).protocols:
            answer = Client(name, "rest-xml").answer(
                operation, RestXmlCodec({}).render_error(service, error, "an-id")
            )
            error = as_s3_error(error)
            assert answer["Error"]["Code"] == error.code
            assert answer["Error"]["Message"] == error.message.replace("\x01", "\ufffd")
            assert answer["ResponseMetadata"].pop("HostId") == "an-id"
        assert answer["ResponseMetadata"] == {"RequestId": "an-id", "HTTPStatusCode": error.status}
