"""CloudWatch and CloudWatch Logs as boto3 speaks them, at a server whose time stands still between a test's calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from tests.contracts.aws.clients import WireProtocol, client
from tests.services.clients import Client
from tests.services.server import Server


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
