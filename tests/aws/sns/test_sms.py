import re

import pytest

from redrive.aws.sns.sms.telephones import OPT_OUT, key_of
from tests.aws.sns.stage import ACCOUNT, REGION, Stage, invalid, refused

QUEUE_RECORD = "+33000000000"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/sms"


class TestPublish:
    async def test_a_text_message_is_a_delivery(self, stage: Stage) -> None:
        await stage.call("Publish", PhoneNumber=QUEUE_RECORD, Message="This is a SMS")
        await stage.advance(0)
        (push_request,) = stage.endpoints["sms"].push_requests
        assert (push_request.endpoint, push_request.body) == (QUEUE_RECORD, b"This is a SMS")
        assert (await stage.call("ListTopics"))["Topics"] == []

    async def test_a_text_message_has_a_length(self, stage: Stage) -> None:
        await stage.call("Publish", PhoneNumber=QUEUE_RECORD, Message="x" * 1600)
        with invalid("Message too long"):
            await stage.call("Publish", PhoneNumber=QUEUE_RECORD, Message="x" * 1601)


class TestOptOuts:
    async def _opted_out(self, stage: Stage) -> None:
        await stage.engine.resources.documents.create(
            OPT_OUT, key_of(ACCOUNT, REGION, QUEUE_RECORD), QUEUE_RECORD
        )

    async def test_an_owner_can_be_written_to_again(self, stage: Stage) -> None:
        await self._opted_out(stage)
        assert await stage.call("ListPhoneNumbersOptedOut") == {"phoneNumbers": [QUEUE_RECORD]}
        assert await stage.call("CheckIfPhoneNumberIsOptedOut", phoneNumber=QUEUE_RECORD) == {
            "isOptedOut": True
        }
        with invalid("PhoneNumber Reason: phone number is opted out"):
            await stage.call("Publish", PhoneNumber=QUEUE_RECORD, Message="m")
        assert await stage.call("OptInPhoneNumber", phoneNumber=QUEUE_RECORD) == {}
        assert await stage.call("CheckIfPhoneNumberIsOptedOut", phoneNumber=QUEUE_RECORD) == {
            "isOptedOut": False
        }
        assert await stage.call("ListPhoneNumbersOptedOut") == {"phoneNumbers": []}
        await stage.call("Publish", PhoneNumber=QUEUE_RECORD, Message="m")

    @pytest.mark.parametrize("operation", ["CheckIfPhoneNumberIsOptedOut", "OptInPhoneNumber"])
    async def test_a_number_must_be_one(self, stage: Stage, operation: str) -> None:
        with invalid("PhoneNumber Reason: input incorrectly formatted"):
            await stage.call(operation, phoneNumber=f"{QUEUE_RECORD}x")


class TestAttributes:
    async def test_a_set_attribute_is_shown(self, stage: Stage) -> None:
        assert await stage.call("GetSMSAttributes") == {"attributes": {"MonthlySpendLimit": "1"}}
        given = {
            "DeliveryStatusIAMRole": ROLE,
            "DeliveryStatusSuccessSamplingRate": "50",
            "DefaultSenderID": "test2",
            "DefaultSMSType": "Promotional",
        }
        await stage.call("SetSMSAttributes", attributes=given)
        await stage.call("SetSMSAttributes", attributes={"DefaultSMSType": "Transactional"})
        shown = (await stage.call("GetSMSAttributes"))["attributes"]
        assert shown == {**given, "DefaultSMSType": "Transactional", "MonthlySpendLimit": "1"}
        one = await stage.call("GetSMSAttributes", attributes=["DefaultSenderID", "Unknown"])
        assert one == {"attributes": {"DefaultSenderID": "test2"}}

    @pytest.mark.parametrize(
        ("name", "value", "text"),
        [
            ("Colour", "blue", "Colour is not a valid attribute"),
            ("DefaultSMSType", "Cheap", "DefaultSMSType is invalid"),
            ("DefaultSenderID", "testSenderID", "DefaultSenderID is invalid"),
            ("DefaultSenderID", "12345", "DefaultSenderID is invalid"),
            (
                "DeliveryStatusSuccessSamplingRate",
                "101",
                "DeliveryStatusSuccessSamplingRate is not an integer between 0-100",
            ),
            ("DeliveryStatusIAMRole", "me", "DeliveryStatusIAMRole is invalid"),
            ("MonthlySpendLimit", "much", "MonthlySpendLimit is invalid"),
            (
                "UsageReportS3Bucket",
                "bucket",
                "Invalid parameter: UsageReportS3Bucket Reason: The bucket you provided does not exist",
            ),
        ],
    )
    async def test_an_invalid_attribute_is_refused(
        self, stage: Stage, name: str, value: str, text: str
    ) -> None:
        with refused("InvalidParameter", text):
            await stage.call("SetSMSAttributes", attributes={"DefaultSMSType": "Promotional", name: value})
        assert await stage.call("GetSMSAttributes") == {"attributes": {"MonthlySpendLimit": "1"}}


