"""Needs of attention: nothing that burns is left out, and the worst stands first."""

import re
from dataclasses import replace

import pytest

from redrive.aws.cloudformation.documents.records import STACK, Stack, StackSettings
from redrive.aws.lambda_.invocations.metrics import NAMESPACE
from redrive.console.needs import long_waiting
from redrive.engine.operations import SET_ASIDE
from redrive.engine.ports import Counts
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics
from redrive.model.queue import DAY_MS, Queue
from redrive.model.topic import Message, Subscription, Topic
from redrive.telemetry.accumulators import Loss, Losses
from redrive.telemetry.gauges import Level
from tests.console.services import Services, arn, make_function
from tests.console.test_overview import OTHER, advance, overview
from tests.console.world import ROOM, ROOT, SCOPE, Visitor, make_world, visiting

ENDPOINT = "https://partner.example.net/in?key=secret"


def badges(page: str) -> list[str]:
    """The badges of the rows, in their order."""
    rows = re.findall(r"<li data-row.*?</li>", page, re.DOTALL)
    return [
        re.sub(r"<[^>]+>", "", re.findall(r'<span class="badge [^>]*>(.*?)</span>', row)[0]) for row in rows
    ]


async def lose(visitor: Visitor, messages: int, subscription: str = "6f1c") -> None:
    """Publish to an endpoint that answers 404 and has no dead-letter queue."""
    engine = visitor.server.core.engine
    topic = await engine.resources.topics.create(Topic(0, SCOPE._replace(name="Rentals"), "sns"))
    await engine.resources.subscriptions.create(
        Subscription(subscription, topic.name, 0, SCOPE.account, "https", ENDPOINT)
    )
    engine.operations.inject_fault(ENDPOINT, 404)
    services = Services(visitor)
    for _ in range(messages):
        await services.call("sns", "Publish", TopicArn=arn("sns", "Rentals"), Message="m")
    await advance(visitor, 6_000)


async def test_messages_that_are_lost_stand_first_with_their_number_and_cause() -> None:
    async with visiting(clock="simulated") as visitor:
        await lose(visitor, 12)
        page = await overview(visitor)
        assert badges(page) == ["Lost", "Failing"]
        assert "12 messages of Rentals were lost" in page
        assert "https://partner.example.net/in?…: Client error 404; no dead-letter queue has them" in page
        assert f'href="{ROOM}/topics/Rentals/6f1c"' in page
        assert "Lost in each of the last 24 hours: 12 at most" in page
        assert "Client error 404, 12 in a row, for topic Rentals" in page
        assert "Nothing needs attention" not in page
        assert badges(await overview(visitor, f"?place={OTHER.account}/{OTHER.region}")) == []
        await advance(visitor, DAY_MS + MINUTE_MS)
        assert badges(await overview(visitor)) == ["Failing"]


@pytest.mark.parametrize(
    ("region", "title", "reason", "link"),
    [
        ("us-east-1:lambda", "3 function events were lost", "Function error", f"{ROOM}/functions"),
        ("us-east-1:alarms", "3 alarm actions were lost", "Server error 200", f"{ROOM}/tail"),
        ("us-east-1:sms", "3 direct publications were lost", "Server error 200", f"{ROOM}/tail"),
    ],
)
async def test_deliveries_that_nobody_sees_are_named_by_what_they_are(
    region: str, title: str, reason: str, link: str
) -> None:
    losses = Losses()
    losses.add(Loss(SCOPE._replace(region=region, name="bill"), "1a", "server_error 200"), 3)
    async with visiting(clock="simulated") as visitor:
        await make_world(visitor)
        now = visitor.server.core.engine.clock.now()
        points = [MetricPoint(series, now, "", statistics) for series, statistics in losses.take()]
        await visitor.server.core.store.add_points(points)
        page = await overview(visitor)
        assert f'href="{link}">{title}</a>' in page
        assert f"{reason}; no dead-letter queue has them" in page


async def test_messages_of_a_queue_that_expire_unread_are_lost() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await services.call(
            "sqs", "CreateQueue", QueueName="short", Attributes={"MessageRetentionPeriod": "60"}
        )
        url = f"http://127.0.0.1:4566/{SCOPE.account}/short"
        await services.call("sqs", "SendMessage", QueueUrl=url, MessageBody="m")
        await advance(visitor, 10 * MINUTE_MS)
        page = await overview(visitor)
        assert badges(page) == ["Lost"]
        assert "1 message of short was lost" in page
        assert "Expired; no dead-letter queue has them" in page


