"""Alarms on pages: by state, their line, their switch, and one that is made by a form."""

from urllib.parse import unquote, urlencode

import pytest

from redrive.console.alarm_words import condition, history_words, last_value
from redrive.console.pages.new_alarms import firings
from redrive.model.topic import Subscription
from tests.console.services import Services, arn, make_alarms
from tests.console.test_schedules import text
from tests.console.world import ROOM, ROOT, SCOPE, Visitor, visiting

ALARM = f"{ROOM}/alarms/alarm"


async def page(visitor: Visitor, path: str, **parameter: str) -> str:
    return (await visitor.get(f"{path}?{urlencode(parameter)}")).body.decode()


async def test_alarms_are_listed_those_in_alarm_first_and_by_state() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await make_alarms(services)
        await services.call(
            "cloudwatch", "SetAlarmState", AlarmName="orders/wait", StateValue="ALARM", StateReason="x"
        )
        every = await page(visitor, f"{ROOM}/alarms")
        assert every.index("orders/wait") < every.index("both-of-them")
        assert "Maximum of ApproximateNumberOfMessagesVisible &gt; 10 for 2 of 3 periods of 1 min" in every
        in_alarm = await page(visitor, f"{ROOM}/alarms", state="ALARM")
        assert "orders/wait" in in_alarm
        assert "both-of-them" not in in_alarm
        assert "No alarms in that state" in await page(visitor, f"{ROOM}/alarms", state="INSUFFICIENT_DATA")


async def test_an_alarm_says_whether_the_receivers_of_its_topic_are_well() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await make_alarms(services)
        topic, endpoint = SCOPE._replace(name="told"), "https://ops.example.com/in"
        engine = visitor.server.core.engine
        engine.operations.inject_fault(endpoint, 500)
        await engine.resources.subscriptions.create(
            Subscription("one", topic, 0, SCOPE.account, "https", endpoint)
        )
        assert "told sns : 1 receiver, none fails" in text(await visitor.get(f"{ALARM}?name=orders/wait"))
        for _ in range(10):
            await services.call("sns", "Publish", TopicArn=arn("sns", "told"), Message="m")
        await visitor.server.time.advance(6_000)  # type: ignore[union-attr]  # simulated
        assert "told sns : 1 receiver, 1 of them fails" in text(
            await visitor.get(f"{ALARM}?name=orders/wait&again")
        )


async def test_an_alarm_shows_its_line_and_its_history_and_is_switched() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await make_alarms(services)
        queue = await services.call("sqs", "GetQueueUrl", QueueName="orders")
        for number in range(20):
            await services.call("sqs", "SendMessage", QueueUrl=queue["QueueUrl"], MessageBody=str(number))
        await visitor.server.time.advance(600_000)  # type: ignore[union-attr]  # simulated
        shown = await page(visitor, ALARM, name="orders/wait")
        assert "in alarm</span>" in shown
        assert 'class="threshold"' in shown
        assert ": 20; threshold 10" in shown
        assert ">In alarm, was " in shown
        assert ">Told told</td>" in shown
        assert "messages visible is more than 10 for" in shown
        assert "it was <b>20</b> at the last change" in shown
        overview = await page(visitor, f"{ROOT}/")
        assert "orders: messages visible is more than 10 for 2 of 3 times 1 min; it was 20" in overview
        assert "Messages visible in the last hour: 20 at most" in overview
        assert "no receiver has it" in shown
        assert f"{ROOM}/topics/told" in shown
        led = await visitor.post(ALARM, {"name": "orders/wait", "do": "disable"})
        assert "not performed" in unquote(led.headers["Set-Cookie"])
        assert "Its actions are switched off" in await page(visitor, ALARM, name="orders/wait", again="")
        await visitor.post(ALARM, {"name": "orders/wait", "do": "enable"})
        assert "Its actions are switched off" not in await page(visitor, ALARM, name="orders/wait")
        assert "OK(&#34;orders/wait&#34;)" in await page(visitor, ALARM, name="both-of-them")
        assert (await visitor.get(f"{ALARM}?name=absent")).status == 404
        assert (await visitor.get(ALARM)).status == 404


