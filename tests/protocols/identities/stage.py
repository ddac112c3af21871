"""A whole server in memory, on a simulated clock, that insists on signatures; requests are botocore's own."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self

import orjson
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from redrive.access.identities import ROLE, USER, Role, User
from redrive.access.keys import new_access_key
from redrive.app import Server, assembled
from redrive.protocols.http import Request, Response
from redrive.settings import Settings
from tests.protocols.wire.clients import Client

ACCOUNT: Final = "111111111111"
OTHER: Final = "222222222222"
REGION: Final = "us-east-1"
HOST: Final = "localhost:4566"
_PROTOCOLS: Final = {
    "iam": "query",
    "sts": "query",
    "sns": "query",
    "lambda": "rest-json",
    "s3": "rest-xml",
    "cloudformation": "query",
    "apigateway": "rest-json",
}


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """A call was refused."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


class Key(NamedTuple):
    """The credentials of a caller."""

    id: str
    secret: str
    token: str | None = None


class Stage:
    """The server, and keys of two accounts."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.root = Key("", "")
        self.stranger = Key("", "")
        self._clients: dict[str, Client] = {}

    async def open(self) -> Self:
        await self.server.open()
        self.root, self.stranger = await self.account_key(ACCOUNT), await self.account_key(OTHER)
        return self

    async def account_key(self, account: str) -> Key:
        """A key of an account's own."""
        runtime = self.server.core.runtime
        key = new_access_key(account, runtime.clock.now(), runtime.chance)
        await self.server.core.keyring.add(key)
        return Key(key.access_key_id, key.secret)

    async def call(self, key: Key | None, service: str, operation: str, /, **params: Any) -> dict[str, Any]:
        """The answer to a call.

        Raises:
            Refused: It was.
        """
        client = self.client(service)
        response = await self.send(signed(client.request(operation, params), service, key))
        answer = client.answer(operation, response)
        if response.status >= 400:
            error = answer["Error"]
            raise Refused(error["Code"], error.get("Message", answer.get("message", "")), response.status)
        return answer

    def client(self, service: str) -> Client:
        """Botocore for a service."""
        if service not in self._clients:
            self._clients[service] = Client(service, _PROTOCOLS.get(service, "json"))
        return self._clients[service]

    async def send(self, request: Request) -> Response:
        """The answer to a request as it stands."""
        return await self.server.router.answer(request)

    def own(self, method: str, path: str, key: Key) -> Request:
        """A request to one of Redrive's own routes."""
        return signed(Request(method, path, "", {"host": HOST}, b""), "redrive", key)

    async def refusal(self, key: Key | None, service: str, operation: str, /, **params: Any) -> str:
        """The code and the text of a refusal."""
        try:
            await self.call(key, service, operation, **params)
        except Refused as refused:
            return str(refused)
        raise AssertionError(f"{operation} was carried out")

    async def may(self, key: Key | None, service: str, operation: str, /, **params: Any) -> bool:
        """True if a call is carried out."""
        try:
            await self.call(key, service, operation, **params)
        except Refused as refused:
            if "is not authorized to perform" in refused.message:
                return False
            raise
        return True

    async def advance(self, seconds: int) -> None:
        """Move the clock."""
        assert self.server.time is not None
        await self.server.time.advance(seconds * 1000)

    # ---- who there is ----------------------------------------------------------------------------------

    async def user(self, name: str, *statements: Mapping[str, Any], **more: Any) -> Key:
        """A new user with a policy of these statements, and its key."""
        documents, core = self.server.core.engine.resources.documents, self.server.core
        own = {"own": policy(*statements)} if statements else {}
        unique_id = f"AIDA{name.upper():A<17}"
        made = User(ACCOUNT, "/", name, unique_id, 0, inline=own, **more)
        await documents.create(USER, made.key, made)
        key = replace(new_access_key(ACCOUNT, 0, core.runtime.chance), user=name)
        await core.keyring.add(key)
        return Key(key.access_key_id, key.secret)

    async def role(self, name: str, trusted: object, *statements: Mapping[str, Any], **more: Any) -> str:
        """The ARN of a new role with a policy of these statements, trusting somebody."""
        trust = {"Effect": "Allow", "Principal": trusted, "Action": "sts:*", **more.pop("trust", {})}
        own = {"own": policy(*statements)} if statements else {}
        unique_id = f"AROA{name.upper():A<17}"
        made = Role(ACCOUNT, "/", name, unique_id, 0, inline=own, trust=policy(trust), **more)
        await self.server.core.engine.resources.documents.create(ROLE, made.key, made)
        return made.arn

    async def assume(self, key: Key | None, role: str, session: str = "run", /, **params: Any) -> Key:
        """The key of a session."""
        answer = await self.call(key, "sts", "AssumeRole", RoleArn=role, RoleSessionName=session, **params)
        return key_of(answer["Credentials"])


def key_of(credentials: Mapping[str, Any]) -> Key:
    """Temporary credentials."""
    return Key(credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials["SessionToken"])


def signed(request: Request, service: str, key: Key | None) -> Request:
    """A request with its signature."""
    if key is None:
        return request
    url = f"http://{HOST}{request.path}{'?' if request.query else ''}{request.query}"
    headers = {**request.headers, "host": HOST}
    aws_request = AWSRequest(request.method, url, data=request.body, headers=headers)
    names = {"cloudwatch": "monitoring"}
    SigV4Auth(Credentials(*key), names.get(service, service), REGION).add_auth(aws_request)
    return Request(
        request.method,
        request.path,
        request.query,
        {name.lower(): str(value) for name, value in aws_request.headers.items()},
        request.body,
    )


def policy(*statements: Mapping[str, Any]) -> str:
    """A policy; an action without more is one that is allowed everywhere."""
    return orjson.dumps({"Version": "2012-10-17", "Statement": list(statements)}).decode()


def allow(*actions: str, on: str = "*", **more: Any) -> dict[str, Any]:
    """A statement that allows."""
    return {"Effect": "Allow", "Action": list(actions), "Resource": on, **more}


def deny(*actions: str, on: str = "*", **more: Any) -> dict[str, Any]:
    """A statement that denies."""
    return {"Effect": "Deny", "Action": list(actions), "Resource": on, **more}


def on_stage(play: Callable[[Stage], Awaitable[None]], **settings: Any) -> None:
    """Play on a stage of its own."""

    async def run() -> None:
        chosen = {
            "auth": "required",
            "clock": "simulated",
            "store": "sqlite://:memory:",
            "port": 0,
            **settings,
        }
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(assembled(Settings(**chosen), f"http://{HOST}"))
            await play(await Stage(server).open())

    asyncio.run(run())
