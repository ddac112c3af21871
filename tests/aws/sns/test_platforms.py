import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest

from redrive.aws.sns.devices import platform
from redrive.aws.sns.devices.platform import DEVICE, OF_TOKEN, Device, token_key
from tests.aws.sns.stage import ACCOUNT, OTHER, REGION, Stage, invalid, refused, topic_arn

ROLE = f"arn:aws:iam::{ACCOUNT}:role/feedback"
RATE = "SuccessFeedbackSampleRate: 101 value provided is not an integer between 0-100"


async def _application(stage: Stage, name: str = "app", platform: str = "GCM", **attributes: str) -> str:
    made = await stage.call(
        "CreatePlatformApplication",
        Name=name,
        Platform=platform,
        Attributes={"PlatformCredential": "secret", "PlatformPrincipal": "id", **attributes},
    )
    arn: str = made["PlatformApplicationArn"]
    return arn


async def _device(stage: Stage, application: str, token: str = "token", **params: Any) -> str:
    made = await stage.call(
        "CreatePlatformEndpoint", PlatformApplicationArn=application, Token=token, **params
    )
    arn: str = made["EndpointArn"]
    return arn


async def _shown(stage: Stage, device: str) -> dict[str, str]:
    answer = await stage.call("GetEndpointAttributes", EndpointArn=device)
    attributes: dict[str, str] = answer["Attributes"]
    return attributes


async def _set(stage: Stage, device: str, **attributes: str) -> None:
    await stage.call("SetEndpointAttributes", EndpointArn=device, Attributes=attributes)


def device_at(arn: str) -> Device:
    found = platform.device_at(arn)
    assert found is not None
    return found


class TestApplications:
    async def test_credentials_are_not_shown(self, stage: Stage) -> None:
        arn = await _application(stage, SuccessFeedbackRoleArn=ROLE, EventDeliveryFailure=topic_arn("t"))
        assert arn == f"arn:aws:sns:{REGION}:{ACCOUNT}:app/GCM/app"
        shown = await stage.call("GetPlatformApplicationAttributes", PlatformApplicationArn=arn)
        attributes = {
            "Enabled": "true",
            "SuccessFeedbackRoleArn": ROLE,
            "EventDeliveryFailure": topic_arn("t"),
        }
        assert shown == {"Attributes": attributes}
        listed = await stage.call("ListPlatformApplications")
        assert listed == {"PlatformApplications": [{"PlatformApplicationArn": arn, "Attributes": attributes}]}

    async def test_a_name_stands_for_one_application(self, stage: Stage) -> None:
        arn = await _application(stage, SuccessFeedbackSampleRate="5")
        assert await _application(stage, SuccessFeedbackSampleRate="5") == arn
        with invalid(
            "Name Reason: An application with the same name but different properties already exists"
        ):
            await _application(stage, SuccessFeedbackSampleRate="6")
        assert await _application(stage, platform="ADM") != arn

    @pytest.mark.parametrize(
        ("name", "platform", "attributes", "reason"),
        [
            ("app", "AAA", {}, "Platform Reason: AAA is not supported"),
            ("", "GCM", {}, " Reason: cannot be empty"),
            (
                "a b",
                "GCM",
                {},
                "a b Reason: must contain only characters 'a'-'z', 'A'-'Z', '0'-'9', '_', '-', and '.'",
            ),
            ("app", "GCM", {"PlatformCredential": ""}, "Attributes Reason: Platform credentials are invalid"),
            ("app", "APNS", {"PlatformPrincipal": ""}, "Attributes Reason: Platform credentials are invalid"),
            (
                "app",
                "GCM",
                {"SuccessFeedbackSampleRate": "101"},
                f"Attributes Reason: Invalid value for attribute: {RATE}",
            ),
            ("app", "GCM", {"Colour": "blue"}, "Attributes Reason: Invalid attribute name: Colour"),
        ],
    )
    async def test_an_invalid_application_is_refused(
        self, stage: Stage, name: str, platform: str, attributes: dict[str, str], reason: str
    ) -> None:
        with invalid(reason):
            await _application(stage, name, platform, **attributes)

    async def test_attributes_are_changed_one_by_one(self, stage: Stage) -> None:
        arn = await _application(stage, EventDeliveryFailure=topic_arn("t"))
        change: dict[str, Any] = {"PlatformApplicationArn": arn, "Attributes": {"Enabled": "False"}}
        await stage.call("SetPlatformApplicationAttributes", **change)
        shown = await stage.call("GetPlatformApplicationAttributes", PlatformApplicationArn=arn)
        assert shown["Attributes"] == {"Enabled": "false", "EventDeliveryFailure": topic_arn("t")}
        with invalid(f"Attributes Reason: Invalid value for attribute: {RATE}"):
            await stage.call(
                "SetPlatformApplicationAttributes",
                PlatformApplicationArn=arn,
                Attributes={"SuccessFeedbackSampleRate": "101"},
            )

    @pytest.mark.parametrize(
        "operation",
        [
            "GetPlatformApplicationAttributes",
            "SetPlatformApplicationAttributes",
            "CreatePlatformEndpoint",
            "ListEndpointsByPlatformApplication",
        ],
    )
    async def test_an_application_must_be_there(self, stage: Stage, operation: str) -> None:
        arn = f"arn:aws:sns:{REGION}:{ACCOUNT}:app/GCM/app"
        with refused("NotFound", "PlatformApplication does not exist", 404):
            await stage.call(operation, PlatformApplicationArn=arn, Attributes={}, Token="t")

    @pytest.mark.parametrize(
        ("arn", "reason"),
        [
            ("app", "An ARN must have at least 6 elements, not 1"),
            (
                f"arn:aws:sns:{REGION}:{ACCOUNT}:endpoint/GCM/app/e1097da7",
                "Wrong number of slashes in relative portion of the ARN.",
            ),
        ],
    )
    async def test_an_arn_must_be_one(self, stage: Stage, arn: str, reason: str) -> None:
        with invalid(f"PlatformApplicationArn Reason: {reason}"):
            await stage.call("GetPlatformApplicationAttributes", PlatformApplicationArn=arn)

    async def test_applications_are_their_accounts_own(self, stage: Stage) -> None:
        arn = await _application(stage)
        text = (
            f"User: arn:aws:iam::{OTHER}:root is not authorized to perform: SNS:DeletePlatformApplication on"
            f" resource: {arn} because no resource-based policy allows the SNS:DeletePlatformApplication action"
        )
        with refused("AuthorizationError", text, 403):
            await stage.call("DeletePlatformApplication", account=OTHER, PlatformApplicationArn=arn)

    async def test_devices_go_with_their_application(self, stage: Stage) -> None:
        arn = await _application(stage)
        device = await _device(stage, arn)
        await stage.call("Publish", TargetArn=device, Message="m")
        await asyncio.gather(*(_device(stage, arn, f"token{n}") for n in range(120)))
        await stage.call("DeletePlatformApplication", PlatformApplicationArn=arn)
        await stage.call("DeletePlatformApplication", PlatformApplicationArn=arn)
        with refused("NotFound", "Endpoint does not exist", 404):
            await _shown(stage, device)
        assert await stage.engine.resources.documents.find(DEVICE, "") == []
        assert await stage.engine.resources.documents.find(OF_TOKEN, "") == []
        assert await _device(stage, await _application(stage)) != device


