"""Access keys that are nowhere kept: this installation knows each by its secret, on every node.

Functions have them, to call the server that runs them for the account that they belong to.
"""

from base64 import b64encode
from typing import Final

from redrive.access.keys import AccessKey, is_account
from redrive.access.secret import InstallationSecret

_PREFIX: Final = "REDRIVEFUNCTION"
_PURPOSE: Final = "access keys of functions"
_SECRET_CHARS: Final = 40


class DerivedKeys:
    """The keys of the functions of every account."""

    def __init__(self, secret: InstallationSecret) -> None:
        """Derive them from this secret."""
        self._secret = secret

    def of_account(self, account: str) -> AccessKey:
        """The key of an account's functions."""
        digest = self._secret.key(f"{_PURPOSE}: {account}")
        return AccessKey(f"{_PREFIX}{account}", b64encode(digest).decode()[:_SECRET_CHARS], account, 0)

    def find(self, access_key_id: str) -> AccessKey | None:
        """The key of that id; None: it is not one of these."""
        account = access_key_id.removeprefix(_PREFIX)
        if account == access_key_id or not is_account(account):
            return None
        return self.of_account(account)
