"""Authentication of callers: by a signature, or by trusting all; and the holders of access keys."""

from dataclasses import dataclass
from typing import Final, Protocol

from redrive.access.keys import ANY_ACCOUNT, Keyring, account_of_key_id
from redrive.access.principals import Principal, account_root
from redrive.access.refusals import Refusals
from redrive.access.secret import Session, SessionTokens, is_temporary
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.s3_routes import bucket_of_host
from redrive.aws.wire.errors import common
from redrive.aws.wire.signatures.sigv2_query import is_presigned_v2, scope_v2, verify_v2
from redrive.aws.wire.signatures.sigv4 import (
    CredentialScope,
    SignatureMismatch,
    UnknownKey,
    VerifiedSignature,
    credential_scope,
    credential_text,
    is_region,
    normal_path,
    verify,
    wrong_region,
)
from redrive.aws.wire.signatures.sigv4_request import SignatureRefused, token_of
from redrive.aws.wire.signatures.sigv4_s3 import verify_s3
from redrive.engine.ports import Clock
from redrive.model.http import Request


class ExpiredToken(SignatureRefused):
    """The session is over (recorded)."""

    code = "ExpiredToken"
    json_code = "ExpiredTokenException"

    def __init__(self) -> None:
        super().__init__("The security token included in the request is expired")


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a key."""

    secret: str  # The holder signs with it
    account: str  # Twelve digits
    user: str = ""  # The name of the user whose key it is; empty: it is the account's own, or a session's
    session: Session | None = None  # The session that the key is for; None: it is a lasting one


class Holders:
    """Tells whose a key is.

    Attributes:
        uses: When lasting keys were used last.
    """

    def __init__(
        self,
        keyring: Keyring,
        identities: Identities | None = None,
        tokens: SessionTokens | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Find holders in these.

        Args:
            keyring: The lasting keys.
            identities: Users and roles; None: there are none.
            tokens: Reads those of sessions; None: there are none.
            clock: Says when sessions are over: the engine's.
        """
        self._keyring = keyring
        self.uses = keyring.uses
        self._identities = identities
        self._tokens = tokens
        self._clock = clock

    async def of(self, access_key_id: str, token: str) -> Holder | None:
        """The holder of an access key; None: this server has no such key.

        Args:
            access_key_id: The key's.
            token: What came along with it; only temporary keys need any.
        """
        if not is_temporary(access_key_id):
            key = await self._keyring.find(access_key_id)
            return None if key is None else Holder(key.secret, key.account, key.user)
        session = None if self._tokens is None else self._tokens.read(access_key_id, token)
        if session is None or self._tokens is None:
            return None
        return Holder(self._tokens.secret(access_key_id), session.account, session=session)

    async def principal(self, holder: Holder) -> Principal | None:
        """The caller that a holder is; None: the user or the role is there no more."""
        if holder.session is None and not holder.user:
            return account_root(holder.account)
        if self._identities is None:
            return None
        if holder.session is None:
            return await self._identities.user(holder.account, holder.user)
        return await self._identities.session(holder.session)

    def check_current(self, holder: Holder) -> None:
        """Refuse an expired session; raises ExpiredToken."""
        session = holder.session
        if session is not None and self._clock is not None and session.expires_at <= self._clock.now():
            raise ExpiredToken


