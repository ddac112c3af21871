"""Records: taken, counted, limited, and encrypted while they wait."""

from pathlib import Path

import orjson

from tests.contracts.aws.cloudwatch.client import Watch
from tests.contracts.aws.firehose.landing import ACCOUNT, NAME, Landing, of
from tests.contracts.aws.kms.keys import new_key
from tests.contracts.aws.sqs.client import refused

_NAMED = {"DeliveryStreamName": NAME}


def test_a_record_has_an_id_of_its_own(landing: Landing) -> None:
    landing.stream()
    one = landing.firehose.put_record(**_NAMED, Record={"Data": b"1"})
    batch = landing.firehose.put_record_batch(**_NAMED, Records=[{"Data": b"2"}, {"Data": b""}])
    assert (batch["FailedPutCount"], one["Encrypted"]) == (0, False)
    ids = [one["RecordId"], *(each["RecordId"] for each in batch["RequestResponses"])]
    assert {len(each) for each in ids} == {222}
    assert len(set(ids)) == 3
    landing.server.advance(300)
    assert landing.contents() == [b"12"]


def test_limits_of_a_call(landing: Landing) -> None:
    landing.stream()
    put = landing.firehose.put_record_batch
    with refused("ValidationException"):
        put(**_NAMED, Records=[{"Data": b"x"}] * 501)
    with refused("ValidationException"):
        put(**_NAMED, Records=[])
    with refused("ValidationException"):
        landing.firehose.put_record(**_NAMED, Record={"Data": bytes(1_024_001)})
    with refused("InvalidArgumentException", "Records size exceeds 4 MB limit: 4194305"):
        put(**_NAMED, Records=[{"Data": bytes(1_000_000)}] * 4 + [{"Data": bytes(194_305)}])
    assert put(**_NAMED, Records=[{"Data": bytes(1_024_000)}] * 4)["FailedPutCount"] == 0
    with refused("ResourceNotFoundException", f"Firehose lost under account {ACCOUNT} not found."):
        landing.firehose.put_record(DeliveryStreamName="lost", Record={"Data": b""})


def test_a_fault_refuses_every_second_record_from_the_first(landing: Landing) -> None:
    fault = {"endpoint": landing.stream("faulty"), "status": 503}
    assert landing.server.ask("POST", "/_redrive/faults", orjson.dumps(fault))[0] == 200
    for count, refused_count in ((1, 1), (2, 1), (3, 2)):
        records = [{"Data": b"x"}] * count
        answer = landing.firehose.put_record_batch(DeliveryStreamName="faulty", Records=records)
        assert answer["FailedPutCount"] == refused_count
        errors = [each.get("ErrorCode") for each in answer["RequestResponses"]]
        assert errors == ["ServiceUnavailableException", None, "ServiceUnavailableException"][:count]


def test_records_are_counted_as_they_come_and_go(landing: Landing) -> None:
    landing.stream(BufferingHints={"SizeInMBs": 5, "IntervalInSeconds": 60})
    landing.put(b"12345", b"678")
    landing.firehose.put_record(**_NAMED, Record={"Data": b"9"})
    landing.server.advance(120)
    watch = Watch(landing.server)

    def total(metric: str) -> float:
        return sum(watch.sums("AWS/Firehose", metric, DeliveryStreamName=NAME))

    assert (total("IncomingRecords"), total("IncomingBytes")) == (3, 9)
    assert (total("PutRecord.Requests"), total("PutRecordBatch.Records")) == (1, 2)
    assert (total("DeliveryToS3.Records"), total("DeliveryToS3.Success")) == (3, 1)
    assert (total("DeliveryToS3.Bytes"), total("DeliveryToS3.DataFreshness")) == (9, 60)


def test_records_are_sealed_while_they_wait(landing: Landing) -> None:
    landing.stream()
    kms = of(landing.server, "kms")
    key = new_key(kms)
    start = landing.firehose.start_delivery_stream_encryption
    own = {"KeyType": "CUSTOMER_MANAGED_CMK", "KeyARN": key}
    start(**_NAMED, DeliveryStreamEncryptionConfigurationInput=own)
    assert landing.described()["DeliveryStreamEncryptionConfiguration"] == {**own, "Status": "ENABLED"}
    assert landing.firehose.put_record(**_NAMED, Record={"Data": b"a secret;"})["Encrypted"]
    kms.disable_key(KeyId=key)
    landing.server.advance(300)
    assert landing.keys() == []
    kms.enable_key(KeyId=key)
    landing.firehose.stop_delivery_stream_encryption(**_NAMED)
    assert not landing.firehose.put_record(**_NAMED, Record={"Data": b"none"})["Encrypted"]
    landing.server.advance(300)
    assert landing.contents() == [b"a secret;none"]
    kms.disable_key(KeyId=key)
    with refused("InvalidKMSResourceException"):
        start(**_NAMED, DeliveryStreamEncryptionConfigurationInput=own)
    start(**_NAMED)
    shown = landing.described()["DeliveryStreamEncryptionConfiguration"]
    assert shown == {"KeyType": "AWS_OWNED_CMK", "Status": "ENABLED"}


def test_the_store_holds_no_record_that_is_encrypted(landing: Landing, run_directory: Path) -> None:
    landing.stream()
    landing.firehose.start_delivery_stream_encryption(**_NAMED)
    landing.put(b"open sesame" * 20)
    in_base64 = b"b3BlbiBzZXNhbWVvcGVuIHNlc2FtZW"
    assert not [file for file in run_directory.glob("redrive.db*") if in_base64 in file.read_bytes()]
    landing.server.advance(300)
    assert landing.contents() == [b"open sesame" * 20]