async def test_a_state_is_set_after_a_page_that_says_what_it_sets_off() -> None:
    async with visiting(clock="simulated") as visitor:
        await make_alarms(Services(visitor))
        asks = await page(visitor, f"{ROOM}/alarms/state", name="orders/wait")
        assert 'which notifies <span class="mono">told</span>' in asks
        form = {"name": "orders/wait", "state": "OK", "reason": "an exercise"}
        assert (await visitor.post(f"{ROOM}/alarms/state", form)).status == 303
        shown = await page(visitor, ALARM, name="orders/wait")
        assert "an exercise" in shown
        assert "OK</span>" in shown
        assert (await visitor.post(f"{ROOM}/alarms/state", {**form, "state": "x"})).status == 400


async def test_an_alarm_is_made_by_one_form_and_none_is_replaced_unasked() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await make_alarms(services)
        new = f"{ROOM}/alarms/new"
        assert 'value="orders-dead-alarm"' in await page(visitor, new, queue="orders-dead")
        assert "throttles" in await page(visitor, new, function="bill")
        form = {
            "of": "queue",
            "thing": "orders-dead",
            "watched": "waiting",
            "threshold": "0",
            "minutes": "5",
            "name": "dead",
            "topic": arn("sns", "told"),
        }
        assert (await visitor.post(new, form)).status == 303
        (made,) = (await services.call("cloudwatch", "DescribeAlarms", AlarmNames=["dead"]))["MetricAlarms"]
        assert made["Dimensions"] == [{"Name": "QueueName", "Value": "orders-dead"}]
        assert (made["Threshold"], made["EvaluationPeriods"], made["AlarmActions"]) == (
            0.0,
            5,
            [arn("sns", "told")],
        )
        again = await visitor.post(new, {**form, "threshold": "7"})
        assert again.status == 400
        assert "There is an alarm dead already" in again.body.decode()
        assert (await visitor.post(new, {**form, "threshold": "7", "replace": "yes"})).status == 303
        refused = await visitor.post(new, {**form, "name": "other", "topic": "nonsense"})
        assert refused.status == 400
        assert "nonsense" in refused.body.decode()
        assert (await visitor.post(new, {**form, "watched": "errors"})).status == 400
        assert (await visitor.post(new, {**form, "name": ""})).status == 400


async def test_a_new_alarm_is_tried_on_the_last_day() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await make_alarms(services)  # depths are noted while an alarm looks at them
        url = (await services.call("sqs", "GetQueueUrl", QueueName="orders"))["QueueUrl"]
        await services.call("sqs", "SendMessage", QueueUrl=url, MessageBody="x")
        await visitor.server.time.advance(600_000)  # type: ignore[union-attr]  # simulated
        new = f"{ROOM}/alarms/new"
        often = {
            "": "once",
            "&threshold=1": "never",
            "&minutes=60": "never",
            "&watched=age&threshold=300": "once",
        }
        for query, times in often.items():
            shown = (await visitor.get(f"{new}?thing=orders{query}")).body.decode()
            assert f"it would have fired {times}." in shown, query
        assert "no data of the last 24 h" in (await visitor.get(f"{new}?thing=absent")).body.decode()
        assert (await visitor.get(f"{new}?thing=orders&threshold=x")).status == 400


def test_an_alarm_fires_once_for_each_time_above_its_limit() -> None:
    minutes = {number * 60_000: value for number, value in enumerate([0, 5, 5, 0, 5, 5, 5, 0, 5])}
    assert firings(minutes, 1, 1, gaps_end_it=True) == 3
    assert firings(minutes, 1, 2, gaps_end_it=True) == 2
    gap = {0: 5.0, 60_000: 5.0, 300_000: 5.0, 360_000: 5.0}
    assert firings(gap, 1, 2, gaps_end_it=True) == 2
    assert firings(gap, 1, 2, gaps_end_it=False) == 1


