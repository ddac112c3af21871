"""Objects: when they are put, under which keys, and what happens while they cannot be."""

import io
import re
import zipfile

import pytest

from tests.contracts.aws.firehose.landing import ARN, BUCKET, LINES, NAME, Landing, gunzipped

MIB = 1024 * 1024
HOUR = 3600


def test_records_are_put_once_the_oldest_has_waited_for_the_interval(landing: Landing) -> None:
    landing.stream(BufferingHints={"SizeInMBs": 5, "IntervalInSeconds": 60})
    landing.put(b"1", b"2")
    landing.server.advance(50)
    landing.put(b"3")
    landing.server.advance(9)
    assert landing.keys() == []
    landing.server.advance(1)
    assert landing.contents() == [b"123"]
    landing.put(b"4")
    landing.server.advance(60)
    assert sorted(landing.contents()) == [b"123", b"4"]


def test_records_are_put_once_they_have_the_size_of_an_object(landing: Landing) -> None:
    landing.stream(BufferingHints={"SizeInMBs": 1, "IntervalInSeconds": 900})
    for _ in range(4):
        landing.put(bytes(MIB // 4))
    landing.server.advance(1)
    assert [len(content) for content in landing.contents()] == [MIB]
    landing.put(bytes(MIB // 4))
    landing.server.advance(900)
    assert sorted(map(len, landing.contents())) == [MIB // 4, MIB]


def test_an_object_larger_than_a_request_is_put_in_parts(landing: Landing) -> None:
    landing.stream(BufferingHints={"SizeInMBs": 64, "IntervalInSeconds": 60})
    for number in range(5):
        landing.put(*[bytes([number]) * 1_000_000] * 4)
    landing.server.advance(60)
    (content,) = landing.contents()
    assert content == b"".join(bytes([number]) * 4_000_000 for number in range(5))


def test_keys_say_when_the_oldest_record_came(landing: Landing) -> None:
    landing.stream()
    landing.put(b"1")
    landing.server.advance(300)
    (key,) = landing.keys()
    assert re.fullmatch(r"\d{4}/\d\d/\d\d/\d\d/orders-1-(\d+-){6}[0-9a-f]{8}-[0-9a-f-]{27}", key)
    landing.update(
        Prefix="at/!{timestamp:yyyy'T'HH}/!{firehose:random-string}/",
        ErrorOutputPrefix="bad/!{firehose:error-output-type}/",
        FileExtension=".txt",
        CustomTimeZone="Asia/Tokyo",
    )
    landing.put(b"2")
    landing.server.advance(300)
    (other,) = set(landing.keys()) - {key}
    assert re.fullmatch(r"at/\d{4}T(\d\d)/[A-Za-z0-9]{11}/orders-2-\d+-\d+-\d+-\d\d-.*\.txt", other)
    hours = int(other[8:10]) - int(key[11:13])
    assert hours % 24 in (9, 10)


def test_objects_are_compressed_and_records_end_with_what_is_wanted(landing: Landing) -> None:
    landing.stream("zipped", CompressionFormat="ZIP", ProcessingConfiguration=LINES)
    landing.put(b"1", b"2", name="zipped")
    landing.server.advance(300)
    (key,) = landing.keys()
    with zipfile.ZipFile(io.BytesIO(landing.content(key))) as archive:
        (name,) = archive.namelist()
        assert archive.read(name) == b"1\n2\n"
    assert key.endswith(f"/{name}.zip")
    landing.stream("packed", CompressionFormat="GZIP")
    landing.put(b"1", b"2", name="packed")
    landing.server.advance(300)
    (packed,) = set(landing.keys()) - {key}
    assert packed.endswith(".gz")
    assert gunzipped(landing.content(packed)) == b"12"


def test_while_the_bucket_is_away_records_wait_and_the_log_says_why(landing: Landing) -> None:
    landing.s3.delete_bucket(Bucket=BUCKET)
    logged = {"Enabled": True, "LogGroupName": "/aws/kinesisfirehose/orders", "LogStreamName": "S3"}
    landing.stream(CloudWatchLoggingOptions=logged)
    landing.put(b"1")
    landing.server.advance(300 + HOUR)
    entries = landing.errors("/aws/kinesisfirehose/orders", "S3")
    assert entries[0] == {
        "deliveryStreamARN": ARN,
        "destination": f"arn:aws:s3:::{BUCKET}",
        "deliveryStreamVersionId": 1,
        "message": "The specified bucket does not exist",
        "errorCode": "S3.NoSuchBucket",
    }
    assert 10 < len(entries) < 30
    landing.s3.create_bucket(Bucket=BUCKET)
    landing.put(b"2")
    landing.server.advance(300)
    assert landing.contents() == [b"12"]


def test_another_bucket_is_tried_as_soon_as_it_is_named(landing: Landing) -> None:
    landing.stream(BucketARN="arn:aws:s3:::nowhere")
    landing.put(b"1")
    landing.server.advance(2 * HOUR)
    landing.update(BucketARN=f"arn:aws:s3:::{BUCKET}")
    landing.server.advance(1)
    assert landing.contents() == [b"1"]


@pytest.mark.parametrize(
    "server", ["sqlite"], indirect=True
)  # 300 attempts, and how long a queue keeps is tried on both
def test_records_that_cannot_be_delivered_for_a_day_are_lost(landing: Landing) -> None:
    landing.stream(BucketARN="arn:aws:s3:::nowhere")
    landing.put(b"1")
    landing.server.advance(24 * HOUR)
    landing.update(BucketARN=f"arn:aws:s3:::{BUCKET}")
    landing.put(b"2")
    landing.server.advance(HOUR)
    assert landing.contents() == [b"2"]


def test_records_of_a_stream_that_is_removed_go_with_it(landing: Landing) -> None:
    landing.stream()
    landing.put(b"1")
    landing.firehose.delete_delivery_stream(DeliveryStreamName=NAME)
    landing.stream()
    landing.put(b"2")
    landing.server.advance(HOUR)
    assert landing.contents() == [b"2"]
