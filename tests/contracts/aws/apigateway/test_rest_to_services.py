"""REST APIs in front of topics and queues: the story's path, on both stores."""

import pytest

from tests.contracts.aws.apigateway.gateways import ACCOUNT, FORM, REGION, Gateways

ORDER = {"id": 7, "status": "confirmed", "note": "a & b + c = 100 %"}


def test_an_order_is_published_and_delivered(gateways: Gateways) -> None:
    topic, queue = gateways.topic_and_queue()
    api, _ = gateways.orders(topic)
    said = gateways.post(api, "/prod/orders", ORDER)
    assert (said.status, said.headers["content-type"]) == (200, "application/json")
    published = said.document["PublishResponse"]["PublishResult"]
    assert published["SequenceNumber"] is None
    (message,) = gateways.received(queue)
    assert '"note":"a & b + c = 100 %"' in message["Body"]
    assert message["MessageAttributes"]["order-status"]["StringValue"] == "confirmed"


def test_callers_see_a_deployment_until_the_next(gateways: Gateways) -> None:
    api, _ = gateways.api()
    resource = gateways.mock(api, "/cars", template='{"cars": 1}')
    first = gateways.deploy(api)
    at = {"restApiId": api, "resourceId": resource, "httpMethod": "GET", "statusCode": "200"}
    operation = {"op": "replace", "path": "/responseTemplates/application~1json", "value": '{"cars": 2}'}
    gateways.client.update_integration_response(**at, patchOperations=[operation])
    assert gateways.ask(api, "/prod/cars").document == {"cars": 1}
    gateways.deploy(api)
    assert gateways.ask(api, "/prod/cars").document == {"cars": 2}
    back = [{"op": "replace", "path": "/deploymentId", "value": first}]
    gateways.client.update_stage(restApiId=api, stageName="prod", patchOperations=back)
    assert gateways.ask(api, "/prod/cars").document == {"cars": 1}


def test_every_form_of_the_url_leads_there(gateway: Gateways) -> None:
    api, _ = gateway.api(tags={"_custom_id_": "rental"})
    assert api == "rental"
    gateway.mock(api, "/cars", template="{}")
    gateway.deploy(api)
    port = gateway.server.url.rpartition(":")[2]
    for host, path in [
        (f"rental.execute-api.{REGION}.amazonaws.com", "/prod/cars"),
        (f"rental.execute-api.{REGION}.localhost:{port}", "/prod/cars/"),
        (f"RENTAL.execute-api.{REGION}.localhost.localstack.cloud:{port}", "/prod//cars"),
        (f"localhost:{port}", "/restapis/rental/prod/_user_request_/cars"),
        (f"localhost:{port}", "/_aws/execute-api/rental/prod/cars"),
    ]:
        assert gateway.ask("", path, host=host).status == 200, path


def test_refusals_of_sns_go_by_the_integrations_responses(gateway: Gateways) -> None:
    api, resource = gateway.orders(f"arn:aws:sns:{REGION}:{ACCOUNT}:Nobody")
    said = gateway.post(api, "/prod/orders", ORDER)
    assert (said.status, said.document["Error"]["Code"]) == (400, "NotFound")
    at = {"restApiId": api, "resourceId": resource, "httpMethod": "POST"}
    gateway.client.delete_integration_response(**at, statusCode="200")
    gateway.client.delete_integration_response(**at, statusCode="400")
    gateway.deploy(api)
    said = gateway.post(api, "/prod/orders", ORDER)
    assert (said.status, said.message) == (500, "Internal server error")
    assert said.headers["x-amzn-errortype"] == "InternalServerErrorException"


def test_a_body_without_a_template_is_refused_where_none_may_pass(gateway: Gateways) -> None:
    topic, queue = gateway.topic_and_queue()
    api, _ = gateway.orders(topic)
    said = gateway.ask(api, "/prod/orders", "POST", b"<order/>", {"Content-Type": "text/xml"})
    assert (said.status, said.message) == (415, "Unsupported Media Type")
    assert gateway.received(queue) == []


