"""Function URLs: configured by boto3, asked by plain HTTP at a host or at a path of this server."""

import http.client
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.aws.sqs.client import REGION, refused

OTHER = "210987654321"
_ANSWERS = """
import json

def handler(event, context):
    if event["rawPath"] == "/fail":
        raise ValueError("boom")
    if event["rawPath"] == "/malformed":
        return {"statusCode": "none"}
    if event["rawPath"] == "/cookies":
        return {"statusCode": 201, "headers": {"X-Car": "1", "Content-Type": "text/plain"},
                "cookies": ["a=1; Secure", "b=2"], "body": "aGVsbG8=", "isBase64Encoded": True}
    return event
"""


class Page(NamedTuple):
    """An answer of a function URL: status, headers as pairs with lower names, and body."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)


def _asked(
    workshop: Workshop,
    url: str,
    path: str = "",
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Page:
    """Ask a URL, whose host need not be known to any resolver."""
    here, there = urlsplit(workshop.server.url), urlsplit(url)
    connection = http.client.HTTPConnection(str(here.hostname), here.port or 80, timeout=60)
    given = {"Host": there.netloc, **(headers or {})}
    connection.request(method, there.path + path, body, given)
    answer = connection.getresponse()
    page = Page(answer.status, [(name.lower(), value) for name, value in answer.getheaders()], answer.read())
    connection.close()
    return page


def _open(
    workshop: Workshop, source: str = _ANSWERS, qualifier: str | None = None, **more: Any
) -> tuple[str, str]:
    """A function that everybody may ask; its name and its URL."""
    name = workshop.function(source)
    if qualifier is not None:
        workshop.client.publish_version(FunctionName=name)
        workshop.client.create_alias(FunctionName=name, Name=qualifier, FunctionVersion="1")
        more["Qualifier"] = qualifier
    return name, workshop.opened(name, **more)


def _allow(workshop: Workshop, at: Mapping[str, str], **more: str) -> None:
    workshop.client.add_permission(**at, StatementId="url", Action="lambda:InvokeFunctionUrl", **more)


class TestConfigurations:
    def test_a_url_comes_changes_and_goes_as_recorded(self, workshop: Workshop) -> None:
        name = workshop.function()
        client, arn = workshop.client, workshop.arn(name)
        cors = {"AllowOrigins": ["https://cars.test"], "AllowMethods": ["GET"]}
        made = client.create_function_url_config(FunctionName=name, AuthType="NONE", Cors=cors)
        assert made.pop("ResponseMetadata")["HTTPStatusCode"] == 201
        url, created = made.pop("FunctionUrl"), made.pop("CreationTime")
        host = str(urlsplit(url).hostname).split(".")
        assert (len(host[0]), host[1:]) == (32, ["lambda-url", REGION, "localhost"])
        assert urlsplit(url).port == urlsplit(workshop.server.url).port
        assert made == {"FunctionArn": arn, "AuthType": "NONE", "Cors": cors}
        text = (
            f"Failed to create function url config for [functionArn = {arn}]. Error message:  FunctionUrlConfig exists"
            " for this Lambda function"
        )
        with refused("ResourceConflictException", text, 409):
            client.create_function_url_config(FunctionName=name, AuthType="NONE")
        changed = client.update_function_url_config(FunctionName=name, AuthType="AWS_IAM")
        shown = client.get_function_url_config(FunctionName=name)
        assert {**changed, "InvokeMode": "BUFFERED", "ResponseMetadata": 0} == {
            **shown,
            "ResponseMetadata": 0,
        }
        assert (shown["FunctionUrl"], shown["AuthType"], shown["Cors"]) == (url, "AWS_IAM", cors)
        assert shown["CreationTime"] == created
        client.delete_function_url_config(FunctionName=name)
        with refused("ResourceNotFoundException", "The resource you requested does not exist.", 404):
            client.get_function_url_config(FunctionName=name)
        assert _asked(workshop, url).status == 404
        again = client.create_function_url_config(FunctionName=name, AuthType="NONE")
        assert again["FunctionUrl"] != url

    def test_an_alias_has_a_url_of_its_own(self, workshop: Workshop) -> None:
        name, url = _open(workshop, qualifier="live")
        workshop.client.create_function_url_config(FunctionName=name, AuthType="NONE")
        pages = workshop.client.get_paginator("list_function_url_configs").paginate(
            FunctionName=name, PaginationConfig={"PageSize": 1}
        )
        shown = [each["FunctionArn"] for page in pages for each in page["FunctionUrlConfigs"]]
        assert shown == [workshop.arn(name), f"{workshop.arn(name)}:live"]
        assert _asked(workshop, url).status == 200
        workshop.client.delete_alias(FunctionName=name, Name="live")
        assert _asked(workshop, url).status == 404

    def test_missing_functions_aliases_and_urls_are_refused_as_recorded(self, workshop: Workshop) -> None:
        name, client = workshop.function(), workshop.client
        with refused("ResourceNotFoundException", "Function does not exist", 404):
            client.create_function_url_config(FunctionName="nobody", AuthType="NONE")
        with refused("ResourceNotFoundException", "Function does not exist", 404):
            client.create_function_url_config(FunctionName=name, Qualifier="none", AuthType="NONE")
        with refused("ResourceNotFoundException", "The resource you requested does not exist.", 404):
            client.update_function_url_config(FunctionName=name, AuthType="NONE")
        for qualifier in ("$LATEST", "1"):
            with refused("ValidationException"):
                client.create_function_url_config(FunctionName=name, Qualifier=qualifier, AuthType="NONE")

    def test_a_deleted_function_has_no_url(self, workshop: Workshop) -> None:
        name, url = _open(workshop)
        workshop.client.delete_function(FunctionName=name)
        page = _asked(workshop, url)
        assert (page.status, page.body) == (404, b'{"Message":null}')


class TestRequests:
    def test_a_request_is_an_event_of_format_2(self, workshop: Workshop) -> None:
        name, url = _open(workshop)
        host = urlsplit(url).hostname
        headers = {"User-Agent": "car", "Content-Type": "application/json", "Cookie": "a=1; b=2"}
        page = _asked(workshop, url, "cars/1?color=red&color=blue&empty=", "POST", b'{"car": 1}', headers)
        assert (page.status, page.header("content-type")) == (200, "application/json")
        event = orjson.loads(page.body)
        context = event.pop("requestContext")
        assert context.pop("requestId") == page.header("x-amzn-requestid")
        assert (len(context.pop("time")), context.pop("timeEpoch") > 0) == (26, True)
        assert context == {
            "accountId": "anonymous",
            "apiId": str(host)[:32],
            "domainName": host,
            "domainPrefix": str(host)[:32],
            "http": {
                "method": "POST",
                "path": "/cars/1",
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "car",
            },
            "routeKey": "$default",
            "stage": "$default",
        }
        shown = event.pop("headers")
        assert (shown["content-type"], shown["x-forwarded-proto"]) == ("application/json", "http")
        assert "cookie" not in shown
        assert event == {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": "/cars/1",
            "rawQueryString": "color=red&color=blue&empty=",
            "cookies": ["a=1", "b=2"],
            "queryStringParameters": {"color": "red,blue", "empty": ""},
            "body": '{"car": 1}',
            "isBase64Encoded": False,
        }
        assert workshop.client.get_function(FunctionName=name)

    def test_an_answer_with_a_status_is_a_response(self, workshop: Workshop) -> None:
        _, url = _open(workshop)
        page = _asked(workshop, url, "cookies")
        assert (page.status, page.body) == (201, b"hello")
        assert re.fullmatch(r"Root=1-[0-9a-f]{8}-[0-9a-f]{24}", page.header("x-amzn-trace-id") or "")
        assert (page.header("x-car"), page.header("content-type")) == ("1", "text/plain")
        assert [value for name, value in page.headers if name == "set-cookie"] == ["a=1; Secure", "b=2"]

    @pytest.mark.parametrize("path", ["fail", "malformed"])
    def test_failures_and_malformed_answers_are_bad_gateways(self, workshop: Workshop, path: str) -> None:
        page = _asked(workshop, _open(workshop)[1], path)
        assert (page.status, page.body) == (502, b"Internal Server Error")

    def test_the_path_form_leads_to_the_same_function(self, workshop: Workshop) -> None:
        url_id = str(urlsplit(_open(workshop)[1]).hostname)[:32]
        page = _asked(workshop, f"{workshop.server.url}/_redrive/function-url/{url_id}/", "cars?a=1")
        assert orjson.loads(page.body)["rawPath"] == "/cars"
        assert _asked(workshop, f"{workshop.server.url}/_redrive/function-url/{url_id}").status == 200

    def test_an_unknown_host_is_nobody_s(self, workshop: Workshop) -> None:
        for host in ("a" * 32 + f".lambda-url.{REGION}.localhost", f"x.lambda-url.{REGION}.localhost"):
            assert _asked(workshop, f"http://{host}/").status == 404

    def test_no_concurrency_is_too_many_requests(self, workshop: Workshop) -> None:
        name, url = _open(workshop)
        workshop.client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
        page = _asked(workshop, url)
        assert (page.status, page.body) == (429, b'{"Message":"Rate Exceeded."}')


class TestAccess:
    def test_a_function_without_a_statement_is_forbidden(self, workshop: Workshop) -> None:
        name = workshop.function()
        url = workshop.client.create_function_url_config(FunctionName=name, AuthType="NONE")["FunctionUrl"]
        page = _asked(workshop, url)
        assert (page.status, orjson.loads(page.body)) == (
            403,
            {
                "Message": "Forbidden. For troubleshooting Function URL authorization issues, see:"
                " https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html"
            },
        )
        _allow(workshop, {"FunctionName": name}, Principal="*", FunctionUrlAuthType="AWS_IAM")
        assert _asked(workshop, url).status == 403

    def test_signers_are_let_in_by_the_policy(self, workshop: Workshop) -> None:
        name = workshop.function()
        made = workshop.client.create_function_url_config(FunctionName=name, AuthType="AWS_IAM")
        url = made["FunctionUrl"]
        assert _asked(workshop, url).status == 403
        assert _asked(workshop, url, headers=_signed(url, OTHER)).status == 403
        event = orjson.loads(_asked(workshop, url, headers=_signed(url, workshop.account)).body)
        assert event["requestContext"]["accountId"] == workshop.account
        assert event["requestContext"]["authorizer"]["iam"]["accountId"] == workshop.account
        _allow(workshop, {"FunctionName": name}, Principal=OTHER, FunctionUrlAuthType="AWS_IAM")
        assert _asked(workshop, url, headers=_signed(url, OTHER)).status == 200

    def test_pages_ask_what_is_open_to_everybody(self, workshop: Workshop) -> None:
        page = {"Origin": "https://cars.test", "Sec-Fetch-Site": "cross-site"}
        cors = {"AllowOrigins": ["https://cars.test"], "AllowMethods": ["PUT"], "MaxAge": 60}
        name, url = _open(workshop, Cors=cors)
        asked = _asked(workshop, url, "", "OPTIONS", headers={**page, "Access-Control-Request-Method": "PUT"})
        assert asked.status == 200
        assert asked.header("access-control-allow-origin") == "https://cars.test"
        assert asked.header("access-control-allow-methods") == "PUT"
        assert asked.header("access-control-max-age") == "60"
        answered = _asked(workshop, url, headers=page)
        assert (answered.status, answered.header("vary")) == (200, "Origin")
        strange = _asked(workshop, url, headers={**page, "Origin": "https://others.test"})
        assert strange.header("access-control-allow-origin") is None
        workshop.client.update_function_url_config(FunctionName=name, AuthType="AWS_IAM")
        signed = _signed(url, workshop.account)
        assert _asked(workshop, url, headers={**page, **signed}).status == 403


def _signed(url: str, account: str) -> dict[str, str]:
    request = AWSRequest("GET", url, headers={"Host": urlsplit(url).netloc})
    SigV4Auth(Credentials(account, "secret"), "lambda", REGION).add_auth(request)
    return {name: value for name, value in request.headers.items() if name != "Host"}
