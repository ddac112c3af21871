"""The keys of the server's own storage accounts, and the signatures that clients make with them.

A key follows from the installation's secret and the account's name, so it is nowhere kept and the same on every node.
https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
"""

import hmac
from base64 import b64decode, b64encode
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import parse_qsl

from redrive.access.secret import InstallationSecret
from redrive.model.http import Request

NAMES: Final = ("key1", "key2")
PARAMETERS_MAX: Final = 20
_BYTES: Final = 64
_QUERY_CHARS_MAX: Final = 2048  # read of anybody's; a longer one is signed otherwise, and refused
_SKEW_MS: Final = 15 * 60 * 1000
_SCHEME: Final = "sharedkey"
# The headers that are signed by their values alone, in this order, behind the method.
_SIGNED: Final = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)


class StorageKeys:
    """The keys of storage accounts."""

    def __init__(self, secret: InstallationSecret) -> None:
        self._secret = secret

    def of(self, account: str) -> list[str]:
        """The two keys of an account, in base64."""
        purposes = (f"storage account {account.lower()} {name}" for name in NAMES)
        return [b64encode(self._secret.key(purpose, _BYTES)).decode() for purpose in purposes]

    def is_signed(self, request: Request, account: str, now: int) -> bool:
        """True if a request for an account is signed with one of its keys, within a quarter of an hour of now (ms)."""
        scheme, _, credential = request.headers.get("authorization", "").partition(" ")
        name, _, signature = credential.strip().partition(":")
        if scheme.lower() != _SCHEME or name.lower() != account.lower() or not _is_recent(request, now):
            return False
        return self.signs(account, _string_to_sign(request, name), signature)

    def signs(self, account: str, text: str, signature: str) -> bool:
        """True if a text's signature, in base64, is by one of an account's keys."""
        signatures = [
            b64encode(hmac.digest(b64decode(key), text.encode(), "sha256")) for key in self.of(account)
        ]
        return any(hmac.compare_digest(each, signature.encode()) for each in signatures)


def _is_recent(request: Request, now: int) -> bool:
    """True if a request's date is within a quarter of an hour of now (ms)."""
    try:
        moment = parsedate_to_datetime(request.headers.get("x-ms-date") or request.headers.get("date", ""))
    except ValueError:
        return False
    return abs(moment.timestamp() * 1000 - now) <= _SKEW_MS


def _string_to_sign(request: Request, account: str) -> str:
    """The text that is signed for a request: its method, headers, path and query, as Shared Key orders them."""
    headers = request.headers
    values = {name: headers.get(name, "") for name in _SIGNED}
    if values["content-length"] == "0":
        values["content-length"] = ""
    if "x-ms-date" in headers:
        values["date"] = ""
    own_headers = sorted((name, value.strip()) for name, value in headers.items() if name.startswith("x-ms-"))
    query = parse_qsl(request.query[:_QUERY_CHARS_MAX], keep_blank_values=True)
    fields = sorted((name.lower(), value) for name, value in query)
    return "\n".join(
        [
            request.method,
            *values.values(),
            *(f"{name}:{value}" for name, value in own_headers),
            f"/{account}{request.path}",
            *(f"{name}:{value}" for name, value in fields),
        ]
    )
