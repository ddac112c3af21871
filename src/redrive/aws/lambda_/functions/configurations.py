"""Configurations of functions: what a caller gives for a version, checked, over what it had; and as answers show it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import orjson

from redrive.aws.lambda_.documents.errors import invalid, unoffered
from redrive.aws.lambda_.documents.names import arn_of
from redrive.aws.lambda_.documents.records import Configuration
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.timestamps import to_offset_iso8601
from redrive.model.names import id_text

TIMEOUT_SECONDS_MAX: Final = 900
MEMORY_MB_MAX: Final = 10_240
STORAGE_MB_MAX: Final = 10_240
VARIABLES_BYTES_MAX: Final = 4096

_RUNTIME: Final = re.compile(
    r"python3\.\d{1,2}|nodejs\d{2}\.x|java\d{1,2}(\.al2(023)?)?|provided(\.al2(023)?)?"
)
#: AWS's, in the order in which it prints them.
_OFFERED: Final = dict.fromkeys(
    (
        *(
            "nodejs20.x",
            "python3.14",
            "provided.al2023",
            "python3.12",
            "python3.13",
            "nodejs24.x",
            "nodejs22.x",
        ),
        *(
            "java25",
            "python3.10",
            "python3.11",
            "java21",
            "ruby3.3",
            "ruby3.4",
            "ruby3.2",
            "python3.8",
            "python3.9",
        ),
        *("java17", "nodejs16.x", "dotnet10", "dotnet8", "java11", "dotnet6", "nodejs18.x", "provided.al2"),
        "java8.al2",
    )
)
#: Those whose functions AWS neither creates nor updates any more: "Deprecated runtimes", Lambda developer guide.
_ENDED: Final = dict.fromkeys(
    (
        *("java8", "go1.x", "provided", "nodejs", "nodejs4.3", "nodejs4.3-edge", "nodejs6.10", "nodejs8.10"),
        *(
            "nodejs10.x",
            "nodejs12.x",
            "nodejs14.x",
            "python2.7",
            "python3.6",
            "python3.7",
            "ruby2.5",
            "ruby2.7",
        ),
        *("dotnetcore1.0", "dotnetcore2.0", "dotnetcore2.1", "dotnetcore3.1", "dotnet5.0", "dotnet7"),
    )
)
_RUNS: Final = "python3.x, nodejs.x, java and provided.*"
_QUEUE_OR_TOPIC: Final = re.compile(r"arn:aws[a-z-]*:(sqs|sns):[a-z0-9-]+:[0-9]{12}:[\w.-]+")
# "Defined runtime environment variables", Lambda developer guide: those that callers cannot set.
_RESERVED: Final = frozenset(
    (
        *("_HANDLER", "_X_AMZN_TRACE_ID", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_EXECUTION_ENV"),
        *("AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION"),
        *("AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME"),
        *("AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        *("AWS_LAMBDA_RUNTIME_API", "LAMBDA_TASK_ROOT", "LAMBDA_RUNTIME_DIR"),
    )
)
# What this server would have to ignore, with the values that ask for nothing.
_UNOFFERED: Final[Mapping[str, tuple[Any, ...]]] = {
    "FileSystemConfigs": ([],),
    "ImageConfig": ({},),
    "SnapStart": ({}, {"ApplyOn": "None"}),
    "CodeSigningConfigArn": ("",),
    "TenancyConfig": (),
    "CapacityProviderConfig": (),
    "DurableConfig": (),
    "RuntimeConfig": (),
    "AcceleratorConfig": (),
    "PublishTo": (),
}
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


def configure(before: Configuration, params: Structure, *, ended_runtimes: bool) -> Configuration:
    """A configuration with what a caller gives for it.

    Raises:
        AwsError: Something is not acceptable, or is not offered here.
    """
    for parameter, harmless_values in _UNOFFERED.items():
        if parameter in params and params[parameter] not in harmless_values:
            raise unoffered(parameter)
    runtime = params.get("Runtime", before.runtime)
    _check_runtime(runtime, ended_runtimes=ended_runtimes)
    return replace(
        before,
        role=params.get("Role", before.role),
        runtime=runtime,
        handler=params.get("Handler", before.handler),
        description=params.get("Description", before.description),
        timeout_seconds=_at_most(params, "Timeout", before.timeout_seconds, TIMEOUT_SECONDS_MAX),
        memory_mb=_at_most(params, "MemorySize", before.memory_mb, MEMORY_MB_MAX),
        storage_mb=_at_most(
            params.get("EphemeralStorage", {}),
            "Size",
            before.storage_mb,
            STORAGE_MB_MAX,
            "ephemeralStorage.size",
        ),
        variables=_variables(params, before.variables),
        dead_letter=_dead_letter(params, before.dead_letter),
        architecture=params.get("Architectures", [before.architecture])[0],
        tracing=params.get("TracingConfig", {}).get("Mode", before.tracing),
        logging=_logging(params, before),
        network=params.get("VpcConfig", before.network),
        kms_key=params.get("KMSKeyArn", before.kms_key),
    )


def offered_runtimes(*, ended: bool) -> list[str]:
    """The runtimes of functions that can be created, by name; `ended`: those that AWS has ended."""
    return sorted(filter(_RUNTIME.fullmatch, _ENDED if ended else _OFFERED))


def _check_runtime(runtime: str, *, ended_runtimes: bool) -> None:
    """Refuse a runtime that is not offered; `ended_runtimes` allows those that AWS has ended."""
    if runtime in _ENDED and not ended_runtimes:
        raise invalid(
            f"The runtime parameter of {runtime} is no longer supported for creating or updating AWS Lambda functions. We"
            " recommend you use a supported runtime while creating or updating functions."
        )
    if runtime not in _ENDED | _OFFERED:
        raise invalid(
            f"Value {runtime} at 'runtime' failed to satisfy constraint: Member must satisfy enum value set:"
            f" [{', '.join(_OFFERED)}] or be a valid ARN"
        )
    if not _RUNTIME.fullmatch(runtime):
        raise invalid(f"Value {runtime} at 'runtime' failed to satisfy constraint: Redrive runs {_RUNS}")


def _at_most(params: Mapping[str, Any], name: str, before: int, maximum: int, path: str = "") -> int:
    """The number that a caller gives, or else the one before; `path` is its name in the refusal of too large a one."""
    value: int = params.get(name, before)
    if value > maximum:
        path = path or name[:1].lower() + name[1:]
        raise invalid(
            f"'{path}' value failed to satisfy constraint: Member must have value less than or equal to {maximum}"
        )
    return value


def _variables(params: Structure, before: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The environment variables of a request, or those from before if it has none; raises AwsError."""
    if "Environment" not in params:
        return before
    variables: dict[str, str] = params["Environment"].get("Variables", {})
    reserved = sorted(_RESERVED & variables.keys())
    if reserved:
        raise invalid(
            "Lambda was unable to configure your environment variables because the environment variables you have"
            " provided contains reserved keys that are currently not supported for modification. Reserved keys used in"
            f" this request: {', '.join(reserved)}"
        )
    text = orjson.dumps(variables)
    if len(text) > VARIABLES_BYTES_MAX:
        raise invalid(
            "Lambda was unable to configure your environment variables because the environment variables you have"
            f" provided exceeded the 4KB limit. String measured: {text.decode()}"
        )
    return variables


