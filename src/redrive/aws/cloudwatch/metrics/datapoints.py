"""GetMetricStatistics and its points: what was measured, period by period."""

from redrive.aws.cloudwatch.metrics.errors import combination, invalid, invalid_value
from redrive.aws.cloudwatch.metrics.own_metrics import MetricName
from redrive.aws.cloudwatch.metrics.reading import MetricReader, TimeSpan, dimensions_of, is_period
from redrive.aws.cloudwatch.metrics.statistic import Measured, Statistic, statistic
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure

DATAPOINTS_MAX = 1440


class Datapoints:
    """Answers for one metric at a time."""

    def __init__(self, reading: MetricReader) -> None:
        self._reading = reading

    async def get_metric_statistics(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricStatistics.html.

        Datapoints come in order of time, which AWS does not promise. A percentile is there only where the senders
        gave values; a datapoint without any of what was asked for is left out.
        """
        basic: list[str] = params.get("Statistics") or []
        extended: list[str] = params.get("ExtendedStatistics") or []
        if bool(basic) == bool(extended):
            raise combination("Must specify either Statistics or ExtendedStatistics")
        span = _span(params)
        statistics = [_extended(name) for name in extended] or [Statistic(name) for name in basic]
        metric = MetricName(
            params["Namespace"], params["MetricName"], dimensions_of(params.get("Dimensions"))
        )
        await self._reading.settle()
        measured = await self._reading.measured(
            call, metric, span, unit=params.get("Unit"), values=bool(extended)
        )
        datapoints = [_datapoint(point, statistics, extended=bool(extended)) for point in measured]
        return {"Label": metric.name, "Datapoints": [point for point in datapoints if point is not None]}


def _span(params: Structure) -> TimeSpan:
    period_seconds: int = params["Period"]
    if params["StartTime"] >= params["EndTime"]:
        raise invalid("The parameter StartTime must be less than the parameter EndTime.")
    if not is_period(period_seconds):
        raise invalid("The parameter Period must be 1, 5, 10, 20, 30, or a multiple of 60.")
    span = TimeSpan.of(params["StartTime"], params["EndTime"], period_seconds)
    number = (params["EndTime"] - params["StartTime"]) // (period_seconds * 1000)
    if number > DATAPOINTS_MAX:
        raise combination(
            f"You have requested up to {number} datapoints, which exceeds the limit of {DATAPOINTS_MAX}."
            " You may reduce the datapoints requested by increasing Period, or decreasing the time range."
        )
    return span


def _extended(name: str) -> Statistic:
    parsed_statistic = statistic(name)
    if parsed_statistic is None or not parsed_statistic.needs_values:
        raise invalid_value("ExtendedStatistics", name)
    return parsed_statistic


def _datapoint(measured: Measured, statistics: list[Statistic], *, extended: bool) -> Structure | None:
    values = {
        statistic.name: value for statistic in statistics if (value := statistic.of(measured)) is not None
    }
    if not values:
        return None
    members: Structure = {"ExtendedStatistics": values} if extended else values
    return {"Timestamp": measured.at, "Unit": measured.unit, **members}
