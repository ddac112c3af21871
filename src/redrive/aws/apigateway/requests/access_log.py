"""Access logs: one line for each request, in the format of its stage, to a group of CloudWatch Logs.

https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-logging.html
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from redrive.aws.apigateway.control.errors import bad_request
from redrive.aws.apigateway.control.exchange import Exchange
from redrive.aws.apigateway.mapping.parameters import at_path
from redrive.engine.ports import LogSink
from redrive.model.names import ResourceName

_VARIABLE: Final = re.compile(r"\$context\.([A-Za-z0-9_.-]*[A-Za-z0-9_])")
_GROUP: Final = re.compile(r"arn:aws[a-z-]*:logs:([a-z0-9-]+):(\d{12}):log-group:([^:*]+)(?::\*)?")
_NOTHING: Final = "-"


class AccessLog:
    """Writes access logs."""

    def __init__(self, sink: LogSink, stream: str) -> None:
        self._sink = sink
        self._stream = stream

    def write(
        self, settings: Mapping[str, Any] | None, exchange: Exchange, status: int, length: int, now: int
    ) -> None:
        """Write the line of a request that was answered, where its stage has a log.

        Args:
            settings: `destinationArn` and `format`; None: there is no log.
            exchange: The request.
            status: Of the answer.
            length: Of its body (bytes).
            now: The moment of the answer (ms).
        """
        group = group_of((settings or {}).get("destinationArn") or "")
        if settings is None or group is None or group.account != exchange.place.account:
            return
        context = exchange.context()
        context |= {
            "status": status,
            "responseLength": length,
            "responseLatency": now - exchange.now,
            "routeKey": exchange.route,
            "integrationErrorMessage": exchange.integration.get("error"),
            "integrationLatency": exchange.integration.get("latency"),
            "integrationStatus": exchange.integration.get("status"),
            "awsEndpointRequestId": exchange.id,
        }
        line = _VARIABLE.sub(
            lambda match: at_path(context, match[1]) or _NOTHING, settings.get("format") or ""
        )
        self._sink.write(group, self._stream, now, line)


def refusal_of(arn: str, account: str) -> str:
    """The reason why requests to an API cannot be logged to a destination; empty: they can.

    Args:
        arn: Of the destination.
        account: The API's: nobody writes to the groups of another.
    """
    group = group_of(arn)
    if group is None:
        return f"Redrive does not offer access logs to {arn}; it writes them to groups of CloudWatch Logs."
    if group.account != account:
        return f"Invalid ARN specified in the request. {arn} belongs to another account."
    return ""


def check_destination(arn: str | None, account: str) -> None:
    """Refuse a destination that requests to an API of this account could not be logged to; without one nothing is logged.

    Raises:
        AwsError: `BadRequestException`.
    """
    if arn and (refusal := refusal_of(arn, account)):
        raise bad_request(refusal)


def group_of(arn: str) -> ResourceName | None:
    """The log group of an ARN; None: it is not the ARN of one."""
    match = _GROUP.fullmatch(arn)
    return None if match is None else ResourceName(match[2], match[1], match[3])