PLAIN = {
    "MetricName": "m",
    "Statistic": "Sum",
    "Threshold": 0.5,
    "ComparisonOperator": "LessThanThreshold",
    "EvaluationPeriods": 1,
    "Period": 10,
}


@pytest.mark.parametrize(
    ("alarm", "words"),
    [
        (PLAIN, "Sum of m < 0.5 for 1 period of 10 s"),
        ({**PLAIN, "EvaluationPeriods": 3, "Period": 300}, "Sum of m < 0.5 for 3 periods of 5 min"),
        (
            {**PLAIN, "EvaluationPeriods": 3, "DatapointsToAlarm": 2},
            "Sum of m < 0.5 for 2 of 3 periods of 10 s",
        ),
        ({"AlarmRule": 'ALARM("a")'}, 'ALARM("a")'),
        (
            {
                **PLAIN,
                "Period": None,
                "Metrics": [
                    {"Id": "a", "ReturnData": False, "MetricStat": {"Period": 60}},
                    {"Id": "e", "Expression": "a / 2"},
                ],
            },
            "a / 2 < 0.5 for 1 period of 1 min",
        ),
    ],
)
def test_a_condition_is_told_in_words(alarm: dict[str, object], words: str) -> None:
    assert condition(alarm) == words


@pytest.mark.parametrize(
    ("summary", "data", "words"),
    [
        ("Alarm updated from INSUFFICIENT_DATA to OK", "{}", "OK, was No data"),
        ("Failed to execute action arn:aws:sns:a:1:told", '{"error": "gone"}', "Could not tell told: gone"),
        ('Alarm "a" created', "{}", 'Alarm "a" created'),
    ],
)
def test_history_is_told_in_words(summary: str, data: str, words: str) -> None:
    assert history_words(summary, data) == words


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ('{"recentDatapoints":[3,20]}', "20"),
        (None, ""),
        ("true", ""),
        ('"yes"', ""),
        ("[20]", ""),
        ("{", ""),
        ('{"recentDatapoints":[]}', ""),
        ('{"recentDatapoints":20}', ""),
        ('{"recentDatapoints":["20"]}', ""),
        ('{"recentDatapoints":[null]}', ""),
    ],
)
def test_the_last_value_is_read_from_any_text(data: str | None, words: str) -> None:
    assert last_value({"MetricName": "NumberOfMessagesSent"}, data) == words


def test_an_age_is_a_span_of_time_unless_it_is_beyond_all_ages() -> None:
    age = {"MetricName": "ApproximateAgeOfOldestMessage"}
    assert last_value(age, '{"recentDatapoints":[90.5]}') == "1 min 30 s"
    assert last_value(age, '{"recentDatapoints":[1e308]}').startswith("100,000,000")


async def test_overview_names_an_alarm_whose_state_was_set_with_any_data() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await make_alarms(services)
        state = {"AlarmName": "orders/wait", "StateValue": "ALARM", "StateReason": "by hand"}
        await services.call("cloudwatch", "SetAlarmState", **state, StateReasonData="true")
        overview = await page(visitor, f"{ROOT}/")
        assert "by hand" in overview
        assert "by hand" in await page(visitor, ALARM, name="orders/wait")


async def test_a_row_says_of_what_how_much_now_and_who_is_told() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await make_alarms(services)
        queue = await services.call("sqs", "GetQueueUrl", QueueName="orders")
        for number in range(20):
            await services.call("sqs", "SendMessage", QueueUrl=queue["QueueUrl"], MessageBody=str(number))
        await visitor.server.time.advance(600_000)  # type: ignore[union-attr]  # simulated
        every = await page(visitor, f"{ROOM}/alarms")
        assert "Messages visible is more than 10 for 2 of 3 times 1 min" in every
        assert f'<a class="mono" href="{ROOM}/queues/orders">orders</a>' in every
        assert '<td data-label="Now" class="num"><b>20</b></td>' in every
        assert "Messages visible in the last 30 min: 20 at most" in every
        assert f'href="{ROOM}/topics/told"' in every
