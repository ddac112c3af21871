"""SNS in memory, with a topic of each kind, subscriptions in every state, devices and telephones."""

import logging
import random
from collections.abc import Awaitable
from typing import Any, Final

import orjson

from redrive.aws.gateway.authentication import TrustAll
from redrive.aws.gateway.gateway import Gateway
from redrive.aws.gateway.identities import Identities
from redrive.aws.sns.facade import Sns
from redrive.aws.sns.protection.audit import AuditLog
from redrive.engine.engine import Engine
from redrive.engine.ports import Endpoint, Runtime
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from tests.aws.sns.parts import SECRET, sns_parts, sns_profile
from tests.aws.sns.stage import ENDPOINTS, Recorder
from tests.aws.wire.clients import Client
from tests.fuzz.watched import Complaints, Watched

ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"
CLIENT: Final = Client("sns", "query")
_SNS: Final = f"arn:aws:sns:{REGION}:{ACCOUNT}"
QUEUE: Final = f"arn:aws:sqs:{REGION}:{ACCOUNT}:q"
STANDARD, FIFO, ARCHIVE = f"{_SNS}:standard", f"{_SNS}:first.fifo", f"{_SNS}:archive.fifo"
APPLICATION: Final = f"{_SNS}:app/GCM/app"
SUBSCRIPTION, TOKEN, DEVICE = "<subscription>", "<token>", "<device>"
PHONE: Final = "+14255550123"


class SnsWorld(Watched):
    """SNS on a store in memory."""

    def __init__(self) -> None:
        super().__init__()
        runtime = Runtime(self._clock, random.Random(7), "node")
        self._recorders = {protocol: Recorder() for protocol in ENDPOINTS}
        endpoints: dict[str, Endpoint] = dict(self._recorders)
        self.engine = Engine(self._store, runtime, endpoints=endpoints)
        self.findings = 0
        audit_log = AuditLog(self, lambda _: None, random.Random(7), "node")
        parts = sns_parts(self.engine, audit_log)
        profile = sns_profile(open_queues=True, parts=parts, base_url="http://localhost")
        self.engine.add_profile("sns", profile)
        self._gateway = Gateway(
            runtime,
            TrustAll(REGION),
            {
                "sns": Sns(
                    self.engine, parts, SECRET, Identities(self.engine.resources.documents, restricts=False)
                )
            },
            None,
        )
        self.complaints = Complaints()

    def write(self, group: ResourceName, stream: str, at: int, message: str) -> None:
        """See `LogSink.write`."""
        self.findings += 1

    def handle(self, request: Request) -> Awaitable[Response]:
        """See `Watched.handle`."""
        return self._gateway.answer(request)

    async def open(self) -> None:
        """Make something of everything."""
        logging.getLogger("redrive").addHandler(self.complaints)
        await self.engine.open()
        await self.engine.resources.queues.create(Queue(0, ResourceName(ACCOUNT, REGION, "q")))
        await self._call("CreateTopic", Name="standard")
        await self._call("CreateTopic", Name="first.fifo", Attributes={"FifoTopic": "true"})
        archived = {"FifoTopic": "true", "ArchivePolicy": '{"MessageRetentionPeriod":"1"}'}
        await self._call("CreateTopic", Name="archive.fifo", Attributes=archived)
        for protocol, endpoint in (("sqs", QUEUE), ("http", "http://hook.example/"), ("sms", PHONE)):
            await self._call("Subscribe", TopicArn=STANDARD, Protocol=protocol, Endpoint=endpoint)
        await self._call("Publish", TopicArn=STANDARD, Message="kept")
        listed = await self._call("ListSubscriptionsByTopic", TopicArn=STANDARD)
        confirmed = [one for one in listed["Subscriptions"] if one["Protocol"] == "sqs"]
        self.known[SUBSCRIPTION] = confirmed[0]["SubscriptionArn"]
        await self.settle()
        self.known[TOKEN] = orjson.loads(self._recorders["http"].push_requests[0].body)["Token"]
        await self._call(
            "CreatePlatformApplication",
            Name="app",
            Platform="GCM",
            Attributes={"PlatformCredential": "secret"},
        )
        made = await self._call("CreatePlatformEndpoint", PlatformApplicationArn=APPLICATION, Token="t")
        self.known[DEVICE] = made["EndpointArn"]
        await self._call("CreateSMSSandboxPhoneNumber", PhoneNumber=PHONE)
        await self._call("SetSMSAttributes", attributes={"DefaultSMSType": "Promotional"})
        await self.settle()

    async def close(self) -> None:
        """See `Watched.close`."""
        logging.getLogger("redrive").removeHandler(self.complaints)
        await super().close()

    async def _call(self, operation: str, **params: Any) -> Any:
        response = await self.answer(CLIENT.request(operation, params))
        assert response.status == 200, (operation, response.body)
        return CLIENT.answer(operation, response)
