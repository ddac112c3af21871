"""The message centre that text messages are submitted to: the `sms_gateway` setting, parsed; or memory, for tests."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from typing_extensions import override

from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason

_PORTS: Final = {"smpp": 2775, "smpps": 3550}  # as IANA has them, smpp and ssmpp
_CONCATENATIONS: Final = ("udh", "sar")
WINDOW_MAX: Final = 1000
#: In place of a URL: texts are kept in memory (`redrive.endpoints.sms.gateway`).
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


TEXTS_MAX: Final = 10_000  # the oldest go first


class SentText(NamedTuple):
    """A text message."""

    account: str  # The sender's
    region: str  # The sender's
    number: str  # The telephone's
    message_id: str  # As `Publish` answered it
    message: str  # The text


class SmsOutbox:
    """`redrive.engine.ports.Endpoint`: takes what an `SmsEndpoint` takes, and keeps it until a reset or its end."""

    def __init__(self) -> None:
        self.texts: deque[SentText] = deque(maxlen=TEXTS_MAX)

    async def push(self, push_request: PushRequest) -> Attempt:
        """Keep the text in memory."""
        headers = push_request.headers
        message_id = headers["Message-ID"].partition(".")[0]
        text = push_request.body.decode()
        self.texts.append(
            SentText(headers["Account"], headers["Region"], push_request.endpoint, message_id, text)
        )
        return Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 0, "Kept in memory", 0)

    def of(self, account: str, region: str, number: str | None) -> list[SentText]:
        """The texts of a sender, the oldest first, to one number or to all."""
        sent = [text for text in self.texts if (text.account, text.region) == (account, region)]
        return [text for text in sent if number in (None, text.number)]

    async def clear(self) -> None:
        """Forget all of them."""
        self.texts.clear()

    async def close(self) -> None:
        """Nothing is held."""
