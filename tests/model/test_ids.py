"""Ids of messages as text."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from redrive.model.ids import id_text, id_texts

IDS = st.binary(min_size=16, max_size=16)


@given(st.lists(IDS, max_size=5))
def test_ids_are_written_as_uuids_are_one_by_one_and_many_at_once(ids: list[bytes]) -> None:
    expected = [str(UUID(bytes=message_id)) for message_id in ids]
    assert [id_text(message_id) for message_id in ids] == expected
    assert id_texts(ids) == expected
