"""Lambda in the words tests use: functions of a few lines, made by boto3 and run by the server."""

import io
import itertools
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import orjson
from botocore.config import Config

from tests.contracts.aws.sns.client import Sns
from tests.contracts.aws.sqs.client import ACCOUNT, REGION, Sqs
from tests.services.server import Server

ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/functions"
RUNTIME: Final = "python3.11"
#: A handler that answers its event, and one that fails with it.
ECHO: Final = """
import os
calls = 0

def handler(event, context):
    return event

def fail(event, context):
    raise ValueError(f"boom {event}")

def count(event, context):
    global calls
    calls += 1
    return calls

def look(event, context):
    return {"version": context.function_version, "arn": context.invoked_function_arn,
            "variables": dict(os.environ), "request": context.aws_request_id}
"""

_numbers = itertools.count(1)
# No retry hides an error, and what a server checks must reach it.
_CONFIG: Final = Config(
    retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=60, parameter_validation=False
)


def archive(files: Mapping[str, str], modes: Mapping[str, int] | None = None) -> bytes:
    """A deployment package: texts by their paths, with Unix modes where they are given."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        for path, text in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (modes or {}).get(path, 0) << 16
            opened.writestr(entry, text)
    return packed.getvalue()


@dataclass(frozen=True)
class Answer:
    """An invocation's answer.

    Attributes:
        payload: Of the function, read as JSON; None where it has none.
        error: As `X-Amz-Function-Error` says it.
        raw: All of it.
    """

    payload: Any
    error: str | None
    raw: Mapping[str, Any]


@dataclass
class Workshop:
    """Lambda at a server, for one caller."""

    server: Server
    account: str = ACCOUNT
    region: str = REGION

    @cached_property
    def client(self) -> Any:
        return self.of("lambda")

    def of(self, service: str) -> Any:
        """The same caller's client of another service."""
        session = boto3.Session(
            aws_access_key_id=self.account,
            aws_secret_access_key="test" if self.account == "test" else "secret",
            region_name=self.region,
        )
        return session.client(service, endpoint_url=self.server.url, config=_CONFIG)

    @cached_property
    def sqs(self) -> Sqs:
        return Sqs(self.server, "json", self.account, self.region)

    @cached_property
    def sns(self) -> Sns:
        return Sns(self.server, self.account, self.region)

    def function(self, source: str = ECHO, handler: str = "index.handler", **more: Any) -> str:
        """Make a function of one Python module; its name, which no other test has."""
        name = f"f{next(_numbers)}-{os.getpid()}"
        self.create(name, archive({"index.py": source}), handler, **more)
        return name

    def create(self, name: str, code: bytes, handler: str, **more: Any) -> Mapping[str, Any]:
        """Make a function of a package; what CreateFunction answers."""
        given = {"Runtime": RUNTIME, "Role": ROLE, "Timeout": 20, **more}
        made: Mapping[str, Any] = self.client.create_function(
            FunctionName=name, Handler=handler, Code={"ZipFile": code}, **given
        )
        return made

    def call(self, name: str, event: object = None, **more: Any) -> Answer:
        """Invoke a function and wait for it."""
        answer = self.client.invoke(FunctionName=name, Payload=orjson.dumps(event), **more)
        payload = answer["Payload"].read()
        return Answer(orjson.loads(payload) if payload else None, answer.get("FunctionError"), answer)

    def send(self, name: str, event: object = None, **more: Any) -> str:
        """Invoke a function for later; the id of the request."""
        answer = self.client.invoke(
            FunctionName=name, InvocationType="Event", Payload=orjson.dumps(event), **more
        )
        assert answer["StatusCode"] == 202
        request_id: str = answer["ResponseMetadata"]["RequestId"]
        return request_id

    def arn(self, name: str) -> str:
        return f"arn:aws:lambda:{self.region}:{self.account}:function:{name}"

    def opened(self, name: str, **config: Any) -> str:
        """Give a function a URL that everybody may ask; the URL."""
        made = self.client.create_function_url_config(FunctionName=name, **{"AuthType": "NONE", **config})
        at = {"FunctionName": name, **({"Qualifier": config["Qualifier"]} if "Qualifier" in config else {})}
        self.client.add_permission(
            **at,
            StatementId="url",
            Action="lambda:InvokeFunctionUrl",
            Principal="*",
            FunctionUrlAuthType="NONE",
        )
        url: str = made["FunctionUrl"]
        return url

    def total(self, metric: str, statistic: str = "Sum", **dimensions: str) -> float:
        """The statistic of a metric of Lambda's over the last two hours; without dimensions, of the account."""
        now = self.server.now()
        points = self.of("cloudwatch").get_metric_statistics(
            Namespace="AWS/Lambda",
            MetricName=metric,
            Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
            StartTime=now - 3600,
            EndTime=now + 3600,
            Period=7200,
            Statistics=[statistic],
        )["Datapoints"]
        return sum(float(point[statistic]) for point in points)