class TestSandbox:
    async def test_a_number_is_verified_by_the_code_it_gets(self, stage: Stage) -> None:
        assert await stage.call("GetSMSSandboxAccountStatus") == {"IsInSandbox": False}
        await stage.call("CreateSMSSandboxPhoneNumber", PhoneNumber=QUEUE_RECORD)
        listed = await stage.call("ListSMSSandboxPhoneNumbers")
        assert listed == {"PhoneNumbers": [{"PhoneNumber": QUEUE_RECORD, "Status": "Pending"}]}
        await stage.advance(0)
        found = re.search(r"\d{6}", stage.endpoints["sms"].push_requests[-1].body.decode())
        assert found
        wrong = f"{(int(found[0]) + 1) % 10**6:06d}"
        with refused("VerificationException", "The one-time password is not the one that was sent"):
            await stage.call("VerifySMSSandboxPhoneNumber", PhoneNumber=QUEUE_RECORD, OneTimePassword=wrong)
        await stage.call("VerifySMSSandboxPhoneNumber", PhoneNumber=QUEUE_RECORD, OneTimePassword=found[0])
        listed = await stage.call("ListSMSSandboxPhoneNumbers")
        assert listed == {"PhoneNumbers": [{"PhoneNumber": QUEUE_RECORD, "Status": "Verified"}]}
        await stage.call("DeleteSMSSandboxPhoneNumber", PhoneNumber=QUEUE_RECORD)
        assert await stage.call("ListSMSSandboxPhoneNumbers") == {"PhoneNumbers": []}

    async def test_a_number_must_be_there(self, stage: Stage) -> None:
        for operation in ("DeleteSMSSandboxPhoneNumber", "VerifySMSSandboxPhoneNumber"):
            with refused("ResourceNotFound", "The phone number is not there", 404):
                await stage.call(operation, PhoneNumber=QUEUE_RECORD, OneTimePassword="123456")

    @pytest.mark.parametrize("number", ["invalid phone number", "1234567890"])
    async def test_a_number_must_be_one(self, stage: Stage, number: str) -> None:
        pattern = r"^(\+[0-9]{8,}|[0-9]{0,9})$"
        text = (
            f"1 validation error detected: Value '{number}' at 'phoneNumber' failed to satisfy constraint:"
            f" Member must satisfy regular expression pattern: {pattern}"
        )
        with refused("ValidationError", text):
            await stage.call("CreateSMSSandboxPhoneNumber", PhoneNumber=number)

    async def test_ten_numbers_are_enough(self, stage: Stage) -> None:
        for number in range(10):
            await stage.call("CreateSMSSandboxPhoneNumber", PhoneNumber=f"+4930000000{number}")
        with refused("UserError", "An account has at most 10 destination numbers"):
            await stage.call("CreateSMSSandboxPhoneNumber", PhoneNumber=QUEUE_RECORD)
        await stage.call("CreateSMSSandboxPhoneNumber", PhoneNumber="+49300000009")  # another code
        first = await stage.call("ListSMSSandboxPhoneNumbers", MaxResults=6)
        rest = await stage.call("ListSMSSandboxPhoneNumbers", NextToken=first["NextToken"])
        assert (len(first["PhoneNumbers"]), len(rest["PhoneNumbers"])) == (6, 4)

    async def test_the_list_of_origination_numbers_is_empty(self, stage: Stage) -> None:
        assert await stage.call("ListOriginationNumbers") == {"PhoneNumbers": []}