async def test_an_alarm_that_rings_is_named_with_its_reason() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await services.call(
            "cloudwatch",
            "PutMetricAlarm",
            AlarmName="too many",
            Namespace="AWS/SQS",
            MetricName="ApproximateNumberOfMessagesVisible",
            Dimensions=[{"Name": "QueueName", "Value": "orders"}],
            Statistic="Maximum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=5.0,
            ComparisonOperator="GreaterThanThreshold",
        )
        await make_world(visitor)
        assert badges(await overview(visitor)) == []
        await services.call(
            "cloudwatch", "SetAlarmState", AlarmName="too many", StateValue="ALARM", StateReason="9 is more"
        )
        await visitor.post(f"{ROOM}/endpoints", {})  # past the memo of a second
        page = await overview(visitor)
        assert badges(page) == ["In alarm"]
        assert "too many" in page
        assert "9 is more" in page


async def test_stacks_that_were_rolled_back_and_functions_with_errors_are_named() -> None:
    async with visiting(clock="simulated", functions="on") as visitor:
        await make_function(Services(visitor))
        core = visitor.server.core
        now = core.engine.clock.now()
        stack = Stack(
            SCOPE._replace(name="shop"),
            "1",
            "arn",
            "ROLLBACK_COMPLETE",
            now,
            StackSettings("t"),
            "No such role",
        )
        documents = core.engine.resources.documents
        await documents.create(STACK, stack.key, replace(stack, deleted_at=now))  # with its resources
        series = Series(*SCOPE[:2], NAMESPACE, "Errors", (("FunctionName", "bill"),))
        await core.store.add_points([MetricPoint(series, now - MINUTE_MS, "Count", Statistics.of(4))])
        page = await overview(visitor)
        assert badges(page) == ["Errors", "Rolled back"]
        assert "4 invocations of bill failed" in page
        assert "No such role" in page
        await documents.update(STACK, stack.key, lambda it: replace(it, status="UPDATE_COMPLETE"))
        await advance(visitor, 2 * 60 * MINUTE_MS)
        assert badges(await overview(visitor)) == []


async def test_the_action_of_dead_letters_is_the_plan_of_their_main_cause() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        await world.die("a", "b", "c")
        page = await overview(visitor)
        assert "3 dead letters in orders-dead" in page
        assert "3 Server error 503 from queue orders" in page
        (plan,) = re.findall(r'<a class="button do primary" href="([^"]+/plan[^"]+)"[^>]*>Redrive 3…', page)
        planned = await visitor.get(plan.replace("&amp;", "&"))
        assert "Redrive 3 messages" in planned.body.decode()


def test_a_queue_of_set_aside_messages_needs_no_receiver() -> None:
    levels = [Level(SCOPE._replace(name=name), Counts(2, 0, 0), 3600) for name in ("orders", SET_ASIDE)]
    assert [level.name.name for level in long_waiting(levels, [SCOPE], ())] == ["orders"]


async def test_the_busiest_and_those_that_fail_most_are_ranked_and_needs_have_their_trends() -> None:
    async with visiting(clock="simulated") as visitor:
        await lose(visitor, 12)
        engine = visitor.server.core.engine
        queue = await engine.resources.queues.create(Queue(0, SCOPE._replace(name="orders")))
        messages = [Message(engine.runtime.message_id(), "m") for _ in range(3)]
        await engine.messages.send(queue, messages)
        await advance(visitor, 2 * MINUTE_MS)
        page = await overview(visitor)
        busiest, failing = (
            [re.findall(r">([^<>]+)</(?:a|td)>", row) for row in part.split("<tr data-row>")[1:]]
            for part in page.partition('id="busiest"')[2].partition('id="failing"')[::2]
        )
        assert busiest == [["Rentals", "12", "0.2/min"], ["orders", "3", "0.05/min"]]
        assert next(row[:3] for row in failing) == ["Rentals", "12", "100 %"]
        (row,) = [each for each in re.findall(r"<li data-row.*?</li>", page, re.DOTALL) if "Failing<" in each]
        assert "Failed attempts of the last hour" in row


async def test_the_navigation_has_the_number_of_rows_that_overview_has() -> None:
    async with visiting(clock="simulated") as visitor:
        await lose(visitor, 12)
        engine = visitor.server.core.engine
        queue = await engine.resources.queues.create(Queue(0, SCOPE._replace(name="orders")))
        await engine.messages.send(queue, [Message(engine.runtime.message_id(), "m")])
        await advance(visitor, 15 * MINUTE_MS)
        page = await overview(visitor)
        assert badges(page) == ["Lost", "Failing", "Nobody receives"]
        navigation = (await visitor.get(f"{ROOT}/navigation?at={SCOPE.account}/{SCOPE.region}")).body.decode()
        assert 'data-attention="3">3<span class="hidden">&nbsp;need attention</span>' in navigation
