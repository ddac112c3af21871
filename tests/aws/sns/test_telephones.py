"""Numbers that may be written to, and the memory of it, with an endpoint that takes everything behind."""

import logging
from decimal import Decimal
from typing import Any

import pytest

from redrive.aws.sns.parts import text_messages
from redrive.aws.sns.sms.telephones import CORRESPONDENT, OPT_OUT, SPENT, STOP_WORDS, Telephones
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.errors import StoreUnavailable
from tests.aws.sns.stage import ACCOUNT, DAY_MS, OTHER, REGION, Recorder, Stage, invalid

QUEUE_RECORD = "+493012345678"


class Telephoned(Recorder):
    """Takes everything, or what it is told to say."""

    def __init__(self) -> None:
        super().__init__()
        self.says: Attempt | None = None
        self.attempts: list[Attempt] = []

    async def push(self, push_request: Any) -> Attempt:
        attempt = await super().push(push_request)
        return self.says or attempt


@pytest.fixture
def gateway(stage: Stage) -> Telephoned:
    """The endpoint behind `Telephones`, at 0.25 USD a part."""
    gateway = Telephoned()
    telephones = Telephones(gateway, stage.engine.resources.documents, stage.clock.now, Decimal("0.25"))
    stage.push_to("sms", telephones)
    return gateway


def telephones(stage: Stage) -> Telephones:
    found = stage.endpoints["sms"]
    assert isinstance(found, Telephones)
    return found


async def publish(stage: Stage, text: str = "m", **params: Any) -> None:
    await stage.call("Publish", PhoneNumber=QUEUE_RECORD, Message=text, **params)
    await stage.advance(0)


async def spent(stage: Stage) -> Decimal:
    found = await stage.engine.resources.documents.get(SPENT, f"{ACCOUNT}/{REGION}")
    return Decimal(0) if found is None else found.usd


async def test_a_text_message_carries_its_account_type_and_sender(stage: Stage, gateway: Telephoned) -> None:
    await publish(stage)
    (push_request,) = gateway.push_requests
    message_id = push_request.headers["Message-ID"].removesuffix(".direct")
    assert len(message_id) == 36
    assert push_request.headers == {
        "Account": ACCOUNT,
        "Region": REGION,
        "Type": "Promotional",
        "Priority": "0",
        "Sender": "",
        "Message-ID": f"{message_id}.direct",
    }


async def test_a_verification_code_is_urgent(stage: Stage, gateway: Telephoned) -> None:
    await stage.call("CreateSMSSandboxPhoneNumber", PhoneNumber=QUEUE_RECORD)
    await stage.advance(0)
    assert gateway.push_requests[0].headers["Type"] == "Transactional"


async def test_without_a_gateway_it_is_a_client_error(stage: Stage) -> None:
    nobody = Telephones(None, stage.engine.resources.documents, stage.clock.now, Decimal(0))
    headers = {"Account": ACCOUNT, "Region": REGION, "Type": "Promotional"}
    attempt = await nobody.push(PushRequest(QUEUE_RECORD, b"x" * 161, "text/plain", headers, 1000))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.MISSING)
    assert dict(attempt.identifiers) == {"type": "Promotional", "parts": "2", "price": "0"}
    await nobody.close()


# ---- stop ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*sorted(STOP_WORDS), "stop", " Stop!\n", '"arrêt"'])
async def test_words_that_opt_out(stage: Stage, gateway: Telephoned, text: str) -> None:
    await publish(stage)
    await telephones(stage).receive(QUEUE_RECORD, text)
    assert await stage.call("ListPhoneNumbersOptedOut") == {"phoneNumbers": [QUEUE_RECORD]}


@pytest.mark.parametrize("text", ["", "stop it", "please stop", "START", "unstop", "ENDE"])
async def test_other_words_do_not_opt_out(stage: Stage, gateway: Telephoned, text: str) -> None:
    await publish(stage)
    await telephones(stage).receive(QUEUE_RECORD, text)
    assert await stage.call("ListPhoneNumbersOptedOut") == {"phoneNumbers": []}


