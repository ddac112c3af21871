"""Configurations of destinations: what a request says of S3, with every default filled in, or why it is refused."""

from collections.abc import Mapping
from typing import Any, Final

from redrive.aws.firehose.errors import invalid, unoffered
from redrive.aws.firehose.objects import COMPRESSIONS, check_prefixes, zone_of
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.shapes import Structure

#: Sources and destinations that a stream may have at Amazon.
_UNOFFERED: Final = (
    *("KinesisStreamSourceConfiguration", "MSKSourceConfiguration", "DatabaseSourceConfiguration"),
    *("RedshiftDestinationConfiguration", "ElasticsearchDestinationConfiguration"),
    *("AmazonopensearchserviceDestinationConfiguration", "SplunkDestinationConfiguration"),
    *("HttpEndpointDestinationConfiguration", "AmazonOpenSearchServerlessDestinationConfiguration"),
    *("SnowflakeDestinationConfiguration", "IcebergDestinationConfiguration"),
    *("RedshiftDestinationUpdate", "ElasticsearchDestinationUpdate", "SplunkDestinationUpdate"),
    *(
        "AmazonopensearchserviceDestinationUpdate",
        "HttpEndpointDestinationUpdate",
        "IcebergDestinationUpdate",
    ),
    *("AmazonOpenSearchServerlessDestinationUpdate", "SnowflakeDestinationUpdate"),
)
_DEFAULTS: Final[Mapping[str, Any]] = {
    "CompressionFormat": "UNCOMPRESSED",
    "EncryptionConfiguration": {"NoEncryptionConfig": "NoEncryption"},
    "CloudWatchLoggingOptions": {"Enabled": False},
    "ProcessingConfiguration": {"Enabled": False, "Processors": []},
    "S3BackupMode": "Disabled",
}
_HINTS: Final[Mapping[str, int]] = {"SizeInMBs": 5, "IntervalInSeconds": 300}
_OFFERED_PROCESSORS: Final = ("Lambda", "AppendDelimiterToRecord")
_LAMBDA_DEFAULTS: Final = {"NumberOfRetries": "3", "BufferSizeInMBs": "1", "BufferIntervalInSeconds": "60"}
_RETRIES_MAX: Final = 300
_LAMBDA_MBS: Final = (0.2, 3.0)
_DELIMITERS: Final = {"\\n": "\n", "\n": "\n", "\\t": "\t", "\\r\\n": "\r\n"}


def delimiter(parameters: Mapping[str, str]) -> bytes:
    """The text that is put behind each record."""
    delimiter_text = parameters.get("Delimiter", "\\n")
    return _DELIMITERS.get(delimiter_text, delimiter_text).encode()


def of_request(params: Structure) -> dict[str, Any]:
    """The settings of a new stream's destination; raises AwsError if they are not acceptable or offered."""
    _refuse_unoffered(params)
    extended, plain = (
        params.get("ExtendedS3DestinationConfiguration"),
        params.get("S3DestinationConfiguration"),
    )
    if (extended is None) == (plain is None):
        raise invalid("Exactly one destination configuration is supported for a Firehose")
    return complete(extended or plain or {})


def of_update(params: Structure, before: Mapping[str, Any]) -> dict[str, Any]:
    """A destination's settings after a change: members not given stay; raises AwsError as `of_request`."""
    _refuse_unoffered(params)
    update = params.get("ExtendedS3DestinationUpdate", params.get("S3DestinationUpdate"))
    if update is None:
        raise invalid("Exactly one destination update is required.")
    if update.get("S3BackupUpdate"):
        raise unoffered("backups of source records")
    changes = {name: value for name, value in update.items() if value is not None}
    return complete({**before, **changes})


def _refuse_unoffered(params: Structure) -> None:
    for name in _UNOFFERED:
        if params.get(name) is not None:
            raise unoffered(f"{name}: streams take records by PutRecord, and deliver to S3")


