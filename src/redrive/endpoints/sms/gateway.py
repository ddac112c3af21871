"""The message centre that text messages are submitted to: the `sms_gateway` setting, parsed.

It knows nothing of the engine: settings read it at each start of a command.
"""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from typing_extensions import override

_PORTS: Final = {"smpp": 2775, "smpps": 3550}  # as IANA has them, smpp and ssmpp
_CONCATENATIONS: Final = ("udh", "sar")
WINDOW_MAX: Final = 1000
#: In place of a URL: texts are kept in memory (`redrive.endpoints.sms.outbox`).
MEMORY: Final = "memory"


@dataclass(frozen=True, slots=True)
class MessageCentre:
    """A message centre."""

    host: str  # Its name
    port: int
    user: str  # `system_id`
    password: str = field(repr=False)
    secure: bool = False  # TLS from the first byte
    window: int = 10  # Submissions under way at once
    sender: str = ""  # Default sender; empty: the message centre chooses
    system_type: str = ""  # System type, which some message centres require
    header: bool = True  # Parts say their place in a user data header; else by optional parameters (`sar_…`)

    @override
    def __str__(self) -> str:
        """For the log, without the password."""
        return f"{'smpps' if self.secure else 'smpp'}://{self.user}@{self.host}:{self.port}"


def read_gateway(url: str) -> MessageCentre:
    """Read `smpp://user:password@host:port?window=10&sender=Redrive`, or `smpps://`.

    Raises:
        ValueError: Not a valid URL; what it says never holds the URL, which has a password in it.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("has no usable host and port") from None
    if parts.scheme not in _PORTS:
        raise ValueError("must begin with smpp:// or smpps://")
    if not parts.hostname or parts.username is None or parts.path.strip("/") or parts.fragment:
        raise ValueError("must be smpp://USER:PASSWORD@HOST:PORT")
    options = _options(parts.query)
    return MessageCentre(
        parts.hostname,
        _PORTS[parts.scheme] if port is None else port,
        _ascii("user", unquote(parts.username)),
        _ascii("password", unquote(parts.password or "")),
        parts.scheme == "smpps",
        _window(options.get("window", "10")),
        _ascii("sender", options.get("sender", "")),
        _ascii("system_type", options.get("system_type", "")),
        _concatenation(options.get("concatenation", "udh")) == "udh",
    )


def _options(query: str) -> dict[str, str]:
    """The options in a gateway's URL."""
    try:
        options = dict(parse_qsl(query, strict_parsing=True)) if query else {}
    except ValueError:
        raise ValueError("has options that are not NAME=VALUE") from None
    unknown = options.keys() - {"window", "sender", "system_type", "concatenation"}
    if unknown:
        raise ValueError(f"has unknown options: {', '.join(sorted(unknown))}")
    return options


def _window(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= WINDOW_MAX):
        raise ValueError(f"has a window that is not a number from 1 to {WINDOW_MAX}")
    return int(text)


def _concatenation(text: str) -> str:
    if text not in _CONCATENATIONS:
        raise ValueError("has a concatenation that must be udh or sar")
    return text


def _ascii(name: str, text: str) -> str:
    if not (text.isascii() and text.isprintable()) and text:
        raise ValueError(f"has a {name} that is not ASCII")
    return text
