"""Sealed messages: the body, and the headers that say something of it, encrypted by a data key.

AES-256-GCM with a random nonce of 96 bits; the number of the queue that the message entered and its id are authenticated
with it, so that no content can be put in another message's place. Both stand in the headers' member `"sealed"`, since a
message that is moved keeps its seal:

    {"envelope":"sns","id":"…","sealed":{"key":"arn:…","context":{…},"data":"…","queue":7,"id":"…"}}

`data` is the data key, encrypted by whoever keeps `key`. The body is `SEAL_MARK`, and in base 64 the nonce and the sealed
bytes: the length of the hidden headers (4), those, and the text.
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

from redrive.model.delivery import SEAL_MARK

DATA_KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
_SEALED: Final = "sealed"
_LENGTH: Final = Struct(">I")
_PLACE: Final = Struct(">q")
#: Headers that stay readable: whose message it is and where it came from, never its content. So what a broker has to know
#: of a message without its key is known, and a message can be found by its id.
CLEAR: Final = frozenset(
    {
        *("bytes", "ended", "envelope", "group", "id", "raw", "replayed", "sender", "sent_at", "sequence"),
        *("subscription", "topic", "trace", "version"),
    }
)


@dataclass(slots=True)  # frozen, it would take three times as long to make, and each message makes one
class MessageSeal:
    """The clear part of a sealed message's headers that says how to open it."""

    key: str  # ARN of the KMS key that encrypted the data key; empty: the root key
    context: Mapping[str, str]  # The encryption context of the data key
    data: str  # The data key, encrypted, as text
    queue_id: int  # Queue that the message was sent to
    message_id: bytes  # Its id then
    rest: Mapping[str, Any]  # The other clear headers
    raw: bytes  # The member itself, as JSON


class DataKey:
    """A data key, ready for use."""

    __slots__ = ("_cipher", "_member_start")

    def __init__(self, plaintext: bytes, key: str, context: Mapping[str, str], data: str) -> None:
        """Know the key's 32 bytes, and the members of the seals that it makes."""
        self._cipher = AESGCM(plaintext)
        members = {"key": key, "context": context, "data": data}
        self._member_start = b'"sealed":%b,"queue":' % orjson.dumps(members)[:-1]

    def seal(
        self, nonce: bytes, queue_id: int, message_id: bytes, body: str, headers: bytes | None
    ) -> tuple[str, bytes]:
        """The body and the headers of a message as they are stored; see `Sealer.seal`."""
        clear, hidden = _split_headers(headers)
        content = _LENGTH.pack(len(hidden)) + hidden + body.encode("utf-8", "surrogatepass")
        sealed = self._cipher.encrypt(nonce, content, _PLACE.pack(queue_id) + message_id)
        text = SEAL_MARK + b2a_base64(nonce + sealed, newline=False).decode("ascii")
        return text, b'%b%b%d,"id":"%b"}}' % (clear, self._member_start, queue_id, message_id.hex().encode())

    def open(self, seal: MessageSeal, body: str) -> tuple[str, bytes | None]:
        """The body and the headers of a message as its sender gave them.

        Raises:
            ValueError: It was changed since, or put in another message's place.
        """
        sealed = a2b_base64(body[1:])
        associated_data = _PLACE.pack(seal.queue_id) + seal.message_id
        try:
            content = self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], associated_data)
        except InvalidTag:
            raise ValueError("a sealed message was changed") from None
        begin = _LENGTH.size + _LENGTH.unpack_from(content)[0]
        hidden = content[_LENGTH.size : begin]
        headers: dict[str, Any] = dict(seal.rest)
        if hidden:
            headers |= orjson.loads(hidden)
        text = content[begin:].decode("utf-8", "surrogatepass")
        return text, orjson.dumps(headers) if headers else None


_MEMBER: Final = b'"sealed":'
_QUEUE: Final = b',"queue":'
_ID: Final = b',"id":"'


def seal_of(headers: bytes) -> MessageSeal:
    """The seal in the headers of a sealed message.

    It is their last member, as `DataKey.seal` writes it; nothing before it has a quotation mark that is not escaped. What
    all messages of a data key have in common is read once: reading all of it took 5 us of a receive's 60 for a message.
    """
    begin, middle = headers.rfind(_MEMBER), headers.rfind(_QUEUE)
    number, _, message_id = headers[middle + len(_QUEUE) : -3].partition(_ID)
    key, context, data = _shared_members(headers[begin:middle])
    rest = {} if begin == 1 else orjson.loads(headers[: begin - 1] + b"}")
    raw = headers[begin + len(_MEMBER) : -1]
    return MessageSeal(key, context, data, int(number), bytes.fromhex(message_id.decode()), rest, raw)


@lru_cache(maxsize=1024)  # a kilobyte each; as many data keys are in use at a time, at most
def _shared_members(beginning: bytes) -> tuple[str, Mapping[str, str], str]:
    """The ARN of the KMS key, the encryption context and the data key of a seal's beginning."""
    member = orjson.loads(b"{%b}}" % beginning)[_SEALED]
    return member["key"], member["context"], member["data"]


def _split_headers(headers: bytes | None) -> tuple[bytes, bytes]:
    """The clear members as an unfinished JSON object, to be continued; and the other members as an object."""
    if headers is None:
        return b"{", b""
    members: dict[str, Any] = orjson.loads(headers)
    hidden = {
        name: value
        for name, value in members.items()
        if name not in CLEAR or not isinstance(value, str | int | None)
    }
    clear = {name: value for name, value in members.items() if name not in hidden}
    begin = orjson.dumps(clear)[:-1] + b"," if clear else b"{"
    return begin, orjson.dumps(hidden) if hidden else b""