async def test_an_account_that_never_wrote_is_not_told_of_an_opt_out(
    stage: Stage, gateway: Telephoned, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await publish(stage)
    await telephones(stage).receive(QUEUE_RECORD, "STOP")
    assert f"sms.opted_out number={QUEUE_RECORD} accounts=1" in caplog.text
    assert (await stage.call("ListPhoneNumbersOptedOut", account=OTHER))["phoneNumbers"] == []
    await stage.call("Publish", account=OTHER, PhoneNumber=QUEUE_RECORD, Message="m")
    await stage.advance(0)
    assert len(gateway.push_requests) == 2
    longer = QUEUE_RECORD + "1"
    await telephones(stage).receive(longer, "STOP")  # another number, which begins alike
    assert await stage.call("CheckIfPhoneNumberIsOptedOut", phoneNumber=longer) == {"isOptedOut": False}


async def test_a_number_is_the_same_without_its_plus(stage: Stage, gateway: Telephoned) -> None:
    await publish(stage)
    await telephones(stage).receive(QUEUE_RECORD, "STOP")
    bare = QUEUE_RECORD.removeprefix("+")
    assert await stage.call("CheckIfPhoneNumberIsOptedOut", phoneNumber=bare) == {"isOptedOut": True}
    with invalid("PhoneNumber Reason: phone number is opted out"):
        await stage.call("Publish", PhoneNumber=bare, Message="m")
    await stage.call("OptInPhoneNumber", phoneNumber=bare)
    await publish(stage)
    assert len(gateway.push_requests) == 2


async def test_a_message_that_waits_when_its_number_opts_out_is_not_sent(
    stage: Stage, gateway: Telephoned
) -> None:
    gateway.says = Attempt(AttemptResult.FAILED, Reason.THROTTLED, 429, "", 1)
    await publish(stage)
    await telephones(stage).receive(QUEUE_RECORD, "STOP")
    await stage.advance(DAY_MS)
    assert len(gateway.push_requests) == 1


async def test_pages_of_numbers(stage: Stage) -> None:
    for number in range(101):
        key = f"{ACCOUNT}/{REGION}/4930000{number:03}"
        await stage.engine.resources.documents.create(OPT_OUT, key, f"+4930000{number:03}")
    first = await stage.call("ListPhoneNumbersOptedOut")
    rest = await stage.call("ListPhoneNumbersOptedOut", nextToken=first["nextToken"])
    assert (first["phoneNumbers"][-1], rest["phoneNumbers"]) == ("+4930000099", ["+4930000100"])


# ---- what it costs ---------------------------------------------------------------------------------------------------


async def test_only_what_was_taken_costs(stage: Stage, gateway: Telephoned) -> None:
    gateway.says = Attempt(AttemptResult.REFUSED, Reason.CLIENT_ERROR, 400, "", 1)
    await publish(stage)
    assert await spent(stage) == 0
    gateway.says = None
    await publish(stage, "x" * 161)
    assert await spent(stage) == Decimal("0.5")


async def test_a_month_has_its_own_limit(stage: Stage, gateway: Telephoned) -> None:
    for _ in range(5):
        await publish(stage)
    assert len(gateway.push_requests) == 4  # a dollar
    await stage.call("SetSMSAttributes", attributes={"MonthlySpendLimit": "2"})
    await publish(stage)
    assert await spent(stage) == Decimal("1.25")
    await stage.advance(31 * DAY_MS)
    await publish(stage)
    assert await spent(stage) == Decimal("0.25")


async def test_a_sent_message_is_not_sent_again_because_its_price_could_not_be_written(
    stage: Stage, gateway: Telephoned, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_or_create = stage.engine.resources.documents.update_or_create

    async def away(kind: Any, *others: Any) -> Any:
        if kind is SPENT:
            raise StoreUnavailable("away")
        return await update_or_create(kind, *others)

    monkeypatch.setattr(stage.engine.resources.documents, "update_or_create", away)
    await publish(stage)
    await stage.advance(DAY_MS)
    assert len(gateway.push_requests) == 1
    assert "sms.spent_unwritten" in caplog.text


async def test_a_long_message_of_a_topic_is_no_text_message(stage: Stage, gateway: Telephoned) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, "sms", QUEUE_RECORD)
    await stage.call("SetSMSAttributes", attributes={"MonthlySpendLimit": "10"})
    for length in (1600, 1601):
        await stage.publish(topic, "x" * length)
    await stage.advance(DAY_MS)
    assert [len(push_request.body) for push_request in gateway.push_requests] == [1600]


async def test_a_reset_forgets_all_of_it(stage: Stage, gateway: Telephoned) -> None:
    assert {CORRESPONDENT, SPENT, OPT_OUT} <= set(text_messages(stage.engine).kinds)
