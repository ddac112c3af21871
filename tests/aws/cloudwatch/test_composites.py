"""Composite alarms: rules, the states that follow from them, and the suppression of their actions."""

from typing import Any

import orjson
import pytest

from redrive.aws.cloudwatch.alarms.composites import (
    BY_ALARM,
    BY_EXTENSION,
    BY_WAIT,
    Next,
    Suppression,
    Suppressor,
    follow,
)
from redrive.aws.cloudwatch.alarms.records import ALARM, INSUFFICIENT_DATA, OK
from redrive.aws.cloudwatch.alarms.rule import RuleError, holds, leaves, read_rule
from redrive.aws.wire.errors import AwsError
from tests.aws.cloudwatch.stage import ACCOUNT, REGION, Stage

PREFIX = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:"
COMPOSITE = "CompositeAlarm"

# ---- rules -----------------------------------------------------------------------------------------------------

STATES = {"on": ALARM, "off": OK, "out": INSUFFICIENT_DATA, "with space": ALARM}


@pytest.mark.parametrize(
    ("rule", "truth"),
    [
        ('ALARM("on")', True),
        ("ALARM(on)", True),
        ("ALARM('with space')", True),
        (f'ALARM("{PREFIX}on")', True),
        ("OK(on)", False),
        ("INSUFFICIENT_DATA(out)", True),
        ("ALARM(gone)", False),
        ("NOT ALARM(gone)", True),
        ("TRUE", True),
        ("FALSE OR TRUE", True),
        ("ALARM(on) AND ALARM(off)", False),
        ("ALARM(on) OR ALARM(off) AND FALSE", True),
        ("(ALARM(on) OR ALARM(off)) AND FALSE", False),
        ("NOT (ALARM(on) AND NOT OK(off))", True),
        (" OR ".join(["FALSE"] * 1200 + ["ALARM ( on )"]), True),
    ],
)
def test_rules(rule: str, truth: bool) -> None:
    assert holds(read_rule(rule), STATES) is truth


@pytest.mark.parametrize(
    "rule",
    [
        *("", "ALARM", "ALARM()", "ALARM(a) ALARM(b)", "ALARM(a) AND", "(ALARM(a)", "ALARM(a))", "alarm(a)"),
        *("ALARM(a b)", "NOT", "ALARM(a) XOR OK(b)", "(" * 200, "NOT " * 200 + "TRUE"),
        " OR ".join(f"ALARM(a{number})" for number in range(101)),
    ],
)
def test_rules_that_cannot_be_read(rule: str) -> None:
    with pytest.raises(RuleError):
        read_rule(rule)


def test_alarms_are_known_by_their_arn() -> None:
    assert [leaf.alarm for leaf in leaves(read_rule(f'OK("{PREFIX}a:b/c") OR OK(d)'))] == ["a:b/c", "d"]


# ---- suppression -----------------------------------------------------------------------------------------------

IDLE, ON = Suppressor(on=False, wait_ms=10, extension_ms=20), Suppressor(on=True, wait_ms=10, extension_ms=20)
AT_ONCE = Suppressor(on=False, wait_ms=0, extension_ms=0)


@pytest.mark.parametrize(
    ("current", "before", "state", "suppressor", "found"),
    [
        (None, OK, OK, ON, Next(None, acts=False)),
        (None, OK, ALARM, AT_ONCE, Next(None, acts=True)),
        (None, OK, ALARM, IDLE, Next(Suppression(BY_WAIT, OK, 110), acts=False)),
        (None, OK, ALARM, ON, Next(Suppression(BY_ALARM, OK), acts=False)),
        (None, ALARM, OK, IDLE, Next(None, acts=True)),
        (None, ALARM, OK, ON, Next(Suppression(BY_ALARM, ALARM), acts=False)),
        (Suppression(BY_WAIT, OK, 110), ALARM, ALARM, IDLE, Next(Suppression(BY_WAIT, OK, 110), acts=False)),
        (Suppression(BY_WAIT, OK, 100), ALARM, ALARM, IDLE, Next(None, acts=True)),
        (Suppression(BY_WAIT, OK, 110), ALARM, OK, IDLE, Next(None, acts=False)),
        (Suppression(BY_WAIT, OK, 110), ALARM, ALARM, ON, Next(Suppression(BY_ALARM, OK), acts=False)),
        (Suppression(BY_ALARM, OK), ALARM, ALARM, ON, Next(Suppression(BY_ALARM, OK), acts=False)),
        (Suppression(BY_ALARM, OK), ALARM, ALARM, IDLE, Next(Suppression(BY_EXTENSION, OK, 120), acts=False)),
        (Suppression(BY_ALARM, OK), ALARM, ALARM, AT_ONCE, Next(None, acts=True)),
        (Suppression(BY_ALARM, OK), ALARM, OK, AT_ONCE, Next(None, acts=False)),
        (Suppression(BY_EXTENSION, OK, 100), ALARM, ALARM, IDLE, Next(None, acts=True)),
        (Suppression(BY_EXTENSION, OK, 100), OK, OK, IDLE, Next(None, acts=False)),
        (Suppression(BY_EXTENSION, OK, 120), ALARM, ALARM, ON, Next(Suppression(BY_ALARM, OK), acts=False)),
    ],
)
def test_suppression(
    current: Suppression | None, before: str, state: str, suppressor: Suppressor, found: Next
) -> None:
    assert follow(current, before, state, suppressor, now=100) == found


