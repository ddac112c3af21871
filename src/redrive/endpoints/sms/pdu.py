"""SMPP 3.4 on the wire: the ten kinds of unit that a sender of text messages writes or reads.

Section numbers are those of "Short Message Peer to Peer Protocol Specification v3.4". Whatever a message centre makes of
its own (statuses from 0x400, parameters it has no business sending) is read and kept, and is not an error.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

GENERIC_NACK: Final = 0x80000000
SUBMIT_SM: Final = 0x00000004
DELIVER_SM: Final = 0x00000005
UNBIND: Final = 0x00000006
BIND_TRANSCEIVER: Final = 0x00000009
ENQUIRE_LINK: Final = 0x00000015
RESPONSE: Final = 0x80000000  # added to a request's command by what answers it

OK: Final = 0x00000000
INVALID_COMMAND: Final = 0x00000003
NOT_BOUND: Final = 0x00000004
SYSTEM_ERROR: Final = 0x00000008
TRY_LATER: Final = 0x00000064  # ESME_RX_T_APPN: the receiver says, not now

UDH: Final = 0x40  # esm_class: the text begins with a user data header
_KIND: Final = 0x3C  # esm_class of deliver_sm: other than 0 for receipts and acknowledgements
_VERSION: Final = 0x34

_STATUS_TEXT: Final = 0x001D  # additional_status_info_text
_SAR_REFERENCE, _SAR_TOTAL, _SAR_NUMBER = 0x020C, 0x020E, 0x020F
_PAYLOAD: Final = 0x0424

_HEADER: Final = struct.Struct(">IIII")
PDU_BYTES_MAX: Final = 70_000  # a message_payload has 64 KiB; nobody sends what is larger


class Garbled(ValueError):  # noqa: N818 - said of what came
    """The bytes received are not SMPP."""


class Pdu(NamedTuple):
    """One protocol data unit."""

    command: int
    status: int
    sequence: int
    body: bytes = b""

    def octets(self) -> bytes:
        """The bytes on the wire."""
        length = _HEADER.size + len(self.body)
        return _HEADER.pack(length, self.command, self.status, self.sequence) + self.body

    @property
    def is_response(self) -> bool:
        """True if it answers something."""
        return self.command >= RESPONSE

    def answer(self, status: int = OK, body: bytes = b"") -> "Pdu":
        """The PDU that answers this one."""
        return Pdu(self.command | RESPONSE, status, self.sequence, body)


def take_units(buffer: bytearray) -> Iterator[Pdu]:
    """Take whole units out of what has come so far; raises Garbled if a length is impossible."""
    while len(buffer) >= _HEADER.size:
        length, command, status, sequence = _HEADER.unpack_from(buffer)
        if not _HEADER.size <= length <= PDU_BYTES_MAX:
            raise Garbled(f"a unit of {length} bytes")
        if len(buffer) < length:
            return
        body = bytes(buffer[_HEADER.size : length])
        del buffer[:length]
        yield Pdu(command, status, sequence, body)


# ---- what is written ------------------------------------------------------------------------------------------------


class Address(NamedTuple):
    """An address: type of number, numbering plan (5.2.5, 5.2.6), and the number or name."""

    ton: int
    npi: int
    text: str

    def octets(self) -> bytes:
        """The bytes on the wire."""
        return bytes([self.ton, self.npi]) + _text(self.text)


@dataclass(frozen=True, slots=True)
class Submission:
    """A text, or a part of one (4.4.1)."""

    source: Address  # Sender
    destination: Address  # Recipient
    octets: bytes  # The text, or its part
    coding: int  # `data_coding`: 0, the message centre's default alphabet, or 8, UCS-2
    priority: int  # 0 to 3
    # For a part: the reference of its text, how many parts that has, and which it is, from 1.
    position: tuple[int, int, int] | None = None
    header: bool = True  # A part begins with a user data header; else optional parameters say its place

    def body(self) -> bytes:
        """The body of its unit."""
        esm_class, text, parameters = 0, self.octets, b""
        if self.position is not None and self.header:
            reference, total, number = self.position
            # A header of 5 bytes: element 0 (a part of a text), whose 3 bytes follow (3GPP TS 23.040, 9.2.3.24.1).
            esm_class, text = UDH, bytes([5, 0, 3, reference & 0xFF, total, number]) + text
        elif self.position is not None:
            reference, total, number = self.position
            parameters = _parameter(_SAR_REFERENCE, struct.pack(">H", reference))
            parameters += _parameter(_SAR_TOTAL, bytes([total])) + _parameter(_SAR_NUMBER, bytes([number]))
        return b"".join(
            (
                b"\0",  # service_type: the usual
                self.source.octets(),
                self.destination.octets(),
                bytes([esm_class, 0, self.priority]),
                b"\0\0",  # schedule_delivery_time, validity_period: at once, and as long as the centre tries
                bytes([0, 0, self.coding, 0, len(text)]),  # no receipt, no replacement, no canned text
                text,
                parameters,
            )
        )


def bind_body(user: str, password: str, system_type: str) -> bytes:
    """The body of a bind_transceiver (4.1.5)."""
    credentials = _text(user) + _text(password) + _text(system_type)
    return credentials + bytes([_VERSION, 0, 0]) + b"\0"


def _text(text: str) -> bytes:
    if not text.isascii() or "\0" in text:
        raise ValueError(f"{text!r} cannot be said in SMPP: it is not ASCII")
    return text.encode() + b"\0"


def _parameter(tag: int, value: bytes) -> bytes:
    return struct.pack(">HH", tag, len(value)) + value


# ---- what is read ---------------------------------------------------------------------------------------------------


class CentreAnswer(NamedTuple):
    """The answer to a submission or a bind: the centre's id for it, and its own text, where it has any."""

    name: str
    words: str


