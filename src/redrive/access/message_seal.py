"""Sealed messages: the body, and the headers that say something of it, encrypted by a data key.

AES-256-GCM with a random nonce of 96 bits; the number of the queue that the message entered and its id are authenticated
with it, so that no content can be put in another message's place. Both stand beside it, since a message that is moved
keeps its seal. The body of such a message is `SEAL_MARK`, its headers are those that stay readable, and its sealed bytes:

    length of the beginning (2) | beginning | id (16) | nonce (12) | encrypted: length of headers (4) | headers | text

All messages that a data key sealed for a queue begin alike: the queue's number, the KMS key, names and values of the
encryption context, an empty text, each ended by NUL; and the data key, encrypted by whoever keeps the KMS key.

Older versions, and this one beside them, have all of it as text: the nonce and what is encrypted in base 64 behind the
mark, and the rest in the headers:

    {"envelope":"sns","id":"…","sealed":{"key":"arn:…","context":{…},"data":"…","queue":7,"id":"…"}}
"""

from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from redrive.engine.ports import StoredContent
from redrive.model.delivery import SEAL_MARK, Delivery

DATA_KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
_ID_BYTES: Final = 16
_LENGTH: Final = Struct(">I")
_BEGINNING: Final = Struct(">H")
_QUEUE_ID: Final = Struct(">q")
_NUL: Final = "\0"
#: Headers that stay readable: whose message it is and where it came from, never its content. So what a broker has to know
#: of a message without its key is known, and a message can be found by its id.
CLEAR: Final = frozenset(
    {
        *("bytes", "ended", "envelope", "group", "id", "raw", "replayed", "sender", "sent_at", "sequence"),
        *("subscription", "topic", "trace", "version"),
    }
)


@dataclass(frozen=True, slots=True)
class MessageSeal:
    """The clear part of a sealed message, which says how to open it: all that a data key seals for a queue share it."""

    key: str  # ARN of the KMS key that encrypted the data key; empty: the root key
    context: Mapping[str, str]  # The encryption context of the data key
    data: str  # The data key, encrypted, as text
    queue_id: int = 0  # Queue that the message was sent to

    @property
    def about(self) -> tuple[object, ...]:
        """The KMS key and the encryption context, to which readers need a right."""
        return self.key, *self.context.items()


class DataKey:
    """A data key, ready for use."""

    __slots__ = ("_beginnings", "_cipher", "_seal")

    def __init__(self, plaintext: bytes, seal: MessageSeal) -> None:
        """Know the key's 32 bytes, and how its messages are opened."""
        self._cipher = AESGCM(plaintext)
        self._seal = seal
        self._beginnings: dict[int, bytes] = {}  # by queue; a topic's data key seals for all of its backlogs

    def seal(
        self, nonce: bytes, queue_id: int, message_id: bytes, body: str, headers: bytes | None
    ) -> StoredContent:
        """The content of a message as it is stored; see `Sealer.seal`."""
        clear, content = _content(body, headers)
        sealed = self._cipher.encrypt(nonce, content, _QUEUE_ID.pack(queue_id) + message_id)
        beginning = self._beginnings.get(queue_id)
        if beginning is None:
            beginning = self._beginnings[queue_id] = _beginning(self._seal, queue_id)
        return SEAL_MARK, clear, b"%b%b%b%b" % (beginning, message_id, nonce, sealed)

    def seal_as_text(
        self, nonce: bytes, queue_id: int, message_id: bytes, body: str, headers: bytes | None
    ) -> StoredContent:
        """As `seal`, in the form that an older version opens: text in the body, and the seal in the headers."""
        clear, content = _content(body, headers)
        sealed = self._cipher.encrypt(nonce, content, _QUEUE_ID.pack(queue_id) + message_id)
        members = {"key": self._seal.key, "context": self._seal.context, "data": self._seal.data}
        member = orjson.dumps(members | {"queue": queue_id, "id": message_id.hex()})
        begin = b"{" if clear is None else clear[:-1] + b","
        text = b2a_base64(nonce + sealed, newline=False).decode("ascii")
        return SEAL_MARK + text, b"%b%b%b}" % (begin, _MEMBER, member), None

    def open(self, seal: MessageSeal, delivery: Delivery) -> tuple[str, bytes | None]:
        """The body and the headers of a message as its sender gave them.

        Decrypted, it is the length of the hidden headers, those headers, and the body (see `_content`).

        Raises:
            ValueError: It was changed since, or put in another message's place.
        """
        associated_data, sealed, clear = _parts(seal, delivery)
        try:
            content = self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], associated_data)
        except InvalidTag:
            raise ValueError("a sealed message was changed") from None
        begin = _LENGTH.size + _LENGTH.unpack_from(content)[0]
        text = content[begin:].decode("utf-8", "surrogatepass")
        if begin == _LENGTH.size:
            return text, clear
        headers = {} if clear is None else orjson.loads(clear)
        return text, orjson.dumps(headers | orjson.loads(content[_LENGTH.size : begin]))