def test_an_empty_body_is_an_empty_object_to_templates(gateway: Gateways) -> None:
    topic, queue = gateway.topic_and_queue()
    api, _ = gateway.orders(topic)
    assert gateway.ask(api, "/prod/orders", "POST").status == 400, "an attribute without a value"
    template = f"Action=Publish&TopicArn={topic}&Message=$util.urlEncode($input.body)"
    api, _ = gateway.orders(topic, requestTemplates={"application/json": template})
    assert gateway.ask(api, "/prod/orders", "POST").status == 200
    assert [message["Body"] for message in gateway.received(queue)] == ["{}"]


@pytest.mark.parametrize("form", ["path", "action", "json"])
def test_a_queue_is_sent_to_by_each_form_of_its_protocol(gateway: Gateways, form: str) -> None:
    queue = gateway.sqs.create_queue(QueueName="Orders")["QueueUrl"]
    uri = f"arn:aws:apigateway:{REGION}:sqs:path/{ACCOUNT}/Orders"
    parameters, template = dict(FORM), "Action=SendMessage&MessageBody=$util.urlEncode($input.body)"
    if form == "action":
        uri = f"arn:aws:apigateway:{REGION}:sqs:action/SendMessage"
        parameters = {
            "integration.request.querystring.QueueUrl": f"'{queue}'",
            "integration.request.querystring.MessageBody": "method.request.body",
        }
    elif form == "json":
        uri = f"arn:aws:apigateway:{REGION}:sqs:path/"
        parameters = {
            "integration.request.header.Content-Type": "'application/x-amz-json-1.0'",
            "integration.request.header.X-Amz-Target": "'AmazonSQS.SendMessage'",
        }
        text = '$util.escapeJavaScript($input.body).replaceAll("\\\\\'", "\'")'  # JSON knows no escaped apostrophe
        template = f'{{"QueueUrl": "{queue}", "MessageBody": "{text}"}}'
    api, _ = gateway.api()
    integration = {
        "type": "AWS",
        "integrationHttpMethod": "POST",
        "uri": uri,
        "credentials": f"arn:aws:iam::{ACCOUNT}:role/Gateway",
        "requestParameters": parameters,
        "requestTemplates": {} if form == "action" else {"application/json": template},
    }
    resource = gateway.method(api, "/orders", "POST", integration)
    gateway.answer(api, resource, "POST", "200")
    gateway.deploy(api)
    said = gateway.post(api, "/prod/orders", b'{"note": "it\'s & so"}')
    assert said.status == 200, said.body
    assert [message["Body"] for message in gateway.received(queue)] == ['{"note": "it\'s & so"}']


def test_templates_see_the_request(gateway: Gateways) -> None:
    api, _ = gateway.api()
    template = (
        '{"id": "$input.params(\'id\')", "q": "$input.params().querystring.q", "h": "$input.params(\'X-Car\')",'
        ' "v": "$stageVariables.v", "path": "$context.resourcePath", "stage": "$context.stage",'
        ' "agent": "$context.identity.userAgent", "method": "$context.httpMethod", "none": "$context.nothing"}'
    )
    gateway.mock(api, "/cars/{id}", template=template)
    gateway.deploy(api, variables={"v": "1"})
    headers = {"X-Car": "Mini", "User-Agent": "tests"}
    assert gateway.ask(api, "/prod/cars/a%20b?q=1&q=2", headers=headers).document == {
        "id": "a b",
        "q": "2",
        "h": "Mini",
        "v": "1",
        "path": "/cars/{id}",
        "stage": "prod",
        "agent": "tests",
        "method": "GET",
        "none": "",
    }


def test_templates_and_parameters_shape_the_answer(gateway: Gateways) -> None:
    api, _ = gateway.api()
    template = (
        '#set($context.responseOverride.status = 201)#set($context.responseOverride.header.X-Two = "2"){}'
    )
    integration = {"type": "MOCK", "requestTemplates": {"application/json": '{"statusCode": 200}'}}
    resource = gateway.method(api, "/cars", "GET", integration)
    parameters = {"method.response.header.X-One": "'1'", "method.response.header.X-Id": "context.requestId"}
    templates = {"application/json": template}
    gateway.answer(api, resource, "GET", "200", responseParameters=parameters, responseTemplates=templates)
    gateway.deploy(api)
    said = gateway.ask(api, "/prod/cars")
    assert (said.status, said.headers["x-one"], said.headers["x-two"]) == (201, "1", "2")
    assert said.headers["x-id"] == said.headers["x-amzn-requestid"]
