"""Ids of messages as text."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from redrive.model.names import id_text


@given(st.binary(min_size=16, max_size=16))
def test_an_id_is_written_as_uuids_are(message_id: bytes) -> None:
    assert id_text(message_id) == str(UUID(bytes=message_id))
