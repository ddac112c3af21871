"""Authentication of callers: by a signature, or by trusting all."""

from dataclasses import dataclass
from typing import Protocol

from redrive.access.keyring import Keyring
from redrive.access.keys import ANY_ACCOUNT, account_of_key_id
from redrive.access.principals import Principal, account_root
from redrive.access.refusals import Refusals
from redrive.engine.ports import Clock
from redrive.protocols.aws.wire.errors import common
from redrive.protocols.aws.wire.s3_routes import bucket_of_host
from redrive.protocols.aws.wire.sigv2_query import is_presigned_v2, scope_v2, verify_v2
from redrive.protocols.aws.wire.sigv4 import (
    Scope,
    SignatureMismatch,
    SignatureRefused,
    Signed,
    UnknownKey,
    credential_scope,
    normal_path,
    verify,
)
from redrive.protocols.aws.wire.sigv4_s3 import verify_s3
from redrive.protocols.http import Request


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, and the region that the call is signed for."""

    principal: Principal
    region: str


class Authentication(Protocol):
    """A way to tell who calls."""

    async def caller(self, request: Request, service: str) -> Caller:
        """The caller of this request to the service of that signing name.

        Raises:
            AwsError: Nobody who is let in.
        """
        ...


class TrustAll:
    """Takes every credential at its word, signed or not: for loopback alone."""

    def __init__(self, region: str) -> None:
        """Take requests without a credential for calls from this region."""
        self._region = region
        self._nobody = Caller(account_root(ANY_ACCOUNT), region)
        self._callers: dict[tuple[str, str], Caller] = {}

    async def caller(self, request: Request, service: str) -> Caller:
        """See `Authentication.caller`; refuses nobody."""
        scope = _scope(request, service, self._region)
        if scope is None:
            return self._nobody
        known = self._callers.get((scope.access_key_id, scope.region))
        if known is None:
            if len(self._callers) > 1024:  # noqa: PLR2004 - as many as `account_root` remembers
                self._callers.clear()
            known = Caller(account_root(account_of_key_id(scope.access_key_id)), scope.region)
            self._callers[scope.access_key_id, scope.region] = known
        return known


class SigV4Verifier:
    """Lets in whoever signs with a key of the keyring, and nobody else."""

    def __init__(
        self, keyring: Keyring, clock: Clock, refusals: Refusals | None = None, region: str = "us-east-1"
    ) -> None:
        """Look keys up here.

        Args:
            keyring: Whose keys count.
            clock: The one that signers look at: the system's, also where deliveries live on a simulated one.
            refusals: Where those who are not let in are counted.
            region: That of callers whose signature names none.
        """
        self._keyring = keyring
        self._clock = clock
        self._refusals = Refusals(clock) if refusals is None else refusals
        self._region = region

    async def caller(self, request: Request, service: str) -> Caller:
        """See `Authentication.caller`."""
        scope = _scope(request, service, self._region)
        key = None if scope is None else await self._keyring.get(scope.access_key_id)
        secret = None if key is None else key.secret
        try:
            signed = self._verified(request, secret, service)
            if key is None:
                raise UnknownKey
        except SignatureRefused as refusal:
            self._refuse(request, scope, refusal)
            raise common(refusal.json_code, refusal.message) from None
        return Caller(account_root(key.account), signed.region)

    def _verified(self, request: Request, secret: str | None, service: str) -> Signed:
        if service == "s3":
            return self._verified_by_s3(request, secret)
        path = request.path
        # Signers normalise paths and routes do not: `/_aws/sqs/messages/../../..` would be signed like `/`.
        if path != "/" and normal_path(path) != path:
            raise SignatureMismatch("The path of a signed request has no empty segments and no dot segments.")
        return verify(request, lambda _: secret, self._clock.now(), service=service)

    def _verified_by_s3(self, request: Request, secret: str | None) -> Signed:
        now = self._clock.now()
        if is_presigned_v2(request) and "authorization" not in request.headers:
            return verify_v2(request, bucket_of_host(request.host), lambda _: secret, now, self._region)
        return verify_s3(request, lambda _: secret, now)

    def _refuse(self, request: Request, scope: Scope | None, refusal: SignatureRefused) -> None:
        identity = "" if scope is None else scope.access_key_id
        self._refusals.add(refusal.code, address=request.client_host, identity=identity)


def _scope(request: Request, service: str, region: str) -> Scope | None:
    """The scope that a credential claims; S3's older URLs claim less than others."""
    scope = credential_scope(request)
    if scope is None and service == "s3" and is_presigned_v2(request):
        return scope_v2(request, region)
    return scope
