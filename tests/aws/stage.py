"""A whole server in memory, on a simulated clock, that insists on signatures; requests are botocore's own."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, NamedTuple, Self

import orjson
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from redrive.access.keys import new_access_key
from redrive.app import Server, assembled
from redrive.aws.wire.profiles import profile_of, profiles
from redrive.model.http import Request, Response
from redrive.settings import Settings
from tests.aws.wire.clients import Client

ACCOUNT: Final = "111111111111"
OTHER: Final = "222222222222"
REGION: Final = "us-east-1"
HOST: Final = "localhost:4566"
_SIGNED_NAMES: Final = {name: profile.endpoint_prefix for name, profile in profiles().items()}


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
        key = new_access_key(account, runtime.clock.now(), runtime.rng)
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
            self._clients[service] = Client(service, min(profile_of(service).protocols))
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

    async def settle_keys(self) -> None:
        """Forget all keys, as nodes do after five seconds of real time."""
        for key in await self.server.core.keyring.all():
            self.server.core.keyring.forget(key.access_key_id)

    async def advance(self, seconds: int) -> None:
        """Move the clock."""
        assert self.server.time is not None
        await self.server.time.advance(seconds * 1000)

    # ---- who there is ----------------------------------------------------------------------------------

    async def user(self, name: str, *statements: Mapping[str, Any], **params: Any) -> Key:
        """A new user with a policy of these statements, and its key."""
        await self.call(self.root, "iam", "CreateUser", UserName=name, **params)
        await self.own_policy("User", name, *statements)
        made = (await self.call(self.root, "iam", "CreateAccessKey", UserName=name))["AccessKey"]
        return Key(made["AccessKeyId"], made["SecretAccessKey"])

    async def role(self, name: str, trusted: object, *statements: Mapping[str, Any], **params: Any) -> str:
        """The ARN of a new role with a policy of these statements, trusting somebody."""
        trust = {"Effect": "Allow", "Principal": trusted, "Action": "sts:*", **params.pop("trust", {})}
        params["AssumeRolePolicyDocument"] = policy(trust)
        made = await self.call(self.root, "iam", "CreateRole", RoleName=name, **params)
        await self.own_policy("Role", name, *statements)
        arn: str = made["Role"]["Arn"]
        return arn

    async def own_policy(self, word: str, name: str, *statements: Mapping[str, Any]) -> None:
        """Give a user, a group or a role an inline policy of these statements."""
        if statements:
            named = {f"{word}Name": name, "PolicyName": "own", "PolicyDocument": policy(*statements)}
            await self.call(self.root, "iam", f"Put{word}Policy", **named)

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
    signer = S3SigV4Auth if service == "s3" else SigV4Auth
    signer(Credentials(*key), _SIGNED_NAMES.get(service, service), REGION).add_auth(aws_request)
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
