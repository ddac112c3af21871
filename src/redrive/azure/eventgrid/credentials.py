"""Credentials of publishers and consumers: keys, what is signed with them, and bearer tokens.

    aeg-sas-key: <key>                                          also as a parameter of the URL
    Authorization: SharedAccessKey <key>                        at namespaces
    aeg-sas-token: r=…&e=…&s=…                                  signed with a key
    Authorization: SharedAccessSignature r=…&e=…&s=…
    Authorization: Bearer <token of somebody who manages the Azure subscription>

The first of these that a request has decides. A resource that does not exist is checked as one without keys, so that
its refusals tell nobody which names are taken. Source: "Authenticate Azure Event Grid clients using access keys or
shared access signatures".

A signed token has a resource, the moment when it ends, and the HMAC-SHA256 of all before in base64, each encoded. What is
signed is the text as it came. Every client encodes in its own way (a blank as `%20` or `+`, hexadecimal in either case),
so nothing here is decoded and encoded anew.
"""

import base64
import binascii
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Final, NamedTuple, Self
from urllib.parse import parse_qs, unquote, unquote_plus, urlsplit

from redrive.access.refusals import Refusals
from redrive.azure.wire.answers import AzureError
from redrive.azure.wire.bearer import BearerAuthentication
from redrive.engine.ports import Clock
from redrive.model.http import Request

_SIGNED_BY: Final = "&s="
# .NET writes moments as its culture does, and since it has ICU with a narrow blank before AM and PM.
_AMERICAN: Final = ("%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M:%S %p %z")
_SHOWN_CHARS_MAX: Final = 64  # of what a stranger sent; the answer stands in a log too
_NARROW_BLANK: Final = "\u202f"


_OWN_HOST: Final = ".eventgrid."  # part of the resource's own host


class TokenPlace(NamedTuple):
    """One way to name what a token is for."""

    path: str  # Its path, or its ARM id
    hosts: tuple[str, ...] = ()  # The hosts that the path is at; empty with an ARM id
    label: str = ""  # The beginning of the host that the path is at, where the resource has one of its own

    def is_at(self, host: str) -> bool:
        """Tells whether the place is at a host, which may be empty."""
        if self.label:
            return host.startswith(f"{self.label.lower()}.") and _OWN_HOST in host
        return host in map(_without_port, self.hosts) if self.hosts else not host


@dataclass(frozen=True, slots=True)
class SasToken:
    """A token, read."""

    signed_text: str  # The part that the signature is of
    signature: bytes  # The signature itself
    resource: str  # Resource it is valid for: a URL, or a resource id
    expires_at: int  # Time of expiry (ms)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a token; raises ValueError if the text is not a token."""
        signed_text, separator, signature = text.strip().rpartition(_SIGNED_BY)
        pairs = [part.partition("=") for part in signed_text.split("&")]
        fields = {name: value for name, _, value in pairs}
        if not separator or "r" not in fields or "e" not in fields:
            raise ValueError("The token does not have the form r=…&e=…&s=…")
        try:
            signature_bytes = base64.b64decode(unquote(signature), validate=True)
        except binascii.Error:
            raise ValueError("The signature is not Base64") from None
        return cls(
            signed_text, signature_bytes, unquote_plus(fields["r"]), _moment(unquote_plus(fields["e"]))
        )

    def is_signed_with(self, keys: Iterable[str]) -> bool:
        """Tells whether the signature was made with one of these keys (base64)."""
        signatures = [hmac.digest(base64.b64decode(key), self.signed_text.encode(), "sha256") for key in keys]
        return any(hmac.compare_digest(signature, self.signature) for signature in signatures)

    def is_for(self, *places: TokenPlace) -> bool:
        """Tells whether the token is for a resource with these names, or for something above it.

        The scheme does not count: a server behind a proxy does not know by which one it was called.
        """
        try:
            parts = urlsplit(self.resource)
        except ValueError:
            return False
        host, path = _without_port(parts.netloc), parts.path.rstrip("/").lower()
        if not host and not path:
            return False
        return any(
            resource.is_at(host) and f"{resource.path.lower()}/".startswith(f"{path}/") for resource in places
        )