# ---- alarms ----------------------------------------------------------------------------------------------------


async def put(stage: Stage, rule: str, name: str = "both", **params: Any) -> None:
    await stage.watch("PutCompositeAlarm", AlarmName=name, AlarmRule=rule, **params)


async def set_state(stage: Stage, name: str, value: str) -> None:
    await stage.watch("SetAlarmState", AlarmName=name, StateValue=value, StateReason="by hand")
    await stage.advance(0)


async def children(stage: Stage, *names: str) -> None:
    for name in names:
        await stage.alarm(name, TreatMissingData="ignore")


async def test_a_composite_alarm_follows_the_alarms_in_its_rule(stage: Stage) -> None:
    await children(stage, "a", "b")
    await put(stage, f'ALARM("{PREFIX}a") OR ALARM(b)')
    found = await stage.described("both", COMPOSITE)
    assert (found["StateValue"], found["StateReason"]) == (
        "OK",
        f"{PREFIX}both was created and its alarm rule evaluates to OK",
    )
    await stage.advance(57)
    await set_state(stage, "b", "ALARM")
    found = await stage.described("both", COMPOSITE)
    assert (found["StateValue"], found["StateReason"]) == (
        "ALARM",
        f"{PREFIX}b transitioned to ALARM at Thursday 01 January, 2026 00:00:57 UTC",
    )
    triggering = {
        "arn": f"{PREFIX}b",
        "state": {"value": "ALARM", "timestamp": "2026-01-01T00:00:57.000+0000"},
    }
    assert found["StateReasonData"] == orjson.dumps({"triggeringAlarms": [triggering]}).decode()
    await set_state(stage, "a", "ALARM")  # changes nothing
    assert await stage.described("both", COMPOSITE) == found
    for name in ("a", "b"):
        await set_state(stage, name, "OK")
    assert await stage.state("both", COMPOSITE) == "OK"
    history = await stage.history("both", "StateUpdate", AlarmTypes=[COMPOSITE])
    assert [item["HistorySummary"] for item in history] == [
        "Alarm updated from ALARM to OK",
        "Alarm updated from OK to ALARM",
        "Alarm updated from INSUFFICIENT_DATA to OK",
    ]


async def test_a_composite_alarm_follows_evaluations_and_other_composites(stage: Stage) -> None:
    await stage.alarm("a")
    await put(stage, "ALARM(a)", "inner")
    await put(stage, "ALARM(inner)", "outer")
    await stage.put(Value=1.0)
    await stage.advance(60)
    assert await stage.state("outer", COMPOSITE) == "ALARM"
    found = await stage.watch("DescribeAlarms", ChildrenOfAlarmName="outer")
    assert [alarm["AlarmName"] for alarm in found["CompositeAlarms"]] == ["inner"]
    found = await stage.watch("DescribeAlarms", ParentsOfAlarmName="a")
    assert [(alarm["AlarmName"], alarm["AlarmRule"]) for alarm in found["CompositeAlarms"]] == [
        ("inner", "ALARM(a)")
    ]