def read_answer(body: bytes) -> CentreAnswer:
    """Read the body of an answer; one without a body, as refusals often are, says nothing."""
    name, _, rest = body.partition(b"\0")
    words = _parameters(rest).get(_STATUS_TEXT, b"")
    return CentreAnswer(name.decode("latin-1"), words.rstrip(b"\0").decode(errors="replace"))


class ShortMessage(NamedTuple):
    """A message from the centre (4.6.1): a text from a telephone, or a receipt."""

    source: Address  # Sender
    destination: Address  # Recipient
    is_text: bool  # It is not a receipt
    coding: int  # Data coding of the text
    octets: bytes  # The text, without a header


def read_short_message(body: bytes) -> ShortMessage:
    """Read the body of a deliver_sm (SMPP 3.4, 4.6.1); raises Garbled if it is not one."""
    try:
        _, rest = _cut(body)  # service_type
        source, rest = _address(rest)
        destination, rest = _address(rest)
        esm_class, rest = rest[0], rest[3:]  # protocol_id and priority_flag are left out
        _, rest = _cut(rest)  # schedule_delivery_time
        _, rest = _cut(rest)  # validity_period
        coding, length, rest = rest[2], rest[4], rest[5:]  # others stand between and before them
        octets = rest[:length] or _parameters(rest[length:]).get(_PAYLOAD, b"")
        if esm_class & UDH and octets:
            octets = octets[1 + octets[0] :]  # behind the header, whose length is its first byte
    except (IndexError, ValueError):
        raise Garbled("a deliver_sm that ends too early") from None
    return ShortMessage(source, destination, not esm_class & _KIND, coding, octets)


def _cut(octets: bytes) -> tuple[bytes, bytes]:
    end = octets.index(b"\0")
    return octets[:end], octets[end + 1 :]


def _address(octets: bytes) -> tuple[Address, bytes]:
    text, rest = _cut(octets[2:])
    return Address(octets[0], octets[1], text.decode("latin-1")), rest


def _parameters(octets: bytes) -> dict[int, bytes]:
    """Optional parameters (5.3); what is cut short is left out."""
    parameters: dict[int, bytes] = {}
    while len(octets) >= 4:  # noqa: PLR2004 - a tag and a length
        tag, length = struct.unpack_from(">HH", octets)
        parameters[tag] = octets[4 : 4 + length]
        octets = octets[4 + length :]
    return parameters
