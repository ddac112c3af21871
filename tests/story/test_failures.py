"""Each failure of the application, injected: where the order ends, in which form, and what tells of it.

Each test is a row of the table in `docs/explanation/where-failures-end.md`.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from redrive.cli.demo_story import (
    BILLING,
    BILLING_DLQ,
    BILLING_FANOUT_DLQ,
    DLQS,
    FULFILMENT,
    FULFILMENT_DLQ,
    FULFILMENT_FANOUT_DLQ,
)
from tests.aws.cloudformation.stage import ACCOUNT, REGION
from tests.story.rental_car import RentalCar, allows, arn_of, order_in, rental_car, template, url_of

HOUR = 3600
_FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{BILLING}"


@pytest.fixture
async def car() -> AsyncIterator[RentalCar]:
    async with rental_car() as made:
        yield made


async def letter_in(car: RentalCar, queue: str) -> Any:
    """The one dead letter that there is, which is in this queue."""
    found = {name: await car.receive(name) for name in DLQS}
    assert [name for name, letters in found.items() if letters] == [queue]
    (letter,) = found[queue]
    return letter


async def rings(car: RentalCar, *queues: str) -> bool:
    """True if the alarms of these queues ring, no other does, and whoever is on call has heard them."""
    await car.at.advance(300)
    return sorted(await car.ringing()) == sorted(queues) == sorted(await car.heard())


async def test_all_goes_well_and_drafts_are_filtered(car: RentalCar) -> None:
    answers = [await car.order(1), await car.order(2, "canceled"), await car.order(3, "draft")]
    assert [status for status, _ in answers] == [200, 200, 200]
    await car.at.advance(1)
    assert sorted(await car.fulfil()) == ["order-1", "order-2"]
    assert sorted(await car.billed()) == ["order-1", "order-2", "order-3"]
    assert await car.of_topic("NumberOfNotificationsFilteredOut") == 1
    assert await car.of_topic("NumberOfNotificationsFilteredOut-MessageAttributes") == 1
    delivered = [entry["status"] for entry in await car.logged()]
    assert delivered == ["SUCCESS"] * 5
    assert [await car.receive(queue) for queue in DLQS] == [[], [], [], []]
    assert await rings(car)


# ---- fulfilment ------------------------------------------------------------------------------------------------------


async def _delete_queue(car: RentalCar) -> None:
    await car.at.ask("sqs", "DeleteQueue", QueueUrl=url_of(FULFILMENT))


async def _deny_topic(car: RentalCar) -> None:
    policy = allows("sns.amazonaws.com", "sqs:SendMessage", arn_of(FULFILMENT))
    policy["Statement"][0]["Condition"] = {"ArnEquals": {"aws:SourceArn": f"{car.outputs['Topic']}-other"}}
    await _set(car, FULFILMENT, Policy=json.dumps(policy))


async def _disable_key(car: RentalCar) -> None:
    """Give the queue a key of its own that is disabled, as the application's own would stop the topic as well."""
    policy = json.dumps(allows("*", "kms:*", "*"))
    key = (await car.at.ask("kms", "CreateKey", Policy=policy))["KeyMetadata"]["KeyId"]
    await _set(car, FULFILMENT, KmsMasterKeyId=key)
    await car.at.ask("kms", "DisableKey", KeyId=key)


async def _set(car: RentalCar, queue: str, **attributes: str) -> None:
    await car.at.ask("sqs", "SetQueueAttributes", QueueUrl=url_of(queue), Attributes=attributes)


@pytest.mark.parametrize(
    ("break_it", "status", "code"),
    [
        (_delete_queue, 400, "AWS.SimpleQueueService.NonExistentQueue"),
        (_deny_topic, 403, "AccessDenied"),
        (_disable_key, 400, "KMS.DisabledException"),
    ],
    ids=["deleted", "denied", "key disabled"],
)
async def test_fulfilment_cannot_be_reached(car: RentalCar, break_it: Any, status: int, code: str) -> None:
    await break_it(car)
    assert (await car.order(1))[0] == 200
    await car.at.advance(1)
    letter = await letter_in(car, FULFILMENT_FANOUT_DLQ)
    envelope = json.loads(letter["Body"])
    assert (envelope["Type"], order_in(envelope["Message"])) == ("Notification", "order-1")
    assert envelope["MessageAttributes"]["order-status"]["Value"] == "confirmed"
    (failed,) = await car.logged("/Failure")
    told = json.loads(failed["delivery"]["providerResponse"])["ErrorCode"]
    assert (failed["delivery"]["statusCode"], failed["delivery"]["attempts"], told) == (status, 1, code)
    redriven = [entry["delivery"] for entry in await car.logged()]
    assert (arn_of(FULFILMENT_FANOUT_DLQ), 200) in [
        (delivery["destination"], delivery["statusCode"]) for delivery in redriven
    ]
    assert await car.of_topic("NumberOfNotificationsFailed") == 1
    assert await car.of_topic("NumberOfNotificationsRedrivenToDlq") == 1
    assert await car.of_queue(FULFILMENT_FANOUT_DLQ, "NumberOfMessagesSent") == 1
    assert await car.billed() == ["order-1"]
    assert await rings(car, FULFILMENT_FANOUT_DLQ)


