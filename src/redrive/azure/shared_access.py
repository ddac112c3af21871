"""Shared access signatures of storage accounts: what a URL with one lets its bearer do.

https://learn.microsoft.com/rest/api/storageservices/create-service-sas and `…/create-account-sas`. Signatures by a
user's delegation key are not offered: the server issues no such keys.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, NamedTuple

from redrive.access.refusals import Refusals
from redrive.azure.arm.storage import StorageAccounts
from redrive.azure.storage_keys import StorageKeys
from redrive.azure.wire.answers import AzureError
from redrive.azure.wire.bearer import BearerAuthentication
from redrive.engine.ports import Clock
from redrive.model.http import Request

#: The parameters of a signature, which are none of an operation.
PARAMETERS: Final = frozenset(
    {
        *("sv", "ss", "srt", "sr", "sp", "st", "se", "sip", "spr", "si", "ses", "sig"),
        *("snapshot", "rscc", "rscd", "rsce", "rscl", "rsct"),
    }
)
_WITH_SCOPE: Final = "2020-12-06"  # from this version on the text has a scope of encryption
_OLDEST: Final = "2018-11-09"
_FORMS: Final = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ", "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S.%fZ")


class Act(NamedTuple):
    """One act on a storage account."""

    # `s`, `c` or `o`: the service, a container, or a blob, as signatures of accounts name their types.
    resource: str
    permissions: str  # The letters each of which allows it
    container: str = ""  # The container's name; empty: none
    blob: str = ""  # The blob's name; empty: none


def allows(
    keys: StorageKeys, account: str, query: Mapping[str, str], act: Act, request: Request, now: int
) -> bool:
    """True if a URL's signature is one of an account's keys', is in force (ms), and allows an act.

    The names in `query` are in lower case.
    """
    if query.get("sv", "") < _OLDEST or query.get("si"):
        return False  # no policies are stored that `si` could name
    if not _in_force(query, now) or not _from_there(query, request):
        return False
    if not set(act.permissions) & set(query.get("sp", "")):
        return False
    if "ss" not in query:
        text = _of_service(account, query, act)
    elif "b" in query["ss"] and act.resource in query.get("srt", ""):
        text = _of_account(account, query)
    else:
        return False  # for services other than blobs, or for other kinds of resources
    return bool(text) and keys.signs(account, text, query.get("sig", ""))


def _of_account(account: str, query: Mapping[str, str]) -> str:
    names = ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv")
    scope = ("ses",) if query["sv"] >= _WITH_SCOPE else ()
    return "\n".join([account, *(query.get(name, "") for name in (*names, *scope)), ""])


def _of_service(account: str, query: Mapping[str, str], act: Act) -> str:
    """The text that was signed for a container or a blob; empty: the act is about something else."""
    kind = query.get("sr")
    listing = act.resource == "c" and act.permissions == "l"
    if kind == "c" and (act.resource == "o" or listing):
        resource = f"/blob/{account}/{act.container}"
    elif kind == "b" and act.resource == "o":
        resource = f"/blob/{account}/{act.container}/{act.blob}"
    else:
        return ""
    fields = {**query, "resource": resource}
    scope = ("ses",) if query["sv"] >= _WITH_SCOPE else ()
    names = (
        *("sp", "st", "se", "resource", "si", "sip", "spr", "sv", "sr", "snapshot"),
        *scope,
        *("rscc", "rscd", "rsce", "rscl", "rsct"),
    )
    return "\n".join(fields.get(name, "") for name in names)


def _in_force(query: Mapping[str, str], now: int) -> bool:
    begins, ends = _moment(query.get("st", "")), _moment(query.get("se", ""))
    return ends is not None and now < ends and ("st" not in query or (begins is not None and begins <= now))


def _moment(text: str) -> int | None:
    """A moment in one of the forms of signatures, in milliseconds; None: it is in none of them."""
    for form in _FORMS:
        try:
            return int(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
    return None


def _from_there(query: Mapping[str, str], request: Request) -> bool:
    """True if a request comes from the addresses, and by the protocol, that a signature is for."""
    if request.scheme not in query.get("spr", "https,http").split(","):
        return False
    if "sip" not in query:
        return True
    first, _, last = query["sip"].partition("-")
    try:
        client, begin, end = ip_address(request.client_host), ip_address(first), ip_address(last or first)
    except ValueError:
        return False
    return client.version == begin.version == end.version and int(begin) <= int(client) <= int(end)


# Access to a storage account: by one of its keys, a signature made with one, or a token of the account it belongs to.


class BlobAccess:
    """Lets in requests and URLs signed with a key of their storage account, and those with its owner's token."""

    def __init__(
        self,
        accounts: StorageAccounts,
        keys: StorageKeys,
        bearer: BearerAuthentication,
        clock: Clock,
        refusals: Refusals,
    ) -> None:
        self._accounts = accounts
        self._keys = keys
        self._bearer = bearer
        self._clock = clock
        self._refusals = refusals

    async def check(self, request: Request, account: str, act: Act, signature: Mapping[str, str]) -> None:
        """Check permission to use a storage account; `signature` has the URL's parameters of one, or none.

        Raises:
            AzureError: The signature or the token is wrong, or the account is another's.
        """
        if request.headers.get("authorization", "")[:7].lower() == "bearer ":
            caller = await self._bearer.caller(request)
            if caller.account is not None:
                await self._accounts.check_owner(account, caller.account)
            return
        now = self._clock.now()
        if "sig" in signature:
            is_allowed = allows(self._keys, account, signature, act, request, now)
        else:
            is_allowed = self._keys.is_signed(request, account, now)
        if not is_allowed:
            self._refusals.add("SharedKeyInvalid", address=request.client_host, identity=account)
            raise AzureError(
                HTTPStatus.FORBIDDEN,
                "AuthenticationFailed",
                "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
                "correctly including the signature.",
            )
