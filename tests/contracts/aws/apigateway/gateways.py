"""API Gateway at a server, as boto3 has it, and its APIs as anybody's clients ask them."""

from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError  # type: ignore[import-untyped]  # as boto3

from tests.services.server import Server

ACCOUNT: Final = "123456789012"
REGION: Final = "us-east-1"
FORM: Final = {"integration.request.header.Content-Type": "'application/x-www-form-urlencoded'"}
_CONFIG: Final = Config(retries={"total_max_attempts": 1}, parameter_validation=False)


class Said(NamedTuple):
    """The answer of an API."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return orjson.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.document["message"])


class Gateways:
    """API Gateway, and the services behind it, for one account."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._session = boto3.Session(
            aws_access_key_id=ACCOUNT, aws_secret_access_key="secret", region_name=REGION
        )
        self.client = self.of("apigateway")
        self.sns, self.sqs = self.of("sns"), self.of("sqs")

    def of(self, service: str) -> Any:
        return self._session.client(service, endpoint_url=self.server.url, config=_CONFIG)

    def refused(self, operation: str, service: str = "apigateway", **params: Any) -> tuple[str, str]:
        """The code and the text of a refusal."""
        client = self.client if service == "apigateway" else self.of(service)
        with pytest.raises(ClientError) as refusal:
            getattr(client, operation)(**params)
        error = refusal.value.response["Error"]
        return error["Code"], error["Message"]

    # ---- APIs --------------------------------------------------------------------------------------------

    def api(self, name: str = "Rental", **params: Any) -> tuple[str, str]:
        """The id of a new API, and that of its root."""
        made = self.client.create_rest_api(name=name, **params)
        return made["id"], made["rootResourceId"]

    def method(self, api: str, path: str, name: str, integration: Mapping[str, Any], **params: Any) -> str:
        """The id of a new resource below the root, with a method."""
        by_path = {each["path"]: each["id"] for each in self.resources(api)}
        resource, above = by_path["/"], ""
        for part in path.strip("/").split("/"):
            above = f"{above}/{part}"
            if part and above not in by_path:
                made = self.client.create_resource(restApiId=api, parentId=resource, pathPart=part)
                by_path[above] = made["id"]
            resource = by_path[above] if part else resource
        at = {"restApiId": api, "resourceId": resource, "httpMethod": name}
        self.client.put_method(**at, **{"authorizationType": "NONE", **params})
        for status in ("200", "400", "500"):
            self.client.put_method_response(**at, statusCode=status)
        self.client.put_integration(**at, **integration)
        return resource

    def resources(self, api: str) -> list[dict[str, Any]]:
        return list(self.client.get_resources(restApiId=api, limit=500)["items"])

    def answer(self, api: str, resource: str, method: str, status: str, **params: Any) -> None:
        """Map answers of what is behind a method to a status."""
        at = {"restApiId": api, "resourceId": resource, "httpMethod": method}
        self.client.put_integration_response(**at, statusCode=status, **params)

    def deploy(self, api: str, stage: str = "prod", **params: Any) -> str:
        return str(self.client.create_deployment(restApiId=api, stageName=stage, **params)["id"])

    def mock(self, api: str, path: str, method: str = "GET", template: str = "", **params: Any) -> str:
        """A method that answers by itself."""
        integration = {"type": "MOCK", "requestTemplates": {"application/json": '{"statusCode": 200}'}}
        resource = self.method(api, path, method, integration, **params)
        templates = {"responseTemplates": {"application/json": template}} if template else {}
        self.answer(api, resource, method, "200", **templates)
        return resource

    def orders(self, topic: str, **params: Any) -> tuple[str, str]:
        """An API whose `POST /orders` publishes to a topic, deployed; its id and that of the resource."""
        api, _ = self.api()
        template = (
            f"Action=Publish&TopicArn=$util.urlEncode('{topic}')&Message=$util.urlEncode($input.body)"
            "&MessageAttributes.entry.1.Name=order-status&MessageAttributes.entry.1.Value.DataType=String"
            "&MessageAttributes.entry.1.Value.StringValue=$util.urlEncode($input.path('$.status'))"
        )
        integration = {
            "type": "AWS",
            "integrationHttpMethod": "POST",
            "uri": f"arn:aws:apigateway:{REGION}:sns:path//",
            "credentials": f"arn:aws:iam::{ACCOUNT}:role/Gateway",
            "requestParameters": FORM,
            "requestTemplates": {"application/json": template},
            "passthroughBehavior": "NEVER",
        }
        resource = self.method(api, "/orders", "POST", {**integration, **params})
        self.answer(api, resource, "POST", "200")
        self.answer(api, resource, "POST", "400", selectionPattern=r"4\d{2}")
        self.deploy(api)
        return api, resource

    def topic_and_queue(self, name: str = "Orders") -> tuple[str, str]:
        """The ARN of a new topic, and the URL of a queue that has its messages."""
        topic = self.sns.create_topic(Name=name)["TopicArn"]
        queue = self.sqs.create_queue(QueueName=name)["QueueUrl"]
        self.sns.subscribe(
            TopicArn=topic,
            Protocol="sqs",
            Endpoint=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}",
            Attributes={"RawMessageDelivery": "true"},
        )
        return topic, queue

    def received(self, queue: str) -> list[dict[str, Any]]:
        found = self.sqs.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
        return list(found.get("Messages", ()))

    # ---- requests ----------------------------------------------------------------------------------------

    def ask(
        self,
        api: str,
        path: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        host: str = "",
    ) -> Said:
        """The answer to a request at an API's own host; the path begins with the stage."""
        parts = urlsplit(self.server.url)
        connection = HTTPConnection(parts.hostname or "", parts.port)
        try:
            named = host or f"{api}.execute-api.{REGION}.amazonaws.com"
            connection.request(method, path, body, {"Host": named, **(headers or {})})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Said(response.status, found, response.read())
        finally:
            connection.close()

    def post(self, api: str, path: str, document: Any, **headers: str) -> Said:
        """The answer to a document."""
        body = document if isinstance(document, bytes) else orjson.dumps(document)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask(api, path, "POST", body, {"Content-Type": "application/json", **named})