def complete(configuration: Structure) -> dict[str, Any]:
    """The settings of S3 with every default filled in; raises AwsError if one of them is not acceptable."""
    settings = {**_DEFAULTS, **{name: value for name, value in configuration.items() if value is not None}}
    settings["BufferingHints"] = {**_HINTS, **(configuration.get("BufferingHints") or {})}
    _check_arns(settings)
    _check_features(settings)
    check_prefixes(settings.get("Prefix") or "", settings.get("ErrorOutputPrefix") or "")
    zone_of(settings.get("CustomTimeZone") or "")
    settings["ProcessingConfiguration"] = _complete_processing(settings["ProcessingConfiguration"])
    return settings


def _check_arns(settings: Mapping[str, Any]) -> None:
    for member, service in (("BucketARN", "s3"), ("RoleARN", "iam")):
        try:
            parsed = parse_arn(settings[member])
        except ValueError as fault:
            raise invalid(f"{member} is not valid: {fault}") from None
        if parsed.service != service:
            raise invalid(f"{member} {settings[member]} is not an ARN of {service}.")
    options = settings["CloudWatchLoggingOptions"]
    if options.get("Enabled") and not (options.get("LogGroupName") and options.get("LogStreamName")):
        raise invalid("LogGroupName and LogStreamName are required where logging is enabled.")


def _check_features(settings: Mapping[str, Any]) -> None:
    if settings["CompressionFormat"] not in COMPRESSIONS:
        raise unoffered(f"the compression {settings['CompressionFormat']}")
    if settings["EncryptionConfiguration"].get("KMSEncryptionConfig"):
        raise unoffered("keys of KMS for objects")
    if settings["S3BackupMode"] == "Enabled" or settings.get("S3BackupConfiguration"):
        raise unoffered("backups of source records")
    conversion = settings.get("DataFormatConversionConfiguration") or {}
    if conversion.get("Enabled", bool(conversion)):  # a conversion is enabled unless it says otherwise
        raise unoffered("DataFormatConversionConfiguration")
    if (settings.get("DynamicPartitioningConfiguration") or {}).get("Enabled"):
        raise unoffered("DynamicPartitioningConfiguration")


def _complete_processing(processing: Structure) -> dict[str, Any]:
    """The processors, with the defaults that Amazon shows."""
    processors = [_complete_processor(each) for each in processing.get("Processors") or ()]
    types = [each["Type"] for each in processors]
    if len(set(types)) != len(types):
        raise invalid("A processor of a type is supported once at most.")
    return {"Enabled": bool(processing.get("Enabled")), "Processors": processors}


def _complete_processor(processor: Structure) -> dict[str, Any]:
    kind, entries = processor["Type"], processor.get("Parameters") or ()
    if kind not in _OFFERED_PROCESSORS:
        raise unoffered(f"the processor {kind}")
    parameters = {each["ParameterName"]: each["ParameterValue"] for each in entries}
    if kind == "Lambda":
        _check_function(parameters)
        parameters = {**_LAMBDA_DEFAULTS, **parameters}
    items = [{"ParameterName": name, "ParameterValue": value} for name, value in parameters.items()]
    return {"Type": kind, "Parameters": items}


def _check_function(parameters: Mapping[str, str]) -> None:
    if not parameters.get("LambdaArn", "").startswith("arn:aws:lambda:"):
        raise invalid("A processor of type Lambda needs the ARN of a function as LambdaArn.")
    retries, mebibytes = parameters.get("NumberOfRetries", "3"), parameters.get("BufferSizeInMBs", "1")
    if not (retries.isdecimal() and int(retries) <= _RETRIES_MAX):
        raise invalid(f"NumberOfRetries must be a number from 0 to {_RETRIES_MAX}.")
    mebibytes_min, mebibytes_max = _LAMBDA_MBS
    try:
        is_valid = mebibytes_min <= float(mebibytes) <= mebibytes_max
    except ValueError:
        is_valid = False
    if not is_valid:
        raise invalid(f"BufferSizeInMBs must be a number from {mebibytes_min} to {mebibytes_max}.")
