"""Delivery streams: made, described, listed, changed, removed; and what is not offered."""

from tests.contracts.aws.firehose.landing import ACCOUNT, ARN, NAME, ROLE, Landing, destination
from tests.contracts.aws.sqs.client import refused

FUNCTION = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:f"
KINESIS = {"KinesisStreamARN": f"arn:aws:kinesis:us-east-1:{ACCOUNT}:stream/s", "RoleARN": ROLE}


def test_a_stream_is_described_with_its_defaults_and_goes(landing: Landing) -> None:
    assert landing.stream() == ARN
    shown = landing.described()
    assert (shown["DeliveryStreamStatus"], shown["VersionId"]) == ("ACTIVE", "1")
    assert shown["DeliveryStreamEncryptionConfiguration"] == {"Status": "DISABLED"}
    (given,) = shown["Destinations"]
    assert given["DestinationId"] == "destinationId-000000000001"
    assert landing.settings() == destination(
        BufferingHints={"SizeInMBs": 5, "IntervalInSeconds": 300},
        CompressionFormat="UNCOMPRESSED",
        EncryptionConfiguration={"NoEncryptionConfig": "NoEncryption"},
        CloudWatchLoggingOptions={"Enabled": False},
        ProcessingConfiguration={"Enabled": False, "Processors": []},
        S3BackupMode="Disabled",
    )
    assert "ProcessingConfiguration" not in given["S3DestinationDescription"]
    with refused("ResourceInUseException", f"Firehose {NAME} under accountId {ACCOUNT} already exists"):
        landing.stream()
    landing.firehose.delete_delivery_stream(DeliveryStreamName=NAME)
    with refused("ResourceNotFoundException", f"Firehose {NAME} under account {ACCOUNT} not found."):
        landing.described()
    assert landing.stream() == ARN


def test_streams_are_listed_in_order(landing: Landing) -> None:
    for name in ("c", "a", "b"):
        landing.stream(name)
    page = landing.firehose.list_delivery_streams(Limit=2)
    assert (page["DeliveryStreamNames"], page["HasMoreDeliveryStreams"]) == (["a", "b"], True)
    page = landing.firehose.list_delivery_streams(ExclusiveStartDeliveryStreamName="b")
    assert (page["DeliveryStreamNames"], page["HasMoreDeliveryStreams"]) == (["c"], False)


def test_an_update_changes_what_it_names_and_counts_a_version(landing: Landing) -> None:
    landing.stream(Prefix="p/", CompressionFormat="GZIP")
    landing.update(BufferingHints={"SizeInMBs": 1}, CompressionFormat="ZIP")
    shown = landing.settings()
    assert (shown["Prefix"], shown["CompressionFormat"]) == ("p/", "ZIP")
    assert shown["BufferingHints"] == {"SizeInMBs": 1, "IntervalInSeconds": 300}
    assert landing.described()["VersionId"] == "2"
    old = {
        "DeliveryStreamName": NAME,
        "CurrentDeliveryStreamVersionId": "1",
        "ExtendedS3DestinationUpdate": {},
    }
    with refused("ConcurrentModificationException"):
        landing.firehose.update_destination(**old, DestinationId="destinationId-000000000001")
    with refused("InvalidArgumentException", "Destination Id other not found"):
        landing.firehose.update_destination(**old, DestinationId="other")


def test_tags_come_and_go(landing: Landing) -> None:
    landing.stream()
    named = {"DeliveryStreamName": NAME}
    landing.firehose.tag_delivery_stream(**named, Tags=[{"Key": "b", "Value": "2"}, {"Key": "a"}])
    shown = landing.firehose.list_tags_for_delivery_stream(**named, Limit=1)
    assert (shown["Tags"], shown["HasMoreTags"]) == ([{"Key": "a", "Value": ""}], True)
    landing.firehose.untag_delivery_stream(**named, TagKeys=["a"])
    assert landing.firehose.list_tags_for_delivery_stream(**named)["Tags"] == [{"Key": "b", "Value": "2"}]
    with refused("ValidationException"):  # the published model's pattern says so first
        landing.firehose.tag_delivery_stream(**named, Tags=[{"Key": "aws:x"}])


def test_other_sources_and_destinations_are_refused_by_name(landing: Landing) -> None:
    create = landing.firehose.create_delivery_stream
    for given, named in (
        ({"DeliveryStreamType": "KinesisStreamAsSource"}, "streams of the type KinesisStreamAsSource"),
        ({"KinesisStreamSourceConfiguration": KINESIS}, "KinesisStreamSourceConfiguration"),
    ):
        with refused("InvalidArgumentException") as error:
            create(DeliveryStreamName=NAME, ExtendedS3DestinationConfiguration=destination(), **given)
        assert named in error["Message"]
    with refused(
        "InvalidArgumentException", "Exactly one destination configuration is supported for a Firehose"
    ):
        create(DeliveryStreamName=NAME)


def test_a_role_is_of_the_own_account(landing: Landing) -> None:
    role = "arn:aws:iam::111111111111:role/others"
    text = f"Firehose is unable to assume role {role}. Please check the role provided."
    with refused("InvalidArgumentException", text):
        landing.stream(RoleARN=role)
