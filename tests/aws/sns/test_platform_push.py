"""Platform endpoints pushed to, and what push services say of them, with a push service that says what it is told."""

from typing import Any

import orjson
import pytest

from redrive.aws.sns.devices import platform
from redrive.aws.sns.devices.events import failure_of
from redrive.aws.sns.devices.platform import APPLICATION, DEVICE
from redrive.aws.sns.devices.push import DeviceEndpoint
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.aws.sns.stage import (
    ACCOUNT,
    OTHER,
    REGION,
    SECOND_MS,
    Stage,
    invalid,
    queue_arn,
    refused,
    topic_arn,
)

TAKEN = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "", 1)
GONE = Attempt(AttemptResult.REFUSED, Reason.MISSING, 404, "UNREGISTERED", 1)
TROUBLE = Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 503, "UNAVAILABLE", 1)
DENIED = Attempt(AttemptResult.FAILED, Reason.DENIED, 401, "who?", 1)


class PushService:
    """Says one thing, and remembers what it was given."""

    def __init__(self) -> None:
        self.push_requests: list[PushRequest] = []
        self.says = TAKEN

    async def push(self, push_request: PushRequest) -> Attempt:
        self.push_requests.append(push_request)
        return self.says

    async def close(self) -> None:
        pass


@pytest.fixture
def service(stage: Stage) -> PushService:
    service = PushService()
    stage.push_to("application", DeviceEndpoint(stage.engine, service))
    return service


async def application(stage: Stage, kind: str = "GCM", **attributes: str) -> str:
    made = await stage.call(
        "CreatePlatformApplication",
        Name="app",
        Platform=kind,
        Attributes={"PlatformCredential": "secret", "PlatformPrincipal": "id", **attributes},
    )
    arn: str = made["PlatformApplicationArn"]
    return arn


async def device(stage: Stage, app: str, token: str = "token") -> str:
    made = await stage.call("CreatePlatformEndpoint", PlatformApplicationArn=app, Token=token)
    arn: str = made["EndpointArn"]
    return arn


async def shown(stage: Stage, arn: str) -> dict[str, str]:
    attributes: dict[str, str] = (await stage.call("GetEndpointAttributes", EndpointArn=arn))["Attributes"]
    return attributes


async def push(stage: Stage, arn: str, text: str = "hello", **params: Any) -> None:
    await stage.call("Publish", TargetArn=arn, Message=text, **params)
    await stage.advance(0)


async def events(stage: Stage, queue: str = "heard") -> list[Any]:
    """The events that a queue heard of, and their subjects."""
    letters = [orjson.loads(stage.renderer.present(one)[0]) for one in await stage.in_queue(queue)]
    return [(letter["Subject"], orjson.loads(letter["Message"])) for letter in letters]


async def hearing(stage: Stage) -> str:
    """A topic whose messages a queue hears."""
    topic = await stage.topic("events")
    await stage.subscribe(topic, "sqs", await stage.queue("heard"))
    return topic