def check_token(text: str, keys: Iterable[str], places: Iterable[TokenPlace], now: int) -> None:
    """Let a token pass that one of these keys (base64) signed for one of the names of a resource.

    Raises:
        ValueError: The token does not open that resource; the text says why.
    """
    token = SasToken.parse(text)
    if not token.is_signed_with(keys):
        raise ValueError("The signature is not one of this resource's keys")
    if not token.is_for(*places):
        raise ValueError("The token is for another resource")
    if token.expires_at <= now:
        raise ValueError("The token has expired")


def _without_port(host: str) -> str:
    """A host as it is compared: the usual ports go without saying."""
    return host.lower().removesuffix(":443").removesuffix(":80")


def _moment(text: str) -> int:
    """The expiry of a token in ISO 8601 or as America writes it (ms); raises ValueError."""
    plain = text.replace(_NARROW_BLANK, " ")
    for form in _AMERICAN:
        try:
            return _milliseconds(datetime.strptime(plain, form))  # noqa: DTZ007 - UTC where it does not say
        except ValueError:
            continue
    try:
        return _milliseconds(datetime.fromisoformat(plain))
    except ValueError:
        raise ValueError(f"The token's expiry is not a time: {text[:_SHOWN_CHARS_MAX]}") from None


def _milliseconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)


KEY: Final = "aeg-sas-key"
SIGNED: Final = "aeg-sas-token"
_SIGNATURE: Final = "sharedaccesssignature"
_BEARER: Final = "bearer"
#: To read a header or a query of 16 KiB and more would take milliseconds, for whoever sends it.
_CREDENTIAL_CHARS_MAX: Final = 4096
_QUERY_FIELDS_MAX: Final = 64


class CredentialFault(Enum):
    """The reason that credentials do not open a resource."""

    ABSENT = auto()
    KEYS_OFF = auto()
    EMPTY_KEY = auto()
    KEY = auto()
    TOKEN = auto()
    BEARER = auto()
    ACCOUNT = auto()


#: The reasons that refusals are counted by; those of bearers are counted where bearers are checked.
_COUNTED: Final = {
    CredentialFault.ABSENT: "CredentialMissing",
    CredentialFault.KEYS_OFF: "LocalAuthDisabled",
    CredentialFault.EMPTY_KEY: "AccessKeyInvalid",
    CredentialFault.KEY: "AccessKeyInvalid",
    CredentialFault.TOKEN: "SharedAccessSignatureInvalid",
    CredentialFault.ACCOUNT: "SubscriptionOfAnotherAccount",
}


class NotAdmitted(Exception):  # noqa: N818 - an answer, named as a caller says it
    """Credentials that do not open a resource, or none.

    Attributes:
        cause: What is wrong with them.
        detail: The text about a token or a bearer, for people.
    """

    def __init__(self, cause: CredentialFault, detail: str = "") -> None:
        super().__init__(f"{cause.name}: {detail}")
        self.cause = cause
        self.detail = detail


@dataclass(frozen=True, slots=True)
class GuardedResource:
    """A resource that a request wants to open."""

    account: str  # The Azure subscription, in lower case; empty if the request does not say
    keys: Sequence[str]  # The access keys, in base64; none of a resource that does not exist
    path: str  # The path that names it at this server
    name: str  # Its name, which a host of its own would begin with
    path_at_host: str  # The path that names it at a host of its own
    id: str = ""  # Its ARM id, or empty
    takes_keys: bool = True  # Keys and what is signed with them may open it
    key_scheme: str = ""  # The scheme of Authorization for keys, in lower case; empty: keys do not come so