async def test_fulfilment_cannot_process_an_order(car: RentalCar) -> None:
    await car.order(1, car="unicycle", status="canceled")
    await car.at.advance(1)
    ids = set()
    for _ in range(3):
        (message,) = await car.receive()
        ids.add(message["MessageId"])
        await car.at.advance(31)  # the visibility timeout
    assert await car.receive() == []
    letter = await letter_in(car, FULFILMENT_DLQ)
    assert {letter["MessageId"]} == ids
    assert letter["Attributes"]["DeadLetterQueueSourceArn"] == arn_of(FULFILMENT)
    assert await car.of_queue(FULFILMENT_DLQ, "NumberOfMessagesSent") == 0
    assert await car.logged("/Failure") == []
    assert await rings(car, FULFILMENT_DLQ)


async def test_the_queue_of_unreachable_orders_is_gone_too(car: RentalCar) -> None:
    await _delete_queue(car)
    await car.at.ask("sqs", "DeleteQueue", QueueUrl=url_of(FULFILMENT_FANOUT_DLQ))
    await car.order(1)
    await car.at.advance(HOUR)
    assert await car.of_topic("NumberOfNotificationsFailedToRedriveToDlq") == 1
    assert await car.billed() == ["order-1"]


# ---- billing ---------------------------------------------------------------------------------------------------------


async def _delete_function(car: RentalCar) -> None:
    await car.at.ask("lambda", "DeleteFunction", FunctionName=BILLING)


async def _remove_permission(car: RentalCar) -> None:
    policy = await car.at.ask("lambda", "GetPolicy", FunctionName=BILLING)
    (statement,) = json.loads(policy["Policy"])["Statement"]
    named = {"FunctionName": BILLING, "StatementId": statement["Sid"]}
    await car.at.ask("lambda", "RemovePermission", **named)
    allowed = {"Action": statement["Action"], "Principal": "sns.amazonaws.com"}
    other = f"{car.outputs['Topic']}-other"
    await car.at.ask("lambda", "AddPermission", **named, **allowed, SourceArn=other)


@pytest.mark.parametrize(
    ("break_it", "status", "code"),
    [
        (_delete_function, 404, "ResourceNotFoundException"),
        (_remove_permission, 403, "AccessDeniedException"),
    ],
    ids=["deleted", "permission removed"],
)
async def test_billing_cannot_be_reached(car: RentalCar, break_it: Any, status: int, code: str) -> None:
    await break_it(car)
    await car.order(1)
    await car.at.advance(1)
    letter = await letter_in(car, BILLING_FANOUT_DLQ)
    envelope = json.loads(letter["Body"])
    assert (envelope["Type"], order_in(envelope["Message"])) == ("Notification", "order-1")
    (failed,) = await car.logged("/Failure")
    told = json.loads(failed["delivery"]["providerResponse"])["ErrorCode"]
    assert (failed["delivery"]["destination"], failed["delivery"]["statusCode"], told) == (
        _FUNCTION,
        status,
        code,
    )
    assert await car.of_topic("NumberOfNotificationsFailed") == 1
    assert await car.of_topic("NumberOfNotificationsRedrivenToDlq") == 1
    assert await car.fulfil() == ["order-1"]
    assert await rings(car, BILLING_FANOUT_DLQ)


_BUSY = """
import os

def handler(event, context):
    with open(os.environ["PIPE"]) as pipe:
        pipe.read()
"""
_FAILING = """
import json, os

def handler(event, context):
    car = json.loads(event["Records"][0]["Sns"]["Message"])["car"]
    if car == "exits":
        os._exit(3)
    if car == "hangs":
        os.read(os.pipe()[0], 1)
    raise OSError("the billing system is away")
"""