def _dead_letter(params: Structure, before: str) -> str:
    """The ARN of the dead-letter target of a request, or that from before; empty: none."""
    if "DeadLetterConfig" not in params:
        return before
    arn: str = params["DeadLetterConfig"].get("TargetArn", "")
    if arn and (not _QUEUE_OR_TOPIC.fullmatch(arn) or arn.endswith(".fifo")):
        raise invalid(f"The provided dead letter target is invalid: {arn}. It is a standard queue or topic.")
    return arn


def _logging(params: Structure, before: Configuration) -> Mapping[str, str]:
    """The logging settings with their defaults; only logs in JSON have levels."""
    settings: Mapping[str, str] = {**before.logging, **params.get("LoggingConfig", {})}
    log_format = settings.get("LogFormat", "Text")
    logging = {
        "LogFormat": log_format,
        "LogGroup": settings.get("LogGroup", f"/aws/lambda/{before.name.name}"),
    }
    if log_format == "JSON":
        for level in ("ApplicationLogLevel", "SystemLogLevel"):
            logging[level] = settings.get(level, "INFO")
    return logging


def render(
    configuration: Configuration, qualifier: str | None = None, state: Mapping[str, str] = ACTIVE
) -> Structure:
    """A version as answers show it, its ARN with a qualifier or without."""
    description = render_summary(configuration, qualifier)
    if state is not ACTIVE:
        description["RevisionId"] = _passing_revision(configuration)
    description["RuntimeVersionConfig"] = {"RuntimeVersionArn": _runtime_arn(configuration)}
    return {**description, **state}


def render_summary(configuration: Configuration, qualifier: str | None = None) -> Structure:
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
        "LastModified": to_offset_iso8601(configuration.modified_at),
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


def _passing_revision(configuration: Configuration) -> str:
    """The revision of a version that is being made or changed: it has another one once it is active (recorded)."""
    return id_text(sha256(configuration.revision.encode()).digest()[:16])


def _runtime_arn(configuration: Configuration) -> str:
    """A stable name for a runtime; on AWS it names the image, of which there is none here."""
    mark = sha256(configuration.runtime.encode()).hexdigest()
    return f"arn:aws:lambda:{configuration.name.region}::runtime:{mark}"
