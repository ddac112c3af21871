"""CloudWatch and CloudWatch Logs as boto3 speaks them, at a server whose time stands still between a test's calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from typing import Any, Literal

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

from tests.services.clients import Client
from tests.services.server import Server

WireProtocol = Literal["json", "query", "smithy-rpc-v2-cbor"]

_CONFIG = Config(
    retries={"total_max_attempts": 1},
    connect_timeout=5,
    read_timeout=30,
    parameter_validation=False,  # what a server checks must reach it
)


class _OneProtocol(Loader):
    """Loads CloudWatch's model as if it had one protocol."""

    def __init__(self, protocol: WireProtocol) -> None:
        super().__init__()
        self._protocol = protocol

    def load_service_model(
        self, service_name: str, type_name: str, api_version: str | None = None
    ) -> Mapping[str, Any]:
        model = super().load_service_model(service_name, type_name, api_version)
        if (service_name, type_name) != ("cloudwatch", "service-2"):
            return model
        metadata = {**model["metadata"], "protocol": self._protocol, "protocols": [self._protocol]}
        if self._protocol == "query":
            del metadata["awsQueryCompatible"]
        return {**model, "metadata": metadata}


@cache
def client(
    url: str, service: str, protocol: WireProtocol, account: str = "000000000000", region: str = "us-east-1"
) -> Client:
    """A boto3 client; with authentication off an access key of twelve digits is the account."""
    session = botocore.session.Session()
    session.register_component("data_loader", _OneProtocol(protocol))
    made = boto3.Session(
        aws_access_key_id=account,
        aws_secret_access_key="secret",
        region_name=region,
        botocore_session=session,
    )
    return made.client(service, endpoint_url=url, config=_CONFIG)


@dataclass
class Watch:
    """CloudWatch at a server."""

    server: Server
    protocol: WireProtocol = "json"
    account: str = "000000000000"
    region: str = "us-east-1"

    @cached_property
    def client(self) -> Client:
        return client(self.server.url, "cloudwatch", self.protocol, self.account, self.region)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.server.now(), UTC)

    def around(self, minutes: float = 5) -> dict[str, datetime]:
        """A time range with now in it."""
        reach = timedelta(minutes=minutes)
        return {"StartTime": self.now() - reach, "EndTime": self.now() + reach}

    def put(self, name: str, *, namespace: str = "test", **datum: Any) -> None:
        self.client.put_metric_data(Namespace=namespace, MetricData=[{"MetricName": name, **datum}])

    def statistics(
        self, name: str, *statistics: str, namespace: str = "test", period: int = 60, **params: Any
    ) -> list[dict[str, Any]]:
        """The datapoints, without their times."""
        wanted = {"Statistics": list(statistics)} if statistics else {}
        answer = self.client.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Period=period,
            **({**self.around(), **wanted, **params}),
        )
        assert answer["Label"] == name
        return [
            {key: value for key, value in one.items() if key != "Timestamp"} for one in answer["Datapoints"]
        ]

    def rows(self, *queries: dict[str, Any], **params: Any) -> list[dict[str, Any]]:
        answer = self.client.get_metric_data(MetricDataQueries=list(queries), **({**self.around(), **params}))
        assert answer["Messages"] == []
        found: list[dict[str, Any]] = answer["MetricDataResults"]
        return found

    def sums(self, namespace: str, name: str, **dimensions: str) -> list[float]:
        """Return a metric's sums, minute by minute, earliest first."""
        metric = {"Namespace": namespace, "MetricName": name, "Dimensions": pairs(dimensions)}
        query = {"Id": "m", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
        (row,) = self.rows(query, ScanBy="TimestampAscending")
        values: list[float] = row["Values"]
        return values

    def listed(self, **params: Any) -> list[str]:
        """The metrics, each in one line."""
        metrics = self.client.list_metrics(**params)["Metrics"]
        return [
            " ".join(
                [
                    metric["Namespace"],
                    metric["MetricName"],
                    *(f"{one['Name']}={one['Value']}" for one in metric["Dimensions"]),
                ]
            )
            for metric in metrics
        ]


def query(
    name: str,
    statistic: str = "Sum",
    period: int = 60,
    unit: str | None = None,
    *,
    query_id: str = "m",
    namespace: str = "test",
    **dimensions: str,
) -> dict[str, Any]:
    """One of GetMetricData's queries."""
    metric = {"Namespace": namespace, "MetricName": name, "Dimensions": pairs(dimensions)}
    wanted: dict[str, Any] = {"Metric": metric, "Period": period, "Stat": statistic}
    return {"Id": query_id, "MetricStat": wanted | ({"Unit": unit} if unit else {})}


def pairs(dimensions: Mapping[str, str]) -> list[dict[str, str]]:
    """Dimensions as CloudWatch has them."""
    return [{"Name": name, "Value": value} for name, value in dimensions.items()]
