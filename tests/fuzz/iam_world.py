"""IAM and STS in memory, with a user, a group, a role, a policy and a profile that hang together."""

import logging
import random
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, Final

from typing_extensions import override

from redrive.access.keys import Keyring
from redrive.access.secret import InstallationSecret, SessionTokens
from redrive.aws.gateway.authentication import TrustAll
from redrive.aws.gateway.gateway import Gateway
from redrive.aws.gateway.identities import Identities, Sessions
from redrive.aws.kit.service import offered, service_of
from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.model.http import Request, Response
from tests.aws.sns.parts import signing_pair
from tests.aws.wire.clients import Client
from tests.fuzz.watched import Complaints, Watched

ACCOUNT: Final = "000000000000"
CLIENTS: Final = {name: Client(name, "query") for name in ("iam", "sts")}
LINKED: Final = "AWSServiceRoleForBatch"
KEY: Final = "<access key>"
POLICY: Final = f"arn:aws:iam::{ACCOUNT}:policy/reads"
AMAZON: Final = "arn:aws:iam::aws:policy/AmazonSQSFullAccess"
READS: Final = (
    '{"Version":"2012-10-17","Statement":[{"Sid":"s","Effect":"Allow","Action":["sqs:Get*"],"Resource":"*",'
    '"Condition":{"StringEquals":{"aws:PrincipalTag/team":["${aws:username}"]}}}]}'
)
TRUST: Final = (
    '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole",'
    '"Condition":{"StringEquals":{"sts:ExternalId":"e-1"}}}]}'
)


class IamWorld(Watched):
    """The two services on a store in memory; trust and policies count."""

    def __init__(self) -> None:
        super().__init__()
        runtime = Runtime(self._clock, random.Random(7), "node")
        self.engine = Engine(self._store, runtime)
        documents = self.engine.resources.documents
        sessions = Sessions(
            SessionTokens(InstallationSecret(b"s" * 32)), Identities(documents, restricts=True), runtime
        )
        keyring = Keyring(self._store, self._clock)
        host = SimpleNamespace(engine=self.engine, keyring=keyring, sessions=sessions, pair=signing_pair())
        self.facades = {name: offered(service_of(name), host) for name in ("iam", "sts")}
        self._gateway = Gateway(runtime, TrustAll("us-east-1"), self.facades, None)
        self.complaints = Complaints()

    @override
    def handle(self, request: Request) -> Awaitable[Response]:
        """See `Watched.handle`."""
        return self._gateway.answer(request)

    async def open(self) -> None:
        """Make something of everything."""
        logging.getLogger("redrive").addHandler(self.complaints)
        await self.engine.open()
        await self.call("CreatePolicy", PolicyName="reads", PolicyDocument=READS)
        await self.call("CreatePolicyVersion", PolicyArn=POLICY, PolicyDocument=READS)
        await self.call("CreateUser", UserName="ann", PermissionsBoundary=AMAZON)
        await self.call("CreateGroup", GroupName="readers")
        await self.call("AddUserToGroup", GroupName="readers", UserName="ann")
        await self.call("CreateRole", RoleName="worker", AssumeRolePolicyDocument=TRUST)
        await self.call("CreateRole", RoleName="idle", AssumeRolePolicyDocument=TRUST)
        await self.call("CreateServiceLinkedRole", AWSServiceName="batch.amazonaws.com")
        await self.call("PutRolePermissionsBoundary", RoleName="worker", PermissionsBoundary=POLICY)
        await self.call("CreateInstanceProfile", InstanceProfileName="machine")
        await self.call("CreateInstanceProfile", InstanceProfileName="empty")
        await self.call("AddRoleToInstanceProfile", InstanceProfileName="machine", RoleName="worker")
        for word, name in (("User", "ann"), ("Group", "readers"), ("Role", "worker")):
            named = {f"{word}Name": name}
            await self.call(f"Put{word}Policy", **named, PolicyName="own", PolicyDocument=READS)
            await self.call(f"Attach{word}Policy", **named, PolicyArn=POLICY)
        made = await self.call("CreateAccessKey", UserName="ann")
        self.known[KEY] = made["AccessKey"]["AccessKeyId"]

    async def close(self) -> None:
        """See `Watched.close`."""
        logging.getLogger("redrive").removeHandler(self.complaints)
        await super().close()

    async def call(self, operation: str, **params: Any) -> dict[str, Any]:
        """The answer to a call of IAM that is carried out."""
        client = CLIENTS["iam"]
        response = await self.answer(client.request(operation, params))
        assert response.status == 200, (operation, response.body)
        return client.answer(operation, response)
