"""CloudWatch and Logs in memory, with alarms, a dashboard, metrics, logs, filters and a query."""

import logging
import random
from collections.abc import Awaitable
from typing import Any, Final

from typing_extensions import override

from redrive.access.secret import InstallationSecret
from redrive.aws.cloudwatch.alarms.records import TO_ACTION
from redrive.aws.cloudwatch.facade import CloudWatch
from redrive.aws.gateway.authentication import TrustAll
from redrive.aws.gateway.gateway import Gateway
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.owed_calls import OwedCallProfile
from redrive.aws.gateway.rounds import Rounds
from redrive.aws.kit.call import Call, Facade, ResourceScope, Verb
from redrive.aws.logs.facade import Logs
from redrive.aws.logs.records import TO_DESTINATION
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.model.errors import RedriveError
from redrive.model.http import Request, Response
from tests.aws.wire.clients import Client
from tests.fuzz.watched import Complaints, Watched

ACCOUNT: Final = "000000000000"
CLIENTS: Final = {name: Client(name, "json") for name in ("cloudwatch", "logs")}
QUERY: Final = "<query>"
TOPIC: Final = f"arn:aws:sns:us-east-1:{ACCOUNT}:t"
POLICY: Final = (
    '{"Version":"2012-10-17","Statement":'
    '[{"Effect":"Allow","Principal":"*","Action":"logs:*","Resource":"*"}]}'
)
NOW_MS: Final = 1_767_225_600_000  # of a simulated clock that begins


class Functions:
    """A stand-in for Lambda: every function is there, and lets everybody in."""

    def __init__(self) -> None:
        self.operations: dict[str, Verb] = {
            "Invoke": self._invoke,
            "GetFunctionConfiguration": self._configuration,
        }

    async def scopes(self, call: Call, operation: str, params: Structure) -> list[ResourceScope]:
        """See `Facade.scopes`: functions' own policies are asked, and let everybody in."""
        return []

    def action(self, call: Call, operation: str) -> str:
        return f"lambda:{operation}"

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        raise refusal

    async def _invoke(self, _call: Call, _params: Structure) -> Structure:
        return {}

    async def _configuration(self, _call: Call, _params: Structure) -> Structure:
        return {"LoggingConfig": {"LogGroup": "/aws/lambda/f"}}


class WatchWorld(Watched):
    """The two services on a store in memory."""

    def __init__(self) -> None:
        super().__init__()
        runtime = Runtime(self._clock, random.Random(7), "node")
        self.engine = Engine(self._store, runtime)
        documents = self.engine.resources.documents
        self.cloudwatch = CloudWatch(
            self._store, self.engine, self.settle, {}, simulated=True, open_functions=True
        )
        for dialect in ("alarms", "logs"):
            self.engine.add_profile(dialect, OwedCallProfile(dialect))
        self.engine.add_endpoint(TO_ACTION, self.cloudwatch.endpoint)
        functions = {"lambda": Functions()}
        secret = InstallationSecret(b"s" * 32)
        self.logs = Logs(
            self.engine,
            self._store,
            self.settle,
            functions,
            Identities(documents, restricts=False),
            Rounds(secret, runtime.rng),
            simulated=True,
            open_functions=True,
        )
        self.engine.add_endpoint(TO_DESTINATION, self.logs.endpoint)
        self.facades: dict[str, Facade] = {
            "cloudwatch": self.cloudwatch,
            "logs": self.logs,
        }
        self._gateway = Gateway(runtime, TrustAll("us-east-1"), self.facades, None)
        self.complaints = Complaints()

    @override
    def handle(self, request: Request) -> Awaitable[Response]:
        """See `Watched.handle`."""
        return self._gateway.answer(request)

    async def open(self) -> None:
        """Make something of everything."""
        logging.getLogger("redrive").addHandler(self.complaints)
        await self.engine.open()
        await self.call(
            "cloudwatch", "PutMetricAlarm", AlarmName="a", AlarmActions=[TOPIC], **of_one_metric()
        )
        await self.call("cloudwatch", "PutCompositeAlarm", AlarmName="c", AlarmRule="ALARM(a)")
        await self.call("cloudwatch", "PutDashboard", DashboardName="d", DashboardBody='{"widgets":[]}')
        await self.call(
            "cloudwatch", "PutMetricData", Namespace="n", MetricData=[{"MetricName": "m", "Value": 1.0}]
        )
        await self.call("logs", "CreateLogGroup", logGroupName="g")
        await self.call("logs", "CreateLogStream", logGroupName="g", logStreamName="s")
        await self.call("logs", "PutMetricFilter", **metric_filter("f"))
        await self.call("logs", "PutSubscriptionFilter", **subscription_filter("f"))
        events = [{"timestamp": NOW_MS, "message": '{"status":"FAILURE","size":2}'}]
        await self.call("logs", "PutLogEvents", logGroupName="g", logStreamName="s", logEvents=events)
        await self.call("logs", "PutResourcePolicy", policyName="p", policyDocument=POLICY)
        made = await self.call("logs", "StartQuery", **query("fields @message"))
        self.known[QUERY] = made["queryId"]
        await self.settle()

    async def evaluate(self) -> None:
        """Evaluate all alarms, whatever they have become."""
        await self.cloudwatch.evaluator.evaluate(NOW_MS + 60_000)
        await self.settle()

    async def close(self) -> None:
        """See `Watched.close`."""
        logging.getLogger("redrive").removeHandler(self.complaints)
        await super().close()

    async def call(self, service: str, operation: str, **params: Any) -> dict[str, Any]:
        """The answer to a call that is carried out."""
        client = CLIENTS[service]
        response = await self.answer(client.request(operation, params))
        assert response.status == 200, (operation, response.body)
        return client.answer(operation, response)


def of_one_metric() -> dict[str, Any]:
    return {
        "MetricName": "m",
        "Namespace": "n",
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 0.0,
        "ComparisonOperator": "GreaterThanThreshold",
    }


def metric_filter(name: str) -> dict[str, Any]:
    transformation = {"metricName": "m", "metricNamespace": "n", "metricValue": "$.size", "unit": "Bytes"}
    return {
        "logGroupName": "g",
        "filterName": name,
        "filterPattern": '{ $.status = "FAIL*" && $.size > 1 }',
        "metricTransformations": [transformation],
    }


def subscription_filter(name: str) -> dict[str, Any]:
    return {
        "logGroupName": "g",
        "filterName": name,
        "filterPattern": '{ $.status = "FAIL*" }',
        "destinationArn": f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:f",
        "distribution": "Random",
    }


def query(text: str) -> dict[str, Any]:
    times = {"startTime": NOW_MS // 1000 - 60, "endTime": NOW_MS // 1000}
    return {"logGroupName": "g", "queryString": text, **times}
