"""Access logs are the API's owner's: no API writes into the log groups of another account."""

from typing import Any

import pytest
from typing_extensions import override

from redrive.aws.apigateway.control.exchange import Exchange, StagePlace
from redrive.aws.apigateway.control.targets import InvokeTarget
from redrive.aws.apigateway.requests.metrics import AccessLog, refusal_of
from redrive.engine.ports import LogSink
from redrive.model.http import Request
from redrive.model.names import ResourceName

OWN, OTHER = "123456789012", "999999999999"


class Written(LogSink):
    """Remembers the groups that are written to."""

    def __init__(self) -> None:
        self.accounts: list[str] = []

    @override
    def write(self, group: ResourceName, stream: str, at: int, message: str) -> None:
        self.accounts.append(group.account)


def _settings(account: str) -> dict[str, Any]:
    arn = f"arn:aws:logs:us-east-1:{account}:log-group:calls"
    return {"destinationArn": arn, "format": "$context.requestId"}


def test_a_request_is_logged_to_groups_of_its_apis_account_alone() -> None:
    written = Written()
    place = StagePlace(OWN, "us-east-1", "rental", "Rental", "prod")
    request = Request("GET", "/prod/cars", "", {}, b"")
    exchange = Exchange(
        request, InvokeTarget("rental", "/cars", "localhost", "prod"), place, "/cars", "id", 0
    )
    log = AccessLog(written, "stream")
    for account in (OTHER, OWN):
        log.write(_settings(account), exchange, 200, 0, 1)
    assert written.accounts == [OWN]


@pytest.mark.parametrize(
    ("arn", "refusal"),
    [
        (f"arn:aws:logs:us-east-1:{OWN}:log-group:calls:*", ""),
        (f"arn:aws:logs:us-east-1:{OTHER}:log-group:calls", "belongs to another account"),
        (f"arn:aws:firehose:us-east-1:{OWN}:deliverystream/calls", "does not offer"),
        ("calls", "does not offer"),
    ],
)
def test_a_destination_that_would_stay_empty_is_refused(arn: str, refusal: str) -> None:
    assert refusal in refusal_of(arn, OWN)
    assert bool(refusal) == bool(refusal_of(arn, OWN))