async def test_billing_fails(car: RentalCar) -> None:
    changed = template(_FAILING, Timeout=1)
    stack = await car.at.update("rental", changed)
    assert stack["StackStatus"] == "UPDATE_COMPLETE"
    for number, fault in enumerate(("raises", "exits", "hangs")):
        await car.order(number, car=fault)
    await car.at.advance(181)
    letters = await car.receive(BILLING_DLQ)
    texts = {}
    for letter in letters:
        order = json.loads(json.loads(letter["Body"])["Records"][0]["Sns"]["Message"])
        attributes = {name: value["StringValue"] for name, value in letter["MessageAttributes"].items()}
        assert attributes.keys() == {"RequestID", "ErrorCode", "ErrorMessage"}
        assert attributes["ErrorCode"] == "200"
        texts[order["car"]] = attributes["ErrorMessage"]
    assert texts["raises"] == "the billing system is away"
    assert texts["exits"].endswith("Runtime exited with error: exit status 3")
    assert texts["hangs"].endswith("Task timed out after 1.00 seconds")
    assert (await car.of_billing("Invocations"), await car.of_billing("Errors")) == (9, 9)
    told = [(entry["status"], entry["delivery"]["statusCode"]) for entry in await car.logged()]
    assert told.count(("SUCCESS", 202)) == 3
    assert await rings(car, BILLING_DLQ)


async def test_billing_is_switched_off(car: RentalCar) -> None:
    await car.at.ask("lambda", "PutFunctionConcurrency", FunctionName=BILLING, ReservedConcurrentExecutions=0)
    await car.order(1)
    await car.at.advance(1)
    letter = await letter_in(car, BILLING_DLQ)
    assert order_in(json.loads(letter["Body"])["Records"][0]["Sns"]["Message"]) == "order-1"
    assert letter["MessageAttributes"]["ErrorCode"]["StringValue"] == "429"
    assert (await car.of_billing("Invocations"), await car.of_billing("AsyncEventsDropped")) == (0, 1)
    assert await rings(car, BILLING_DLQ)


async def test_billing_is_busy_for_hours(car: RentalCar, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    variables = {"Variables": {"PIPE": str(pipe)}}
    await car.at.update("rental", template(_BUSY, Timeout=900, Environment=variables))
    named = {"FunctionName": BILLING}
    await car.at.ask("lambda", "PutFunctionConcurrency", **named, ReservedConcurrentExecutions=1)
    holding = asyncio.ensure_future(car.at.ask("lambda", "Invoke", **named, Payload=b"{}"))
    opened = await asyncio.to_thread(pipe.open, "w")  # opens when the function reads
    with opened:
        await car.order(1)
        await car.at.advance(6 * HOUR - 300)
        assert await car.receive(BILLING_DLQ) == []
        await car.at.advance(300)
    await holding
    letter = await letter_in(car, BILLING_DLQ)
    assert letter["MessageAttributes"]["ErrorCode"]["StringValue"] == "429"
    assert (await car.of_billing("Throttles"), await car.of_billing("AsyncEventsDropped")) == (80, 1)


async def test_lambda_is_out_of_order_for_an_hour(car: RentalCar) -> None:
    """Server errors are retried for 23 days, 100,015 times, of which an hour is waited for here."""
    faults = car.at.server.core.engine.operations
    faults.inject_fault(_FUNCTION, 503)
    await car.order(1)
    await car.at.advance(HOUR)
    assert [await car.receive(queue) for queue in DLQS] == [[], [], [], []]
    faults.clear_fault(_FUNCTION)
    await car.at.advance(20)
    assert await car.billed() == ["order-1"]
    (told,) = [
        entry["delivery"] for entry in await car.logged() if entry["delivery"]["destination"] == _FUNCTION
    ]
    assert HOUR * 1000 <= told["dwellTimeMs"] <= (HOUR + 20) * 1000


# ---- the front door --------------------------------------------------------------------------------------------------


async def test_roles_may_do_what_they_must_and_without_its_own_the_front_door_may_not_publish() -> None:
    async with rental_car("required") as car:
        assert (await car.order(1))[0] == 200
        await car.at.advance(1)
        assert (await car.fulfil(), await car.billed()) == (["order-1"], ["order-1"])
        role = (await car.at.resources("rental"))["ApiRole"]["PhysicalResourceId"]
        await car.at.ask("iam", "DeleteRolePolicy", RoleName=role, PolicyName="publish")
        status, answer = await car.order(2)
        assert (status, "is not authorized to perform: SNS:Publish" in answer["refused"]) == (400, True)
        await car.at.advance(1)
        assert await car.of_topic("NumberOfMessagesPublished") == 1


async def test_an_order_that_is_none_is_refused_at_the_door(car: RentalCar) -> None:
    status, answer = await car.order(1, status="perhaps")
    assert (status, answer) == (400, {"message": "Invalid request body"})
    assert await car.of_topic("NumberOfMessagesPublished") == 0
