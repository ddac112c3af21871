"""Rendering configurations: a version of a function as answers show it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from redrive.aws.lambda_.documents.names import arn_of
from redrive.aws.lambda_.documents.records import Configuration
from redrive.aws.wire.shapes import Structure
from redrive.model.ids import id_text

#: The states that answers tell of. Nothing is prepared here before it is used: the next look finds it active.
CREATING: Final[Mapping[str, str]] = {
    "State": "Pending",
    "StateReason": "The function is being created.",
    "StateReasonCode": "Creating",
}
ACTIVE: Final[Mapping[str, str]] = {"State": "Active", "LastUpdateStatus": "Successful"}
_UNREADABLE: Final = {
    "ErrorCode": "AccessDeniedException",
    "Message": "Lambda was unable to decrypt your environment variables because the KMS access was denied. Please check"
    " your KMS permissions.",
}
# Recorded: "created", of updates as well.
UPDATING: Final[Mapping[str, str]] = {
    "State": "Active",
    "LastUpdateStatus": "InProgress",
    "LastUpdateStatusReason": "The function is being created.",
    "LastUpdateStatusReasonCode": "Creating",
}


def rendered(
    configuration: Configuration, qualifier: str | None = None, state: Mapping[str, str] = ACTIVE
) -> Structure:
    """A version as answers show it.

    Args:
        configuration: The version.
        qualifier: What the ARN ends with; None: nothing.
        state: What is told of its state.
    """
    description = listed(configuration, qualifier)
    if state is not ACTIVE:
        description["RevisionId"] = _passing_revision(configuration)
    description["RuntimeVersionConfig"] = {"RuntimeVersionArn": _runtime_arn(configuration)}
    return {**description, **state}


def listed(configuration: Configuration, qualifier: str | None = None) -> Structure:
    """A version as lists show it: without its state."""
    description: dict[str, Any] = {
        "Architectures": [configuration.architecture],
        "CodeSha256": configuration.code,
        "CodeSize": configuration.code_bytes,
        "Description": configuration.description,
        "EphemeralStorage": {"Size": configuration.storage_mb},
        "FunctionArn": arn_of(configuration.name, qualifier),
        "FunctionName": configuration.name.name,
        "Handler": configuration.handler,
        "LastModified": timestamp(configuration.modified_at),
        "LoggingConfig": dict(configuration.logging),
        "MemorySize": configuration.memory_mb,
        "PackageType": "Zip",
        "RevisionId": configuration.revision,
        "Role": configuration.role,
        "Runtime": configuration.runtime,
        "SnapStart": {"ApplyOn": "None", "OptimizationStatus": "Off"},
        "Timeout": configuration.timeout_seconds,
        "TracingConfig": {"Mode": configuration.tracing},
        "Version": configuration.version,
    }
    if configuration.variables is not None:
        description["Environment"] = {"Variables": dict(configuration.variables)}
    if configuration.sealed_variables:  # the caller may not decrypt them
        description["Environment"] = {"Error": _UNREADABLE}
    if configuration.kms_key:
        description["KMSKeyArn"] = configuration.kms_key
    if configuration.dead_letter:
        description["DeadLetterConfig"] = {"TargetArn": configuration.dead_letter}
    if configuration.layers:
        description["Layers"] = [
            {"Arn": layer.arn, "CodeSize": layer.code_bytes} for layer in configuration.layers
        ]
    if configuration.network is not None:
        description["VpcConfig"] = {
            "SubnetIds": [],
            "SecurityGroupIds": [],
            **configuration.network,
            "VpcId": "",
        }
    return description


def timestamp(at: int) -> str:
    """A moment (ms) as Lambda writes it: `2026-01-02T03:04:05.678+0000`."""
    moment = datetime.fromtimestamp(at // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}+0000"


def _passing_revision(configuration: Configuration) -> str:
    """The revision of a version that is being made or changed: it has another one once it is active (recorded)."""
    return id_text(sha256(configuration.revision.encode()).digest()[:16])


def _runtime_arn(configuration: Configuration) -> str:
    """A stable name for a runtime; on AWS it names the image, of which there is none here."""
    mark = sha256(configuration.runtime.encode()).hexdigest()
    return f"arn:aws:lambda:{configuration.name.region}::runtime:{mark}"
