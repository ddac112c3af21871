"""Units of SMPP, read and written by smpp34 on the other side; and whatever else may come over a socket."""

import contextlib

import smpp34
from hypothesis import given
from hypothesis import strategies as st

from redrive.endpoints.sms.pdu import (
    SUBMIT_SM,
    Address,
    CentreAnswer,
    Garbled,
    Pdu,
    ShortMessage,
    Submission,
    read_answer,
    read_short_message,
    take_units,
)

_ADDRESSES = st.builds(
    Address, st.integers(0, 6), st.integers(0, 18), st.text("0123456789abcXYZ", max_size=20)
)
_UNITS = st.builds(
    Pdu,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.binary(max_size=300),
)


@given(
    source=_ADDRESSES,
    destination=_ADDRESSES,
    octets=st.binary(max_size=140),
    coding=st.sampled_from([0, 8]),
    priority=st.integers(0, 3),
    place=st.none() | st.tuples(st.integers(0, 0xFFFF), st.integers(2, 255), st.integers(1, 255)),
    header=st.booleans(),
)
def test_a_submission_is_decoded_as_it_was_encoded(
    source: Address,
    destination: Address,
    octets: bytes,
    coding: int,
    priority: int,
    place: tuple[int, int, int] | None,
    header: bool,
) -> None:
    submission = Submission(source, destination, octets, coding, priority, place, header)
    read = smpp34.decode(Pdu(SUBMIT_SM, 0, 7, submission.body()).octets())
    assert (read.source_addr_ton, read.source_addr_npi, read.source_addr) == source
    assert (read.dest_addr_ton, read.dest_addr_npi, read.destination_addr) == destination
    assert (read.sequence_number, read.data_coding, read.priority_flag) == (7, coding, priority)
    text, beside = bytes(read.short_message), [(one.tag, bytes(one.value)) for one in read.tlvs]
    if place is None:
        assert (read.esm_class, text, beside) == (0, octets, [])
    elif header:
        reference, total, number = place
        assert (read.esm_class, beside) == (0x40, [])
        assert text == bytes([5, 0, 3, reference & 0xFF, total, number]) + octets
    else:
        reference, total, number = place
        assert (read.esm_class, text) == (0, octets)
        assert beside == [
            (smpp34.TLV_SAR_MSG_REF_NUM, reference.to_bytes(2)),
            (smpp34.TLV_SAR_TOTAL_SEGMENTS, bytes([total])),
            (smpp34.TLV_SAR_SEGMENT_SEQNUM, bytes([number])),
        ]


@given(source=_ADDRESSES, destination=_ADDRESSES, octets=st.binary(max_size=140), coding=st.integers(0, 255))
def test_a_delivered_message_is_decoded_as_it_was_encoded(
    source: Address, destination: Address, octets: bytes, coding: int
) -> None:
    written = smpp34.DeliverSm(
        source.text,
        destination.text,
        octets,
        source_addr_ton=source.ton,
        source_addr_npi=source.npi,
        dest_addr_ton=destination.ton,
        dest_addr_npi=destination.npi,
        data_coding=coding,
    ).encode()
    assert read_short_message(bytes(written)[16:]) == ShortMessage(source, destination, True, coding, octets)


@given(st.lists(_UNITS, max_size=10), st.integers(1, 50))
def test_units_are_taken_however_they_are_cut(units: list[Pdu], size: int) -> None:
    stream = b"".join(unit.octets() for unit in units)
    buffer, found = bytearray(), []
    for begin in range(0, len(stream), size):
        buffer += stream[begin : begin + size]
        found += list(take_units(buffer))
    assert (found, bytes(buffer)) == (units, b"")


@given(st.binary(max_size=400))
def test_any_octets_are_read_or_garbled(octets: bytes) -> None:
    assert isinstance(read_answer(octets), CentreAnswer)
    with contextlib.suppress(Garbled):
        read_short_message(octets)
    with contextlib.suppress(Garbled):
        buffer = bytearray(octets)
        for unit in take_units(buffer):
            assert len(unit.body) <= len(octets)


def test_message_ids_and_texts_of_a_response_are_read() -> None:
    assert read_answer(b"") == CentreAnswer("", "")
    assert read_answer(b"id-1\0") == CentreAnswer("id-1", "")
    assert read_answer(b"\0\x14\0\0\3abc\0\x1d\0\6never\0") == CentreAnswer("", "never")
    assert read_answer(b"id-1\0\0\x1d\0\xffcut") == CentreAnswer("id-1", "cut")