#: The signing name of Redrive's own routes, which no policy speaks of.
OWN_ROUTES: Final = "redrive"
_ACCOUNTS_OWN: Final = "This route is for an account's own access keys, not for its users and roles."
_OWN_KEY_PREFIXES: Final = ("AKIA", "ASIA")  # the beginnings of ids of keys that are made here


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, and the region that the call is signed for."""

    principal: Principal
    region: str
    # The id of the lasting key whose use is to be noted; empty: there is none, or it is noted already.
    noted_key: str = ""


class Authentication(Protocol):
    """A way to tell who calls."""

    def remembered_caller(self, request: Request, service: str) -> Caller | None:
        """The caller, where this node remembers it by the credential, so that nothing is awaited; None: ask `caller`."""
        ...

    async def caller(self, request: Request, service: str) -> Caller:
        """The caller of this request to the service of that signing name.

        Raises:
            AwsError: Nobody who is let in.
        """
        ...


class TrustAll:
    """Takes every credential at its word, signed or not: for loopback alone."""

    def __init__(self, region: str, holders: Holders | None = None) -> None:
        """Take requests without a credential for calls from this region.

        Args:
            region: Of calls without one.
            holders: Tells the names of users and roles, to whom all is allowed as well.
        """
        self._region = region
        self._holders = holders
        self._uses = None if holders is None else holders.uses
        self._nobody = Caller(account_root(ANY_ACCOUNT), region)
        self._callers: dict[str, Caller] = {}  # by the credentials that they show

    def remembered_caller(self, request: Request, service: str) -> Caller | None:
        """The caller, if it has called before, as nearly every caller has; None: ask `caller`."""
        caller = self._callers.get(credential_text(request))
        return None if caller is None else self._note_use(caller, service)

    async def caller(self, request: Request, service: str) -> Caller:
        """The caller that a request claims to be of; raises AwsError if its region is none."""
        scope = _scope(request, service, self._region)
        if scope is None:
            return self._nobody
        credential = credential_text(request)
        caller = self._callers.get(credential)
        if caller is None:
            if not is_region(scope.region):
                raise common(SignatureMismatch.json_code, wrong_region(scope.region))
            if len(self._callers) > 1024:  # noqa: PLR2004 - as many as `account_root` remembers
                self._callers.clear()
            caller = await self._claimed_caller(request, scope)
            if credential:  # S3's older URLs have none of the kind
                self._callers[credential] = caller
        return self._note_use(caller, service)

    def _note_use(self, caller: Caller, service: str) -> Caller:
        """The caller; the use of its key is noted."""
        if caller.noted_key and self._uses is not None:
            self._uses.note(caller.noted_key, service, caller.region)
        return caller

    async def _claimed_caller(self, request: Request, scope: CredentialScope) -> Caller:
        """The holder of a key that was created here, or else the account that the key's id stands for; unverified."""
        key_id = scope.access_key_id
        if self._holders is not None and key_id.startswith(_OWN_KEY_PREFIXES):
            holder = await self._holders.of(key_id, token_of(request))
            principal = None if holder is None else await self._holders.principal(holder)
            if holder is not None and principal is not None:
                return Caller(principal, scope.region, "" if holder.session else key_id)
        return Caller(account_root(account_of_key_id(key_id)), scope.region)


class SigV4Verifier:
    """Accepts only requests that are signed with a key of the keyring."""

    def __init__(
        self, holders: Holders, clock: Clock, refusals: Refusals | None = None, region: str = "us-east-1"
    ) -> None:
        """Look keys up here.

        Args:
            holders: Whose keys count.
            clock: The one that signers look at: the system's, also where deliveries live on a simulated one.
            refusals: Where those who are not let in are counted.
            region: That of callers whose signature names none.
        """
        self._holders = holders
        self._clock = clock
        self._refusals = Refusals(clock) if refusals is None else refusals
        self._region = region

    def remembered_caller(self, request: Request, service: str) -> Caller | None:  # noqa: ARG002 - the other way needs them
        """None: each request is verified anew."""
        return None

    async def caller(self, request: Request, service: str) -> Caller:
        """The caller whose key has signed the request; raises AwsError if the signature is not valid."""
        scope = _scope(request, service, self._region)
        holder = None if scope is None else await self._holders.of(scope.access_key_id, token_of(request))
        try:
            signature = self._verify(request, None if holder is None else holder.secret, service)
            if holder is None:
                raise UnknownKey
            self._holders.check_current(holder)
            principal = await self._holders.principal(holder)
            if principal is None:
                raise UnknownKey
        except SignatureRefused as refusal:
            self._refuse(request, scope, refusal)
            raise common(refusal.json_code, refusal.message) from None
        if principal.permissions is not None and service == OWN_ROUTES:  # a user or a role
            raise common("AccessDeniedException", _ACCOUNTS_OWN)
        if scope is not None and holder.session is None:
            self._holders.uses.note(scope.access_key_id, service, signature.region)
        return Caller(principal, signature.region)

    def _verify(self, request: Request, secret: str | None, service: str) -> VerifiedSignature:
        """Verify the signature of a request; raises SignatureRefused. A secret of None fits no signature."""
        if service == "s3":
            return self._verify_s3(request, secret)
        path = request.path
        # Signers normalise paths and routes do not: `/_aws/sqs/messages/../../..` would be signed like `/`.
        if path != "/" and normal_path(path) != path:
            raise SignatureMismatch("The path of a signed request has no empty segments and no dot segments.")
        return verify(request, lambda _: secret, self._clock.now(), service=service)

    def _verify_s3(self, request: Request, secret: str | None) -> VerifiedSignature:
        now = self._clock.now()
        if is_presigned_v2(request) and "authorization" not in request.headers:
            return verify_v2(request, bucket_of_host(request.host), lambda _: secret, now, self._region)
        return verify_s3(request, lambda _: secret, now)

    def _refuse(self, request: Request, scope: CredentialScope | None, refusal: SignatureRefused) -> None:
        identity = "" if scope is None else scope.access_key_id
        self._refusals.add(refusal.code, address=request.client_host, identity=identity)


def _scope(request: Request, service: str, region: str) -> CredentialScope | None:
    """The scope that a credential claims; S3's older URLs claim less than others."""
    scope = credential_scope(request)
    if scope is None and service == "s3" and is_presigned_v2(request):
        return scope_v2(request, region)
    return scope
