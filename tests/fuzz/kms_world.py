"""KMS in memory, with a key of each kind in each state, an alias, a grant, and something that was encrypted."""

import random
from base64 import b64encode
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, Final

from typing_extensions import override

from redrive.aws.gateway.authentication import TrustAll
from redrive.aws.gateway.gateway import Gateway
from redrive.aws.kit.service import offered
from redrive.aws.kms.service import SERVICE
from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.model.http import Request, Response
from redrive.stores.seal import Seal
from tests.fuzz.json_world import JsonWorld

#: They stand for what only the server knows.
KEY, RSA, CURVE, SHARED, MAC, EXTERNAL, MULTI, OFF = (
    "<key>",
    "<rsa>",
    "<curve>",
    "<shared>",
    "<mac>",
    "<external>",
    "<multi>",
    "<off>",
)
BLOB, SIGNATURE, GRANT, TOKEN = "<blob>", "<signature>", "<grant>", "<token>"
MESSAGE: Final = b64encode(b"an order").decode()
_KINDS: Final[dict[str, dict[str, Any]]] = {
    KEY: {},
    RSA: {"KeySpec": "RSA_2048", "KeyUsage": "ENCRYPT_DECRYPT"},
    CURVE: {"KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY"},
    SHARED: {"KeySpec": "ECC_NIST_P256", "KeyUsage": "KEY_AGREEMENT"},
    MAC: {"KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC"},
    EXTERNAL: {"Origin": "EXTERNAL"},
    MULTI: {"MultiRegion": True},
    OFF: {},
}


class KmsWorld(JsonWorld):
    """KMS on a store in memory."""

    target = "TrentService"

    def __init__(self) -> None:
        super().__init__()
        runtime = Runtime(self._clock, random.Random(7), "node")
        self.engine = Engine(self._store, runtime)
        seal = Seal((b"r" * 32,), runtime.rng.randbytes)
        self.kms = offered(SERVICE, SimpleNamespace(engine=self.engine, root_key=seal))
        self._gateway = Gateway(runtime, TrustAll("us-east-1"), {"kms": self.kms}, None)

    @override
    def handle(self, request: Request) -> Awaitable[Response]:
        return self._gateway.answer(request)

    @override
    async def open(self) -> None:
        """Make something of everything."""
        await self.engine.open()
        for name, params in _KINDS.items():
            self.known[name] = (await self.call("CreateKey", **params))["KeyMetadata"]["KeyId"]
        key = self.known[KEY]
        await self.call("CreateAlias", AliasName="alias/a", TargetKeyId=key)
        self.known[BLOB] = (await self.call("Encrypt", KeyId=key, Plaintext=MESSAGE))["CiphertextBlob"]
        signed = await self.call(
            "Sign", KeyId=self.known[CURVE], Message=MESSAGE, SigningAlgorithm="ECDSA_SHA_256"
        )
        self.known[SIGNATURE] = signed["Signature"]
        granted = await self.call(
            "CreateGrant",
            KeyId=key,
            GranteePrincipal="arn:aws:iam::000000000000:root",
            RetiringPrincipal="arn:aws:iam::000000000000:root",
            Operations=["Decrypt"],
        )
        self.known[GRANT], self.known[TOKEN] = granted["GrantId"], granted["GrantToken"]
        await self.call("ScheduleKeyDeletion", KeyId=self.known[OFF], PendingWindowInDays=7)
        await self.settle()
