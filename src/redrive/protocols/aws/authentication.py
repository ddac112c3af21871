"""Who calls: proven by a signature, or believed."""

from dataclasses import dataclass
from typing import Protocol

from redrive.access.keyring import Keyring
from redrive.access.keys import ANY_ACCOUNT, account_of_key_id
from redrive.access.principals import Principal, account_root
from redrive.engine.ports import Clock
from redrive.protocols.aws.wire.errors import common
from redrive.protocols.aws.wire.sigv4 import SignatureRefused, credential_scope, verify
from redrive.protocols.http import Request


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and for which region the call is signed."""

    principal: Principal
    region: str


class Authentication(Protocol):
    """A way to tell who calls."""

    async def caller(self, request: Request, service: str) -> Caller:
        """Who sent this request to the service of that signing name.

        Raises:
            AwsError: Nobody who is believed.
        """
        ...


class Believing:
    """Believe what the credential says, signed or not: for loopback alone."""

    def __init__(self, region: str) -> None:
        """Take requests without a credential for calls from this region."""
        self._nobody = Caller(account_root(ANY_ACCOUNT), region)
        self._callers: dict[tuple[str, str], Caller] = {}

    async def caller(self, request: Request, service: str) -> Caller:  # noqa: ARG002 - as Authentication
        """See `Authentication.caller`; refuses nobody."""
        scope = credential_scope(request)
        if scope is None:
            return self._nobody
        known = self._callers.get((scope.access_key_id, scope.region))
        if known is None:
            if len(self._callers) > 1024:  # noqa: PLR2004 - as many as `account_root` remembers
                self._callers.clear()
            known = Caller(account_root(account_of_key_id(scope.access_key_id)), scope.region)
            self._callers[scope.access_key_id, scope.region] = known
        return known


class Verifying:
    """Believe a signature by a key of the keyring, and nothing else."""

    def __init__(self, keyring: Keyring, clock: Clock) -> None:
        """Look keys up here.

        Args:
            keyring: Whose keys are believed.
            clock: The one that signers look at: the system's, also where deliveries live on a simulated one.
        """
        self._keyring = keyring
        self._clock = clock

    async def caller(self, request: Request, service: str) -> Caller:
        """See `Authentication.caller`."""
        scope = credential_scope(request)
        key = None if scope is None else await self._keyring.get(scope.access_key_id)
        secret = None if key is None else key.secret
        try:
            signed = verify(request, lambda _: secret, self._clock.now(), service=service)
        except SignatureRefused as refusal:
            raise common(refusal.json_code, refusal.message) from None
        if key is None:
            raise common(
                "UnrecognizedClientException", "The security token included in the request is invalid."
            )
        return Caller(account_root(key.account), signed.region)