class PublisherCredentials:
    """Checks what requests bring.

    Attributes:
        required: Whether credentials are looked at at all.
    """

    def __init__(
        self,
        authentication: BearerAuthentication,
        clock: Clock,
        public_url: str | None = None,
        *,
        required: bool,
        refusals: Refusals | None = None,
    ) -> None:
        # `refusals`: where requests are counted that nothing is opened for
        self._refusals = Refusals(clock) if refusals is None else refusals
        self._authentication = authentication
        self._clock = clock
        # `public_url`: what clients call this server besides the host of their requests
        self._public_host = urlsplit(public_url or "").netloc
        self.required = required

    async def check(self, request: Request, resource: GuardedResource) -> None:
        """Let a request pass; raises NotAdmitted if it brings nothing that opens the resource."""
        if not self.required:
            return
        try:
            await self._check(request, resource)
        except NotAdmitted as refusal:
            reason = _COUNTED.get(refusal.cause)
            if reason is not None:
                self._refusals.add(reason, address=request.client_host, identity=resource.name)
            raise

    async def _check(self, request: Request, resource: GuardedResource) -> None:
        """Let a request pass by its first credential; keys and tokens count only where the resource takes them."""
        key, token, bearer = _credential_of(request, resource.key_scheme)
        if bearer:
            await self._check_bearer(request, resource)
        elif key is None and token is None:
            raise NotAdmitted(CredentialFault.ABSENT)
        elif not resource.takes_keys:
            raise NotAdmitted(CredentialFault.KEYS_OFF)
        elif key is not None:
            _check_key(key, resource)
        else:
            self._check_token(token or "", request, resource)

    async def _check_bearer(self, request: Request, resource: GuardedResource) -> None:
        """Let a bearer's token pass whose account the resource is of; raises NotAdmitted."""
        try:
            caller = await self._authentication.caller(request)
        except AzureError as refusal:
            raise NotAdmitted(CredentialFault.BEARER, refusal.message) from refusal
        if not caller.manages(resource.account):
            raise NotAdmitted(CredentialFault.ACCOUNT)

    def _check_token(self, text: str, request: Request, resource: GuardedResource) -> None:
        """Let a signed token pass for the resource at any host it is called by, or its id; raises NotAdmitted."""
        hosts = tuple(filter(None, (request.host, self._public_host)))
        places = (
            TokenPlace(resource.path, hosts=hosts),
            TokenPlace(resource.path_at_host, label=resource.name),
            TokenPlace(resource.id),
        )
        try:
            check_token(text, resource.keys, places, self._clock.now())
        except ValueError as error:
            raise NotAdmitted(CredentialFault.TOKEN, str(error)) from error


class _Credential(NamedTuple):
    key: str | None = None
    token: str | None = None
    bearer: bool = False


def _credential_of(request: Request, key_scheme: str) -> _Credential:
    """The first credential that a request has."""
    headers = request.headers
    key = headers.get(KEY)
    if key is None and KEY in request.query.lower():
        key = _key_in(request.query)
    if key is not None:
        return _Credential(key=key[:_CREDENTIAL_CHARS_MAX])
    if SIGNED in headers:
        return _Credential(token=headers[SIGNED][:_CREDENTIAL_CHARS_MAX])
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    scheme = scheme.lower()
    if scheme == _SIGNATURE:
        return _Credential(token=credential[:_CREDENTIAL_CHARS_MAX])
    if scheme and scheme == key_scheme:
        return _Credential(key=credential.strip()[:_CREDENTIAL_CHARS_MAX])
    return _Credential(bearer=scheme == _BEARER)


def _key_in(query: str) -> str | None:
    """The key that is a parameter of the URL."""
    try:
        query_fields = parse_qs(query[:_CREDENTIAL_CHARS_MAX], max_num_fields=_QUERY_FIELDS_MAX)
    except ValueError:
        return None
    fields = {name.lower(): values for name, values in query_fields.items()}
    return fields.get(KEY, [None])[0]


def _check_key(key: str, resource: GuardedResource) -> None:
    """Let one of the resource's keys pass; raises NotAdmitted."""
    if not key:
        raise NotAdmitted(CredentialFault.EMPTY_KEY)
    matches = [hmac.compare_digest(key.encode(), own_key.encode()) for own_key in resource.keys]
    if not any(matches):
        raise NotAdmitted(CredentialFault.KEY)
