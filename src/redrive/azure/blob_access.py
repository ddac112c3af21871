"""Access to a storage account: by one of its keys, a signature made with one, or a token of the account it belongs to."""

from collections.abc import Mapping
from http import HTTPStatus

from redrive.access.refusals import Refusals
from redrive.azure.arm.storage_accounts import StorageAccounts
from redrive.azure.shared_access import Act, allowed
from redrive.azure.storage_keys import StorageKeys
from redrive.azure.wire.bearer import BearerAuthentication
from redrive.azure.wire.errors import AzureError
from redrive.engine.ports import Clock
from redrive.model.http import Request


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
        """Ask for a signature or a token.

        Args:
            accounts: Owned by accounts of access keys.
            keys: What requests are signed with.
            bearer: Tells who comes with a token.
            clock: The system's, which clients sign by.
            refusals: Where those who are not let in are counted.
        """
        self._accounts = accounts
        self._keys = keys
        self._bearer = bearer
        self._clock = clock
        self._refusals = refusals

    async def check(self, request: Request, account: str, act: Act, signature: Mapping[str, str]) -> None:
        """Let in whoever may use a storage account.

        Args:
            request: As it came.
            account: The storage account's name.
            act: What is asked of it.
            signature: The parameters of the shared access signature in the URL; none: there is none.

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
            may = allowed(self._keys, account, signature, act, request, now)
        else:
            may = self._keys.signed(request, account, now)
        if not may:
            self._refusals.add("SharedKeyInvalid", address=request.client_host, identity=account)
            raise AzureError(
                HTTPStatus.FORBIDDEN,
                "AuthenticationFailed",
                "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
                "correctly including the signature.",
            )
