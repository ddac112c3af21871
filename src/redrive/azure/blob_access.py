"""Access to the containers of a storage account: by one of its keys, or by a token of the account it belongs to."""

from http import HTTPStatus

from redrive.access.refusals import Refusals
from redrive.azure.arm.storage_accounts import StorageAccounts
from redrive.azure.storage_keys import StorageKeys
from redrive.azure.wire.bearer import Authentication
from redrive.azure.wire.errors import AzureError
from redrive.engine.ports import Clock
from redrive.http import Request


class BlobAccess:
    """Lets requests in that are signed with a key of their storage account, or come with its owner's token."""

    def __init__(
        self,
        accounts: StorageAccounts,
        keys: StorageKeys,
        bearer: Authentication,
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

    async def check(self, request: Request, account: str) -> None:
        """Let in whoever may use a storage account.

        Args:
            request: As it came.
            account: The storage account's name.

        Raises:
            AzureError: The signature or the token is wrong, or the account is another's.
        """
        if request.headers.get("authorization", "")[:7].lower() == "bearer ":
            caller = await self._bearer.caller(request)
            if caller.account is not None:
                await self._accounts.check_owner(account, caller.account)
            return
        if not self._keys.signed(request, account, self._clock.now()):
            self._refusals.add("SharedKeyInvalid", address=request.client_host, identity=account)
            raise AzureError(
                HTTPStatus.FORBIDDEN,
                "AuthenticationFailed",
                "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
                "correctly including the signature.",
            )