class TestDevices:
    async def test_a_device_is_what_its_token_says(self, stage: Stage) -> None:
        application = await _application(stage)
        arn = await _device(stage, application, CustomUserData="data")
        assert arn.startswith(f"arn:aws:sns:{REGION}:{ACCOUNT}:endpoint/GCM/app/")
        assert await _shown(stage, arn) == {"Enabled": "true", "Token": "token", "CustomUserData": "data"}
        listed = await stage.call("ListEndpointsByPlatformApplication", PlatformApplicationArn=application)
        assert listed == {"Endpoints": [{"EndpointArn": arn, "Attributes": await _shown(stage, arn)}]}

    async def test_a_token_stands_for_one_device(self, stage: Stage) -> None:
        application = await _application(stage)
        arn = await _device(stage, application, CustomUserData="data")
        assert await _device(stage, application, CustomUserData="data") == arn
        text = f"Token Reason: Endpoint {arn} already exists with the same Token, but different attributes."
        with invalid(text):
            await _device(stage, application, CustomUserData="other")
        assert await _device(stage, application, "another") != arn

    @pytest.mark.parametrize(
        ("token", "params", "reason"),
        [
            ("", {}, "Token Reason: cannot be empty"),
            (
                "t",
                {"Attributes": {"Token": ""}},
                "Attributes Reason: Invalid value for attribute: Token: cannot be empty",
            ),
            (
                "t",
                {"CustomUserData": "x" * 2049},
                (
                    "Attributes Reason: Invalid value for attribute: CustomUserData: must be at most 2048 bytes"
                    " long in UTF-8 encoding"
                ),
            ),
            ("t", {"Attributes": {"Colour": "blue"}}, "Attributes Reason: Invalid attribute name: Colour"),
        ],
    )
    async def test_an_invalid_endpoint_is_refused(
        self, stage: Stage, token: str, params: dict[str, Any], reason: str
    ) -> None:
        application = await _application(stage)
        with invalid(reason):
            await _device(stage, application, token, **params)

    async def test_a_token_can_change(self, stage: Stage) -> None:
        application = await _application(stage)
        arn = await _device(stage, application, "old")
        other = await _device(stage, application, "other")
        await _set(stage, arn, Token="new", CustomUserData="d")
        assert await _shown(stage, arn) == {"Enabled": "true", "Token": "new", "CustomUserData": "d"}
        assert await _device(stage, application, "old") not in (arn, other)
        text = f"Token Reason: Endpoint {other} already exists with the same Token, but different attributes."
        with invalid(text):
            await _set(stage, arn, Token="other")

    async def test_a_change_of_token_that_was_cut_off_can_be_made_again(self, stage: Stage) -> None:
        arn = await _device(stage, await _application(stage), "old")
        directory = stage.engine.resources.documents
        (device,) = await directory.find(DEVICE, "")
        await directory.create(
            OF_TOKEN, token_key(device.application, "new"), device.id
        )  # as an older version did
        await _set(stage, arn, Token="new")
        assert (await _shown(stage, arn))["Token"] == "new"
        assert len(await directory.find(OF_TOKEN, "")) == 1

    async def test_a_token_whose_device_is_gone_is_free(self, stage: Stage) -> None:
        application = await _application(stage)
        lost, arn = await _device(stage, application, "lost"), await _device(stage, application, "old")
        await stage.engine.resources.documents.remove(DEVICE, device_at(lost).key)
        await _set(stage, arn, Token="lost")
        assert await _device(stage, application, "lost") == arn

    async def test_a_device_that_goes_takes_no_token_of_another_along(self, stage: Stage) -> None:
        application = await _application(stage)
        gone, arn = await _device(stage, application, "old"), await _device(stage, application, "new")
        directory = stage.engine.resources.documents
        await directory.update(
            DEVICE,
            device_at(gone).key,
            lambda one: replace(one, attributes={**one.attributes, "Token": "new"}),
        )
        await stage.call("DeleteEndpoint", EndpointArn=gone)
        assert await _device(stage, application, "new") == arn

    async def test_changes_at_once_leave_one_token(self, stage: Stage) -> None:
        arn = await _device(stage, await _application(stage), "old")
        await asyncio.gather(*(_set(stage, arn, Token=f"new{n}") for n in range(5)))
        assert len(await stage.engine.resources.documents.find(OF_TOKEN, "")) == 1

    @pytest.mark.parametrize("operation", ["GetEndpointAttributes", "SetEndpointAttributes"])
    async def test_a_device_must_be_there(self, stage: Stage, operation: str) -> None:
        application = await _application(stage)
        arn = await _device(stage, application)
        await stage.call("DeleteEndpoint", EndpointArn=arn)
        await stage.call("DeleteEndpoint", EndpointArn=arn)
        assert await stage.engine.resources.documents.find(OF_TOKEN, "") == []
        with refused("NotFound", "Endpoint does not exist", 404):
            await stage.call(operation, EndpointArn=arn, Attributes={})