async def test_the_notification_of_a_composite_alarm(stage: Stage) -> None:
    topic = await stage.topic()
    told = await stage.told(topic)
    await children(stage, "a")
    await put(stage, "ALARM(a)", AlarmActions=[topic], AlarmDescription="why")
    await set_state(stage, "a", "ALARM")
    (message,) = await stage.received(told)
    moment = "2026-01-01T00:00:00.000+0000"
    assert (
        message
        == orjson.dumps(
            {
                "AlarmName": "both",
                "AlarmDescription": "why",
                "AWSAccountId": ACCOUNT,
                "AlarmConfigurationUpdatedTimestamp": moment,
                "NewStateValue": "ALARM",
                "NewStateReason": f"{PREFIX}a transitioned to ALARM at Thursday 01 January, 2026 00:00:00 UTC",
                "StateChangeTime": moment,
                "Region": "US East (N. Virginia)",
                "AlarmArn": f"{PREFIX}both",
                "OKActions": [],
                "AlarmActions": [topic],
                "InsufficientDataActions": [],
                "OldStateValue": "OK",
                "AlarmRule": "ALARM(a)",
                "TriggeringChildren": [
                    {"Arn": f"{PREFIX}a", "State": {"Value": "ALARM", "Timestamp": moment}}
                ],
            }
        ).decode()
    )


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"rule": "ALARM(a) AND"}, "AlarmRule must be a valid expression"),
        ({"rule": "ALARM(x) OR ALARM(a)"}, r"because alarms \[x\] in the alarm rule do not exist"),
        ({"rule": "ALARM(inner)"}, "leads back to itself"),
        ({"rule": "ALARM(both)"}, "leads back to itself"),
        ({"rule": "ALARM(a)", "ActionsSuppressor": "a"}, "needs ActionsSuppressorWaitPeriod"),
        ({"rule": "ALARM(a)", "ActionsSuppressorWaitPeriod": 1}, "go with ActionsSuppressor alone"),
        (
            {
                "rule": "ALARM(a)",
                "ActionsSuppressor": "x",
                "ActionsSuppressorWaitPeriod": 1,
                "ActionsSuppressorExtensionPeriod": 1,
            },
            r"the suppressor \[x\] does not exist",
        ),
        ({"rule": "ALARM(a)", "AlarmActions": ["x"]}, "Invalid arn syntax"),
    ],
)
async def test_impossible_rules_are_refused(stage: Stage, params: dict[str, Any], text: str) -> None:
    await children(stage, "a")
    await put(stage, "ALARM(a)")
    await put(stage, "ALARM(both)", "inner")
    with pytest.raises(AwsError, match=text):
        await put(stage, **params)
    assert (await stage.described("both", COMPOSITE))["AlarmRule"] == "ALARM(a)"


async def test_actions_wait_for_another_alarm_and_are_kept_back_by_it(stage: Stage) -> None:
    topic = await stage.topic()
    told = await stage.told(topic)
    await children(stage, "a", "maintenance")
    await put(
        stage,
        "ALARM(a)",
        AlarmActions=[topic],
        OKActions=[topic],
        ActionsSuppressor="maintenance",
        ActionsSuppressorWaitPeriod=120,
        ActionsSuppressorExtensionPeriod=60,
    )
    await stage.advance(0)
    assert len(await stage.received(told)) == 1  # of its creation
    await set_state(stage, "a", "ALARM")
    assert (await stage.described("both", COMPOSITE))["ActionsSuppressedBy"] == "WaitPeriod"
    await stage.advance(60)
    await set_state(stage, "maintenance", "ALARM")
    found = await stage.described("both", COMPOSITE)
    assert (found["ActionsSuppressedBy"], found["ActionsSuppressedReason"]) == (
        "Alarm",
        "Actions suppressed by maintenance",
    )
    await stage.advance(600)
    assert await stage.received(told) == []
    await set_state(stage, "maintenance", "OK")
    assert (await stage.described("both", COMPOSITE))["ActionsSuppressedBy"] == "ExtensionPeriod"
    await stage.advance(60)
    (message,) = await stage.received(told)
    assert orjson.loads(message)["NewStateValue"] == "ALARM"
    assert "ActionsSuppressedBy" not in await stage.described("both", COMPOSITE)
    await set_state(stage, "a", "OK")
    assert [orjson.loads(message)["NewStateValue"] for message in await stage.received(told)] == ["OK"]


async def test_an_alarm_made_anew_in_the_moment_of_its_deletion_has_its_own_history(stage: Stage) -> None:
    for _ in range(3):
        await stage.watch("PutCompositeAlarm", AlarmName="c", AlarmRule="TRUE")
        await stage.watch("DeleteAlarms", AlarmNames=["c"])
    told = await stage.watch("DescribeAlarmHistory", AlarmName="c", AlarmTypes=[COMPOSITE])
    assert [item["HistorySummary"] for item in told["AlarmHistoryItems"]] == [
        *('Alarm "c" deleted', "Alarm updated from INSUFFICIENT_DATA to ALARM", 'Alarm "c" created'),
    ] * 3
