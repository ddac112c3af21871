"""SAS tokens: leave to publish, or to receive, until some moment, signed with one of the keys.

    r=<resource, encoded>&e=<when it ends, encoded>&s=<HMAC-SHA256 of all before, base64, encoded>

What is signed is the text as it came. Every client encodes in its own way (a blank as `%20` or `+`, hexadecimal in
either case), so nothing here is decoded and encoded anew.
"""

import base64
import binascii
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, Self
from urllib.parse import unquote, unquote_plus, urlsplit

_SIGNATURE: Final = "&s="
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

    signed: str  # The part that the signature is of
    signature: bytes  # The signature itself
    resource: str  # Resource it is valid for: a URL, or a resource id
    expires_at: int  # Time of expiry (ms)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a token.

        Raises:
            ValueError: The text is not a token.
        """
        signed, separator, signature = text.strip().rpartition(_SIGNATURE)
        fields = dict(part.partition("=")[::2] for part in signed.split("&"))
        if not separator or "r" not in fields or "e" not in fields:
            raise ValueError("The token does not have the form r=…&e=…&s=…")
        try:
            decoded = base64.b64decode(unquote(signature), validate=True)
        except binascii.Error:
            raise ValueError("The signature is not Base64") from None
        return cls(signed, decoded, unquote_plus(fields["r"]), _moment(unquote_plus(fields["e"])))

    def is_signed_with(self, keys: Iterable[str]) -> bool:
        """Tells whether the signature was made with one of these keys (base64)."""
        signatures = [hmac.digest(base64.b64decode(key), self.signed.encode(), "sha256") for key in keys]
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
    """Let a token pass.

    Args:
        text: The token.
        keys: The keys that it may be signed with (base64).
        places: The names of the one resource that it has to be for.
        now: ms.

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
