"""The workbench serves dead letters of every origin alike: causes, one letter, a plan, and the way back.

Those of a topic's subscription are what the stories of dead orders are about.
"""

import json

from azure.eventgrid import EventGridEvent

from tests.browser.screen import Screen
from tests.browser.services import make_bill, new_client
from tests.cli.telling import fail
from tests.contracts.aws.sns.client import Sns
from tests.contracts.aws.sqs.client import ACCOUNT, REGION
from tests.contracts.azure.grid import Grid, Subscriber
from tests.contracts.azure.namespaces import GROUP, SUBSCRIPTION
from tests.services.server import Server

CONSOLE = "/_redrive/console"
ROOM = f"{CONSOLE}/{ACCOUNT}/{REGION}"
_BILL = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:bill"
_RETRIES_END = 600


def test_a_message_that_its_consumer_gave_up_goes_back_to_its_queue(
    screen: Screen, sns: Sns, server: Server
) -> None:
    dead = sns.sqs.queue()
    policy = json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1})
    orders = sns.sqs.queue(RedrivePolicy=policy, VisibilityTimeout="0")
    orders.send("order 7001")
    while orders.receive():
        pass
    _redrive(
        screen,
        server,
        f"{ROOM}/dead-letters/{dead.name}",
        ("Receives exhausted", f"queue {orders.name}", "order 7001", "Its consumer reports no reason"),
    )
    assert [message["Body"] for message in orders.receive()] == ["order 7001"]


def test_an_event_goes_back_to_its_event_subscription(
    screen: Screen, grid: Grid, server: Server, subscriber: Subscriber
) -> None:
    topic = grid.topic()
    grid.subscribe(topic.id, subscriber, "billing", container="dead")
    subscriber.status = 400
    grid.publish(topic, [EventGridEvent("/orders", "Order.Placed", {"order": 7002}, "1.0")])
    server.advance(_RETRIES_END)
    assert subscriber.next().document[0]["data"] == {"order": 7002}
    subscriber.status = 200
    screen.open(f"{server.url}{CONSOLE}/{SUBSCRIPTION}/{GROUP}/event-grid")
    link = screen.find("main a[aria-label*='dead letters of']").get_attribute("href") or ""
    _redrive(
        screen,
        server,
        link.removeprefix(server.url),
        ("Client error 400", subscriber.url.removeprefix("http://"), "7002", "after 1 attempt"),
    )
    assert subscriber.next().document[0]["data"] == {"order": 7002}


def test_an_invocation_goes_back_to_its_function(screen: Screen, sns: Sns, server: Server) -> None:
    lost = sns.sqs.queue()
    functions = new_client(server, "lambda")
    make_bill(functions, lost.arn)
    fail(server, f"{_BILL}:$LATEST", 503)
    functions.invoke(FunctionName="bill", InvocationType="Event", Payload=b'{"order": 7003}')
    server.advance(7 * 3600)
    fail(server, f"{_BILL}:$LATEST", None)
    _redrive(
        screen,
        server,
        f"{ROOM}/dead-letters/{lost.name}",
        ("503", "function bill", "7003", "after 3 attempts"),
    )
    (event,) = new_client(server, "logs").filter_log_events(
        logGroupName="/aws/lambda/bill", filterPattern="7003"
    )["events"]
    assert "got" in event["message"]


def _redrive(screen: Screen, server: Server, workbench: str, says: tuple[str, str, str, str]) -> None:
    """Go from the one cause of a queue to its letter, to a plan for the cause, and wait until it has gone back."""
    reason, origin, body, letter = says
    screen.open(f"{server.url}{workbench}")
    cause = screen.text(".causes")
    assert reason in cause
    assert origin in cause
    screen.follow("#letters a")
    assert body in screen.text(".padded pre.body")
    assert letter in screen.text()
    assert origin in screen.text()
    screen.press("Back to the dead letters")
    screen.follow("a.cause")
    screen.press("Redrive all 1")
    assert origin in screen.text()
    screen.click("input[value=fast]")
    screen.press("Start ")  # anyway, where the last attempt failed
    server.advance(30)
    screen.wait_for("Completed", "#state")
    assert screen.text("#moved") == "1"