class TestPushes:
    @pytest.mark.parametrize(
        ("kind", "service_name"),
        [
            ("ADM", "adm"),
            ("APNS", "apns"),
            ("APNS_SANDBOX", "apns_sandbox"),
            ("APNS_VOIP", "apns"),
            ("APNS_VOIP_SANDBOX", "apns_sandbox"),
            ("GCM", "fcm"),
            ("MACOS", "apns"),
            ("MACOS_SANDBOX", "apns_sandbox"),
        ],
    )
    async def test_each_platform_has_its_service(
        self, stage: Stage, service: PushService, kind: str, service_name: str
    ) -> None:
        app = await application(stage, kind, ApplePlatformTeamID="team", ApplePlatformBundleID="bundle")
        await push(stage, await device(stage, app))
        (push_request,) = service.push_requests
        sender = {name: push_request.headers[name] for name in ("service", "credential", "principal", "team")}
        assert sender == {"service": service_name, "credential": "secret", "principal": "id", "team": "team"}
        assert push_request.endpoint == "token"
        assert b"hello" in push_request.body

    async def test_attributes_are_for_the_service(self, stage: Stage, service: PushService) -> None:
        arn = await device(stage, await application(stage, "APNS", ApplePlatformBundleID="bundle"))
        attributes = {
            "AWS.SNS.MOBILE.APNS.COLLAPSE_ID": {"DataType": "String", "StringValue": "c"},
            "AWS.SNS.MOBILE.APNS.TTL": {"DataType": "Number", "StringValue": "60"},
            "AWS.SNS.MOBILE.APNS.PRIORITY": {"DataType": "Binary", "BinaryValue": b"1"},
            "colour": {"DataType": "String", "StringValue": "blue"},
        }
        await push(stage, arn, MessageAttributes=attributes)
        headers = {
            name: value
            for name, value in service.push_requests[0].headers.items()
            if name.startswith("apns-")
        }
        assert headers == {
            "apns-topic": "bundle",
            "apns-push-type": "alert",
            "apns-priority": "10",
            "apns-collapse-id": "c",
            "apns-expiration": str(stage.clock.now() // 1000 + 60),
        }

    async def test_a_push_to_one_device_needs_its_platforms_text_alone(
        self, stage: Stage, service: PushService
    ) -> None:
        arn = await device(stage, await application(stage, "APNS"))
        await push(stage, arn, '{"APNS": "{\\"aps\\":{}}"}', MessageStructure="json")
        assert service.push_requests[0].body == b'{"aps":{}}'
        text = "JSON must contain an entry for 'default' or 'APNS'."
        with invalid(text):
            await push(stage, arn, '{"GCM": "{}"}', MessageStructure="json")
        reason = "Message Reason: Invalid notification for protocol APNS: Notification is malformed"
        with invalid(reason):
            await push(stage, arn, '{"default": "d", "APNS": "hello"}', MessageStructure="json")

    @pytest.mark.parametrize("kind", ["BAIDU", "MPNS", "WNS"])
    async def test_platforms_that_are_left_out(self, stage: Stage, service: PushService, kind: str) -> None:
        endpoint = DeviceEndpoint(stage.engine, service)
        arn = await device(stage, await application(stage, kind))
        push_request = PushRequest(arn, b"hello", "text/plain", {"sent-at": "1"}, 1000)
        attempt = await endpoint.push(push_request)
        assert (attempt.result, attempt.response) == (
            AttemptResult.REFUSED,
            f"this server does not push to {kind}",
        )
        assert service.push_requests == []
        assert (await shown(stage, arn))["Enabled"] == "true"


class TestDevices:
    async def test_an_endpoint_whose_device_is_gone_is_disabled(
        self, stage: Stage, service: PushService
    ) -> None:
        topic = await hearing(stage)
        app = await application(stage, EventEndpointUpdated=topic, EventDeliveryFailure=topic)
        arn = await device(stage, app)
        service.says = GONE
        await push(stage, arn)
        assert (await shown(stage, arn))["Enabled"] == "false"
        with refused("EndpointDisabled", "Endpoint is disabled"):
            await push(stage, arn)
        kinds = [(subject, event["EventType"]) for subject, event in await events(stage)]
        assert kinds == [
            ("EndpointUpdated event for app app (GCM)", "EndpointUpdated"),
            ("DeliveryFailure event for app app (GCM)", "DeliveryFailure"),
        ]

    async def test_a_new_token_is_not_switched_off_for_the_old_one(
        self, stage: Stage, service: PushService
    ) -> None:
        arn = await device(stage, await application(stage))

        async def late(_: PushRequest) -> Attempt:
            await stage.call("SetEndpointAttributes", EndpointArn=arn, Attributes={"Token": "new"})
            return GONE

        service.push = late  # type: ignore[method-assign]  # for this test alone
        await push(stage, arn)
        assert await shown(stage, arn) == {"Token": "new", "Enabled": "true"}

    async def test_a_service_can_give_it_another_token(self, stage: Stage, service: PushService) -> None:
        app = await application(stage, "ADM")
        arn = await device(stage, app)
        service.says = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "", 1, (("token", "new"),))
        await push(stage, arn)
        assert await shown(stage, arn) == {"Token": "new", "Enabled": "true"}
        assert await device(stage, app, "new") == arn
        assert await device(stage, app, "token") != arn

    async def test_two_devices_of_one_token_are_one_too_many(
        self, stage: Stage, service: PushService
    ) -> None:
        app = await application(stage, "ADM")
        arn, other = await device(stage, app), await device(stage, app, "new")
        service.says = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "", 1, (("token", "new"),))
        await push(stage, arn)
        assert await shown(stage, arn) == {"Token": "token", "Enabled": "false"}
        assert await shown(stage, other) == {"Token": "new", "Enabled": "true"}

    @pytest.mark.parametrize(
        ("operation", "words"),
        [
            ("SetEndpointAttributes", "Endpoint is disabled"),
            ("SetPlatformApplicationAttributes", "Platform application is disabled"),
            ("DeleteEndpoint", "Endpoint does not exist"),
            ("DeletePlatformApplication", "Endpoint does not exist"),
        ],
    )
    async def test_disabled_or_deleted_devices_get_no_topic_messages(
        self, stage: Stage, service: PushService, operation: str, words: str
    ) -> None:
        app = await application(stage)
        arn = await device(stage, app)
        topic = await stage.topic()
        letters = await stage.queue("letters")
        policy = orjson.dumps({"deadLetterTargetArn": letters}).decode()
        await stage.subscribe(topic, "application", arn, RedrivePolicy=policy)
        given = {"EndpointArn": arn, "PlatformApplicationArn": app, "Attributes": {"Enabled": "false"}}
        await stage.call(operation, **given)
        await stage.publish(topic)
        await stage.advance(0)
        assert service.push_requests == []
        assert len(await stage.in_queue("letters")) == 1
        push_request = PushRequest(arn, b"hello", "text/plain", {"sent-at": "1"}, 1000)
        assert (await DeviceEndpoint(stage.engine, service).push(push_request)).response == words

    async def test_trouble_is_met_by_the_schedule(self, stage: Stage, service: PushService) -> None:
        """50 retries in 6 hours."""
        arn = await device(stage, await application(stage))
        service.says = TROUBLE
        await push(stage, arn)
        assert len(service.push_requests) == 1
        await stage.advance(30 * SECOND_MS)
        assert 3 <= len(service.push_requests) <= 4
        await stage.advance(5 * 3600 * SECOND_MS)
        assert len(service.push_requests) < 51
        await stage.advance(5 * 3600 * SECOND_MS)
        assert len(service.push_requests) == 51
        assert (await shown(stage, arn))["Enabled"] == "true"

    async def test_unknown_credentials_switch_nothing_off(self, stage: Stage, service: PushService) -> None:
        app = await application(stage)
        arn = await device(stage, app)
        service.says = DENIED
        await push(stage, arn)
        service.says = TAKEN
        await stage.advance(15 * SECOND_MS)
        assert len(service.push_requests) == 2
        assert (await shown(stage, arn))["Enabled"] == "true"

    async def test_a_message_past_its_time_is_not_pushed(self, stage: Stage, service: PushService) -> None:
        arn = await device(stage, await application(stage))
        service.says = TROUBLE
        ttl = {"AWS.SNS.MOBILE.FCM.TTL": {"DataType": "Number", "StringValue": "5"}}
        await push(stage, arn, MessageAttributes=ttl)
        await stage.advance(3600 * SECOND_MS)
        assert len(service.push_requests) == 1