def seal_of(delivery: Delivery) -> MessageSeal:
    """The seal of a sealed message. What all messages of a data key have in common is read once."""
    sealed = delivery.sealed
    if sealed is None:
        return _member_seal(_member(delivery.headers or b"")[1])
    return _shared_seal(sealed[: _end_of_beginning(sealed)])


def _content(body: str, headers: bytes | None) -> tuple[bytes | None, bytes]:
    """The headers that stay readable, and what is encrypted."""
    clear, hidden = (None, b"") if headers is None else _split_headers(headers)
    return clear, _LENGTH.pack(len(hidden)) + hidden + body.encode("utf-8", "surrogatepass")


def _split_headers(headers: bytes) -> tuple[bytes | None, bytes]:
    """The clear members and the other members, an object each."""
    members: dict[str, Any] = orjson.loads(headers)
    hidden = {
        name: value
        for name, value in members.items()
        if name not in CLEAR or not isinstance(value, str | int | None)
    }
    clear = {name: value for name, value in members.items() if name not in hidden}
    return orjson.dumps(clear) if clear else None, orjson.dumps(hidden) if hidden else b""


def _parts(seal: MessageSeal, delivery: Delivery) -> tuple[bytes, bytes, bytes | None]:
    """The associated data; the nonce and the encrypted bytes; the headers that are readable."""
    sealed, queue = delivery.sealed, _QUEUE_ID.pack(seal.queue_id)
    if sealed is None:
        clear, member = _member(delivery.headers or b"")
        return queue + bytes.fromhex(member["id"]), a2b_base64(delivery.body[1:]), clear
    begin = _end_of_beginning(sealed)
    end = begin + _ID_BYTES
    return queue + sealed[begin:end], sealed[end:], delivery.headers


# ---- the beginning, and its older form ---------------------------------------------------------------------------

_MEMBER: Final = b'"sealed":'


def _beginning(seal: MessageSeal, queue_id: int) -> bytes:
    """The beginning of sealed bytes. A data key is base 64, behind a name and a full stop if it is of the root key."""
    name, stop, content = seal.data.rpartition(".")
    context = [text for member in seal.context.items() for text in member]
    texts = _NUL.join([str(queue_id), seal.key, *context, "", f"{name}{stop}", ""])
    beginning = texts.encode() + a2b_base64(content)
    return _BEGINNING.pack(len(beginning)) + beginning


def _end_of_beginning(sealed: bytes) -> int:
    return _BEGINNING.size + int.from_bytes(sealed[: _BEGINNING.size])


@lru_cache(maxsize=1024)  # a kilobyte each; as many data keys are in use at a time, at most
def _shared_seal(beginning: bytes) -> MessageSeal:
    """The seal at the beginning of sealed bytes, as `_beginning` writes it."""
    queue, key, rest = beginning[_BEGINNING.size :].split(b"\0", 2)
    context, _, rest = rest.partition(b"\0\0")
    names_and_values = context.decode().split(_NUL)
    name, _, content = rest.partition(b"\0")
    data = name.decode() + b2a_base64(content, newline=False).decode()
    pairs = zip(names_and_values[::2], names_and_values[1::2], strict=True)
    return MessageSeal(key.decode(), dict(pairs), data, int(queue))


def _member(headers: bytes) -> tuple[bytes | None, dict[str, Any]]:
    """The other headers, and the last member, as older versions write it."""
    members: dict[str, Any] = orjson.loads(headers)
    member = members.pop("sealed")
    return orjson.dumps(members) if members else None, member


def _member_seal(member: Mapping[str, Any]) -> MessageSeal:
    return MessageSeal(member["key"], member["context"], member["data"], member["queue"])
