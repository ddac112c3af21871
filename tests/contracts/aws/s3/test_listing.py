"""Lists of objects: prefixes, delimiters, pages, in the order of the keys' bytes."""

from typing import Any

import pytest

from tests.contracts.aws.s3.buckets import BUCKET, refusal

KEYS = ["a", "a b&<c>", "b/1", "b/2", "b/c/3", "b0", "z", "ä/1", "\U0001f600"]


@pytest.fixture
def filled(s3: Any) -> Any:
    for key in reversed(KEYS):
        s3.put_object(Bucket=BUCKET, Key=key, Body=key.encode())
    return s3


def keys(answer: dict[str, Any]) -> list[str]:
    return [each["Key"] for each in answer.get("Contents", ())]


def groups(answer: dict[str, Any]) -> list[str]:
    return [each["Prefix"] for each in answer.get("CommonPrefixes", ())]


def test_objects_are_listed_in_the_order_of_their_bytes(filled: Any) -> None:
    for answer in (filled.list_objects_v2(Bucket=BUCKET), filled.list_objects(Bucket=BUCKET)):
        assert keys(answer) == sorted(KEYS, key=str.encode) == KEYS
        first = answer["Contents"][0]
        assert (first["Size"], first["StorageClass"]) == (1, "STANDARD")
        assert first["ETag"] == '"0cc175b9c0f1b6a831c399e269772661"'
        assert not answer["IsTruncated"]
    assert filled.list_objects_v2(Bucket=BUCKET)["KeyCount"] == len(KEYS)


def test_a_delimiter_makes_one_entry_of_many(filled: Any) -> None:
    answer = filled.list_objects_v2(Bucket=BUCKET, Delimiter="/")
    assert (keys(answer), groups(answer)) == (["a", "a b&<c>", "b0", "z", "\U0001f600"], ["b/", "ä/"])
    inner = filled.list_objects_v2(Bucket=BUCKET, Delimiter="/", Prefix="b/")
    assert (keys(inner), groups(inner)) == (["b/1", "b/2"], ["b/c/"])
    assert keys(filled.list_objects_v2(Bucket=BUCKET, Prefix="b")) == ["b/1", "b/2", "b/c/3", "b0"]
    assert keys(filled.list_objects_v2(Bucket=BUCKET, Prefix="nothing")) == []


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("delimiter", ["", "/"])
def test_pages_hold_every_entry_once(filled: Any, size: int, delimiter: str) -> None:
    whole = filled.list_objects_v2(Bucket=BUCKET, Delimiter=delimiter)
    second = filled.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Delimiter=delimiter, MaxKeys=size
    )
    first = filled.get_paginator("list_objects").paginate(Bucket=BUCKET, Delimiter=delimiter, MaxKeys=size)
    for pages in (list(second), list(first)):
        assert [key for page in pages for key in keys(page)] == keys(whole)
        assert [group for page in pages for group in groups(page)] == groups(whole)
        assert all(len(keys(page)) + len(groups(page)) == size for page in pages[:-1])


def test_a_list_begins_where_it_is_asked_to(filled: Any) -> None:
    assert keys(filled.list_objects_v2(Bucket=BUCKET, StartAfter="b/2")) == KEYS[4:]
    assert keys(filled.list_objects(Bucket=BUCKET, Marker="b/2")) == KEYS[4:]
    assert filled.list_objects_v2(Bucket=BUCKET, MaxKeys=0)["KeyCount"] == 0
    assert refusal(filled.list_objects_v2, Bucket=BUCKET, ContinuationToken="?") == ("InvalidArgument", 400)
    assert refusal(filled.list_objects_v2, Bucket="nowhere") == ("NoSuchBucket", 404)