class TestPush:
    async def test_a_message_to_one_device_is_a_delivery(self, stage: Stage) -> None:
        arn = await _device(stage, await _application(stage))
        for text in ("one", "two"):
            await stage.call("Publish", TargetArn=arn, Message=text)
        await stage.advance(0)
        pushed = stage.endpoints["application"].push_requests
        assert sorted((push_request.endpoint, push_request.body) for push_request in pushed) == [
            (arn, b"one"),
            (arn, b"two"),
        ]
        assert (await stage.call("ListTopics"))["Topics"] == []
        assert (await stage.call("ListSubscriptions"))["Subscriptions"] == []

    async def test_a_disabled_device_gets_nothing(self, stage: Stage) -> None:
        application = await _application(stage)
        arn = await _device(stage, application)
        await _set(stage, arn, Enabled="false")
        with refused("EndpointDisabled", "Endpoint is disabled"):
            await stage.call("Publish", TargetArn=arn, Message="m")
        await _set(stage, arn, Enabled="true")
        await stage.call(
            "SetPlatformApplicationAttributes",
            PlatformApplicationArn=application,
            Attributes={"Enabled": "false"},
        )
        with refused("PlatformApplicationDisabled", "Platform application is disabled"):
            await stage.call("Publish", TargetArn=arn, Message="m")

    async def test_each_platform_gets_its_own_text(self, stage: Stage) -> None:
        topic = await stage.topic()
        devices = {
            platform: await _device(stage, await _application(stage, platform=platform))
            for platform in ("GCM", "APNS", "ADM")
        }
        for arn in devices.values():
            await stage.subscribe(topic, "application", arn)
        texts = {"default": "d", "GCM": '{"g":1}', "APNS": '{"a":1}', "sqs": "s"}
        await stage.publish(topic, orjson.dumps(texts).decode(), MessageStructure="json")
        await stage.advance(0)
        pushed = {
            push_request.endpoint: push_request.body
            for push_request in stage.endpoints["application"].push_requests
        }
        assert pushed == {
            devices["GCM"]: b'{"g":1}',
            devices["APNS"]: b'{"a":1}',
            devices["ADM"]: b"d",
        }

    async def test_a_subscription_outlives_its_device(self, stage: Stage) -> None:
        arn = await _device(stage, await _application(stage))
        subscription = await stage.subscribe(await stage.topic(), "application", arn)
        await stage.call("DeleteEndpoint", EndpointArn=arn)
        assert (await stage.attributes(subscription))["Endpoint"] == arn
