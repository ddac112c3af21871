"""Settings of destinations: what is refused, by which words, and what is filled in."""

from typing import Any

import pytest

from redrive.aws.firehose.configuration import complete, delimiter
from redrive.aws.wire.errors import AwsError
from tests.contracts.aws.firehose.landing import destination, processors

FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:f"


def function(**parameters: str) -> dict[str, Any]:
    """A processor of the type Lambda."""
    listed = {"LambdaArn": FUNCTION, **parameters}
    shown = [{"ParameterName": name, "ParameterValue": value} for name, value in listed.items()]
    return {"Type": "Lambda", "Parameters": shown}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"CompressionFormat": "Snappy"}, "the compression Snappy"),
        ({"S3BackupMode": "Enabled"}, "backups of source records"),
        ({"S3BackupConfiguration": destination()}, "backups of source records"),
        ({"DynamicPartitioningConfiguration": {"Enabled": True}}, "DynamicPartitioningConfiguration"),
        ({"DataFormatConversionConfiguration": {"Enabled": True}}, "DataFormatConversionConfiguration"),
        (
            {"EncryptionConfiguration": {"KMSEncryptionConfig": {"AWSKMSKeyARN": "k"}}},
            "keys of KMS for objects",
        ),
        ({"ProcessingConfiguration": processors({"Type": "MetadataExtraction"})}, "MetadataExtraction"),
        ({"Prefix": "!{partitionKeyFromQuery:a}/"}, "dynamic partitioning"),
    ],
)
def test_features_that_are_not_offered_are_refused_by_name(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(AwsError) as refused:
        complete(destination(**settings))
    assert refused.value.code == "InvalidArgumentException"
    assert refused.value.message.startswith("Redrive does not offer ")
    assert named in refused.value.message


@pytest.mark.parametrize(
    "settings",
    [
        {"BucketARN": "landing"},
        {"RoleARN": "arn:aws:sns:us-east-1:000000000000:t"},
        {"CloudWatchLoggingOptions": {"Enabled": True, "LogGroupName": "g"}},
        {"CustomTimeZone": "Mars/Base"},
        {"ProcessingConfiguration": processors({"Type": "Lambda"})},
        {"ProcessingConfiguration": processors(function(NumberOfRetries="301"))},
        {"ProcessingConfiguration": processors(function(NumberOfRetries="-1"))},
        {"ProcessingConfiguration": processors(function(BufferSizeInMBs="4"))},
        {"ProcessingConfiguration": processors(function(BufferSizeInMBs="some"))},
        {"ProcessingConfiguration": processors(function(), function())},
    ],
)
def test_unacceptable_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(AwsError, match="InvalidArgumentException"):
        complete(destination(**settings))


def test_features_that_are_switched_off_are_no_wish() -> None:
    off = {"Enabled": False}
    shown = complete(destination(DynamicPartitioningConfiguration=off, DataFormatConversionConfiguration=off))
    assert shown["DynamicPartitioningConfiguration"] == off


def test_a_function_has_the_defaults_that_are_shown() -> None:
    (shown,) = complete(destination(ProcessingConfiguration=processors(function())))[
        "ProcessingConfiguration"
    ]["Processors"]
    assert {each["ParameterName"]: each["ParameterValue"] for each in shown["Parameters"]} == {
        "LambdaArn": FUNCTION,
        "NumberOfRetries": "3",
        "BufferSizeInMBs": "1",
        "BufferIntervalInSeconds": "60",
    }


def test_delimiters_are_written_as_escapes_or_as_they_are() -> None:
    found = [delimiter(given) for given in ({}, {"Delimiter": "\\n"}, {"Delimiter": "|"})]
    assert found == [b"\n", b"\n", b"|"]
