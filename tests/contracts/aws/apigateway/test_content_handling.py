"""`contentHandling` of integrations and of their responses: bytes become base64, and base64 bytes."""

from base64 import b64encode
from typing import Any

from tests.contracts.aws.apigateway.gateways import ACCOUNT, FORM, REGION, Gateways

BYTES = b"\x89PNG\x00\xff"
PNG = {"Content-Type": "image/png"}
SEND = "Action=SendMessage&MessageBody="


def sending(**params: Any) -> dict[str, Any]:
    """An integration that sends a request's body to the queue Pictures."""
    return {
        "type": "AWS",
        "integrationHttpMethod": "POST",
        "uri": f"arn:aws:apigateway:{REGION}:sqs:path/{ACCOUNT}/Pictures",
        "credentials": f"arn:aws:iam::{ACCOUNT}:role/Gateway",
        "requestParameters": FORM,
        **params,
    }


def test_a_binary_body_is_base64_to_templates_where_it_shall_be_text(gateway: Gateways) -> None:
    queue = gateway.sqs.create_queue(QueueName="Pictures")["QueueUrl"]
    api, _ = gateway.api(binaryMediaTypes=["image/png"])
    templates = {"image/png": f"{SEND}$util.urlEncode($input.body)"}
    integration = sending(contentHandling="CONVERT_TO_TEXT", requestTemplates=templates)
    resource = gateway.method(api, "/pictures", "POST", integration)
    gateway.answer(api, resource, "POST", "200")
    gateway.deploy(api)
    assert gateway.ask(api, "/prod/pictures", "POST", BYTES, PNG).status == 200
    assert [message["Body"] for message in gateway.received(queue)] == [b64encode(BYTES).decode()]


def test_a_text_is_decoded_where_it_shall_be_binary(gateway: Gateways) -> None:
    queue = gateway.sqs.create_queue(QueueName="Pictures")["QueueUrl"]
    api, _ = gateway.api()
    resource = gateway.method(api, "/pictures", "POST", sending(contentHandling="CONVERT_TO_BINARY"))
    gateway.answer(api, resource, "POST", "200")
    gateway.deploy(api)
    text, plain = b64encode(f"{SEND}hello".encode()), {"Content-Type": "text/plain"}
    assert gateway.ask(api, "/prod/pictures", "POST", text, plain).status == 200
    assert [message["Body"] for message in gateway.received(queue)] == ["hello"]
    said = gateway.ask(api, "/prod/pictures", "POST", b"{}", plain)
    assert (said.status, said.message) == (500, "Internal server error")


def test_an_answer_is_converted_behind_its_template(gateway: Gateways) -> None:
    api, _ = gateway.api()
    integration = {"type": "MOCK", "requestTemplates": {"application/json": '{"statusCode": 200}'}}
    resource = gateway.method(api, "/picture", "GET", integration)
    templates = {"image/png": b64encode(BYTES).decode()}
    gateway.answer(
        api, resource, "GET", "200", contentHandling="CONVERT_TO_BINARY", responseTemplates=templates
    )
    gateway.deploy(api)
    said = gateway.ask(api, "/prod/picture")
    assert (said.headers["content-type"], said.body) == ("image/png", BYTES)


def test_a_binary_answer_is_base64_where_it_shall_be_text(gateway: Gateways) -> None:
    gateway.sqs.create_queue(QueueName="Pictures")
    api, _ = gateway.api(binaryMediaTypes=["application/json"])
    resource = gateway.method(api, "/pictures", "POST", sending())
    gateway.answer(api, resource, "POST", "200", contentHandling="CONVERT_TO_TEXT")
    gateway.deploy(api)
    said = gateway.ask(api, "/prod/pictures", "POST", f"{SEND}hello".encode(), {"Content-Type": "text/plain"})
    assert said.body.startswith(b64encode(b'{"SendMessageResponse"')[:-4]), said.body


def test_another_handling_is_refused(gateway: Gateways) -> None:
    api, _ = gateway.api()
    resource = gateway.mock(api, "/cars")
    at = {"restApiId": api, "resourceId": resource, "httpMethod": "GET"}
    operation = {"op": "replace", "path": "/contentHandling", "value": "CONVERT"}
    for params in ({}, {"statusCode": "200"}):
        name = "update_integration_response" if params else "update_integration"
        code, _ = gateway.refused(name, **at, **params, patchOperations=[operation])
        assert code == "BadRequestException"
    paths = {"/cars": {"get": {"x-amazon-apigateway-integration": {"type": "mock", "contentHandling": "no"}}}}
    document = f'{{"openapi": "3.0.1", "info": {{"title": "Cars"}}, "paths": {paths}}}'.replace("'", '"')
    assert gateway.refused("import_rest_api", body=document.encode())[0] == "BadRequestException"
    removal = {"op": "remove", "path": "/type"}
    code, _ = gateway.refused("update_integration", **at, patchOperations=[removal])
    assert code == "BadRequestException", "an integration has a type"