class TestEvents:
    async def test_the_life_of_a_device(self, stage: Stage, service: PushService) -> None:
        topic = await hearing(stage)
        names = ("EventEndpointCreated", "EventEndpointUpdated", "EventEndpointDeleted")
        app = await application(stage, **dict.fromkeys(names, topic))
        arn = await device(stage, app)
        assert await device(stage, app) == arn  # it stands already
        for _ in range(2):  # the second time changes nothing
            await stage.call("SetEndpointAttributes", EndpointArn=arn, Attributes={"CustomUserData": "x"})
        await stage.call("DeleteEndpoint", EndpointArn=arn)
        await stage.call("DeleteEndpoint", EndpointArn=arn)
        heard = await events(stage)
        assert [subject for subject, _ in heard] == [
            "EndpointCreated event for app app (GCM)",
            "EndpointUpdated event for app app (GCM)",
            "EndpointDeleted event for app app (GCM)",
        ]
        assert heard[0][1] == {
            "EndpointArn": arn,
            "EventType": "EndpointCreated",
            "Resource": app,
            "Service": "SNS",
            "Time": "2026-01-01T00:00:00.000Z",
        }

    async def test_a_failed_delivery_as_recorded(self, stage: Stage, service: PushService) -> None:
        app = await application(stage, EventDeliveryFailure=await hearing(stage))
        arn = await device(stage, app)
        service.says = GONE
        sent = await stage.call("Publish", TargetArn=arn, Message="hello")
        await stage.advance(0)
        ((subject, event),) = await events(stage)
        assert subject == "DeliveryFailure event for app app (GCM)"
        assert list(event.items()) == [
            ("DeliveryAttempts", 1),
            ("EndpointArn", arn),
            ("EventType", "DeliveryFailure"),
            ("FailureMessage", "Platform token associated with the endpoint is not valid"),
            ("FailureType", "InvalidPlatformToken"),
            ("MessageId", sent["MessageId"]),
            ("Resource", app),
            ("Service", "SNS"),
            ("Time", "2026-01-01T00:00:00.000Z"),
        ]

    async def test_a_retry_is_no_failure(self, stage: Stage, service: PushService) -> None:
        app = await application(stage, EventDeliveryFailure=await hearing(stage))
        service.says = TROUBLE
        await push(stage, await device(stage, app))
        assert await events(stage) == []
        await stage.advance(10 * 3600 * SECOND_MS)
        ((_, event),) = await events(stage)
        assert (event["DeliveryAttempts"], event["FailureType"]) == (51, "DependencyUnavailable")

    async def test_a_subscriber_that_is_off_is_a_failure(self, stage: Stage, service: PushService) -> None:
        arn = await device(stage, await application(stage, EventDeliveryFailure=await hearing(stage)))
        topic = await stage.topic()
        await stage.subscribe(topic, "application", arn)
        await stage.call("SetEndpointAttributes", EndpointArn=arn, Attributes={"Enabled": "false"})
        await stage.publish(topic)
        await stage.advance(0)
        ((_, event),) = await events(stage)
        assert (event["FailureType"], event["FailureMessage"]) == ("EndpointDisabled", "Endpoint is disabled")

    async def test_an_event_that_fails_leads_to_no_other(self, stage: Stage, service: PushService) -> None:
        """A device that is off hears of its own failures, and of another application's, which hears of its."""
        topics = [await hearing(stage), await stage.topic("others")]
        apps = [
            await application(stage, kind, EventDeliveryFailure=topic)
            for kind, topic in zip(("GCM", "ADM"), topics, strict=True)
        ]
        devices = [await device(stage, app) for app in apps]
        for topic in topics:
            for arn in devices:
                await stage.subscribe(topic, "application", arn)
        service.says = GONE
        await push(stage, devices[0])
        ((_, event),) = await events(stage)
        assert event["EndpointArn"] == devices[0]
        assert len(service.push_requests) == 2  # of the second device, which had not been tried before

    async def test_a_deleted_event_topic_is_told_nothing(self, stage: Stage, service: PushService) -> None:
        app = await application(
            stage, EventEndpointCreated=topic_arn("gone"), EventDeliveryFailure=topic_arn("gone")
        )
        service.says = GONE
        arn = await device(stage, app)
        await push(stage, arn)
        assert (await shown(stage, arn))["Enabled"] == "false"

    @pytest.mark.parametrize(
        "topic",
        [
            "events",
            queue_arn("q"),
            topic_arn("t.fifo"),
            topic_arn("t", OTHER),
            f"arn:aws:sns:eu-west-1:{ACCOUNT}:t",
            f"arn:aws:sns:{REGION}:{ACCOUNT}:t:e1097da7-0000-0000-0000-000000000000",
        ],
    )
    async def test_an_event_topic_must_be_a_standard_topic_of_the_account(
        self, stage: Stage, service: PushService, topic: str
    ) -> None:
        reason = f"{topic} is not the ARN of a standard topic of this account and region"
        with invalid(f"Attributes Reason: Invalid value for attribute: EventEndpointCreated: {reason}"):
            await application(stage, EventEndpointCreated=topic)

    async def test_no_topic_is_named_by_nothing(self, stage: Stage, service: PushService) -> None:
        app = await application(stage, EventEndpointCreated="")
        assert await device(stage, app)

    @pytest.mark.parametrize(
        ("reason", "status", "kind", "words"),
        [
            (
                Reason.MISSING,
                404,
                "InvalidPlatformToken",
                "Platform token associated with the endpoint is not valid",
            ),
            (Reason.CLIENT_ERROR, 400, "InvalidNotification", "Notification body is invalid"),
            (Reason.CLIENT_ERROR, 403, "InvalidNotification", "Notification body is invalid"),
            (Reason.SERVER_ERROR, 503, "DependencyUnavailable", "Dependency is not available"),
            (
                Reason.SERVER_ERROR,
                500,
                "UnexpectedFailure",
                "Unexpected failure; please contact Amazon. Failure phrase [Internal Error]",
            ),
            (Reason.DENIED, 401, "InvalidCredentials", "Platform application credentials are not valid"),
            (Reason.THROTTLED, 429, "Throttled", "Request throttled by [{}]"),
            (Reason.EXPIRED, 400, "NotificationTTLExpired", "Notification TTL is expired"),
        ],
    )
    def test_failures_are_called_what_sns_calls_them(
        self, reason: Reason, status: int, kind: str, words: str
    ) -> None:
        """The table of "FCM delivery failure events"."""
        assert failure_of(Attempt(AttemptResult.FAILED, reason, status, "")) == (kind, words)


async def test_an_application_is_remembered_for_the_log(stage: Stage, service: PushService) -> None:
    endpoint = DeviceEndpoint(stage.engine, service)
    app = await application(stage, SuccessFeedbackSampleRate="7")
    arn = await device(stage, app)
    assert endpoint.application_of("arn:aws:sns:x") is None
    found = endpoint.application_of(arn)
    assert found is not None
    assert found.attributes["SuccessFeedbackSampleRate"] == "7"
    await endpoint.push(PushRequest(arn, b"hello", "text/plain", {"sent-at": "1"}, 1000))
    named = platform.device_at(arn)
    assert named is not None
    assert await stage.engine.resources.documents.get(DEVICE, named.key) is not None
    stage.engine.resources.documents.forget("", "")  # another node changed something
    assert endpoint.application_of(arn) == found
    await stage.engine.resources.documents.remove(APPLICATION, named.application.key)
    await endpoint.push(PushRequest(arn, b"hello", "text/plain", {"sent-at": "1"}, 1000))
    assert endpoint.application_of(arn) is None
