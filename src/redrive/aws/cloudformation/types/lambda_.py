"""Types of AWS Lambda."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.inline_code import file_name, response_modules
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    PutResourceType,
    ResourceType,
    Wanted,
    changed_properties,
    pick,
    refuse_existing,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import Tagging
from redrive.aws.wire.errors import AwsError

_CONFIGURATION: Final = (
    *("Role", "Handler", "Description", "Timeout", "MemorySize", "VpcConfig", "Environment", "Runtime"),
    *("DeadLetterConfig", "KmsKeyArn", "TracingConfig", "Layers", "FileSystemConfigs", "ImageConfig"),
    *("EphemeralStorage", "SnapStart", "LoggingConfig"),
)
# What a function has again when its template says nothing more of it.
_DEFAULTS: Final[Mapping[str, Any]] = {
    "Description": "",
    "Timeout": 3,
    "MemorySize": 128,
    "Environment": {"Variables": {}},
    "DeadLetterConfig": {"TargetArn": ""},
    "TracingConfig": {"Mode": "PassThrough"},
    "Layers": [],
    "EphemeralStorage": {"Size": 512},
}
_RENAMED: Final = {"KmsKeyArn": "KMSKeyArn"}
TAGS: Final = Tagging("lambda", "ListTags", "TagResource", "UntagResource", pair=())


class Function(ResourceType):
    """`AWS::Lambda::Function`; its id is its name."""

    service = "lambda"
    name_property = "FunctionName"
    name_chars_max = 64

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = wanted.properties
        if self.name_property in given:
            await refuse_existing(ask, wanted, "lambda", "GetFunctionConfiguration", FunctionName=wanted.name)
        params = _configuration(given) | pick(given, "Architectures", "PackageType")
        code = _code(given)
        try:
            await ask(
                "lambda",
                "CreateFunction",
                FunctionName=wanted.name,
                Code=code,
                Tags=wanted.all_tags(),
                **params,
            )
        except AwsError as error:
            if not (wanted.again and error.code == "ResourceConflictException"):
                raise
        await _set_concurrency(ask, wanted.name, given)
        return _made(wanted, wanted.name)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        name, given = wanted.physical_id, wanted.properties
        changed = changed_properties(before, given)
        settings = changed & frozenset(_CONFIGURATION)
        if settings:
            wished = {key: _DEFAULTS[key] for key in settings if key not in given and key in _DEFAULTS}
            wished |= {key: given[key] for key in settings if key in given}
            await ask("lambda", "UpdateFunctionConfiguration", FunctionName=name, **_configuration(wished))
        if changed & {"Code", "Architectures"}:
            code = _code(given) | pick(given, "Architectures")
            await ask("lambda", "UpdateFunctionCode", FunctionName=name, **code)
        if "ReservedConcurrentExecutions" in changed:
            await _set_concurrency(ask, name, given, clear=True)
        await TAGS.set(ask, wanted.all_tags(), Resource=wanted.arn("lambda", f"function:{name}"))
        return _made(wanted, name)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(ask("lambda", "DeleteFunction", FunctionName=wanted.physical_id))

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        found = await without_absence(
            ask("lambda", "GetFunctionConfiguration", FunctionName=wanted.physical_id)
        )
        if found is None:
            return None
        return {name: found[name] for name in _CONFIGURATION if name in found}


def _configuration(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {_RENAMED.get(name, name): properties[name] for name in _CONFIGURATION if name in properties}


def _code(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The code as Lambda takes it: a text becomes an archive with one file, and the module that answers stacks."""
    code = properties["Code"]
    if "ZipFile" not in code:
        return pick(code, "S3Bucket", "S3Key", "S3ObjectVersion", "ImageUri")
    runtime = str(properties.get("Runtime", ""))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in ((file_name(runtime), code["ZipFile"]), *response_modules(runtime)):
            archive.writestr(zipfile.ZipInfo(name), text)
    return {"ZipFile": buffer.getvalue()}


async def _set_concurrency(
    ask: Ask, name: str, properties: Mapping[str, Any], *, clear: bool = False
) -> None:
    reserved = properties.get("ReservedConcurrentExecutions")
    if reserved is not None:
        await ask(
            "lambda", "PutFunctionConcurrency", FunctionName=name, ReservedConcurrentExecutions=reserved
        )
    elif clear:
        await ask("lambda", "DeleteFunctionConcurrency", FunctionName=name)


def _made(wanted: Wanted, name: str) -> Made:
    off = {"SnapStartResponse.ApplyOn": "None", "SnapStartResponse.OptimizationStatus": "Off"}
    return Made(name, {"Arn": wanted.arn("lambda", f"function:{name}"), **off})


# ---- versions and aliases --------------------------------------------------------------------------------------------


class Version(ResourceType):
    """`AWS::Lambda::Version`; its id is its ARN, and publishing what did not change gives the same again."""

    service = "lambda"
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        params = pick(wanted.properties, "FunctionName", "Description", "CodeSha256")
        made = await ask("lambda", "PublishVersion", **params)
        return Made(made["FunctionArn"], {"Version": made["Version"], "FunctionArn": made["FunctionArn"]})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        return Made(
            wanted.physical_id,
            {"Version": wanted.physical_id.rpartition(":")[2], "FunctionArn": wanted.physical_id},
        )

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        function, _, version = wanted.physical_id.rpartition(":")
        await without_absence(ask("lambda", "DeleteFunction", FunctionName=function, Qualifier=version))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        return ""


class Alias(ResourceType):
    """`AWS::Lambda::Alias`; its id is its ARN."""

    service = "lambda"
    name_property = "Name"
    name_chars_max = 128

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        params = _alias(wanted.properties)
        try:
            made = await ask("lambda", "CreateAlias", **params)
        except AwsError as error:
            if not (wanted.again and error.code == "ResourceConflictException"):
                raise
            made = await ask("lambda", "UpdateAlias", **params)
        return Made(made["AliasArn"], {"AliasArn": made["AliasArn"]})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        made = await ask("lambda", "UpdateAlias", **{"RoutingConfig": {}, **_alias(wanted.properties)})
        return Made(made["AliasArn"], {"AliasArn": made["AliasArn"]})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = pick(wanted.properties, "FunctionName", "Name")
        await without_absence(ask("lambda", "DeleteAlias", **named))


def _alias(properties: Mapping[str, Any]) -> dict[str, Any]:
    params = pick(properties, "FunctionName", "FunctionVersion", "Name", "Description")
    weights = (properties.get("RoutingConfig") or {}).get("AdditionalVersionWeights")
    if weights is not None:
        shares = {row["FunctionVersion"]: row["FunctionWeight"] for row in weights}
        params["RoutingConfig"] = {"AdditionalVersionWeights": shares}
    return params


class LayerVersion(PutResourceType):
    """`AWS::Lambda::LayerVersion`; its id is the ARN of the version."""

    service = "lambda"
    needs = "PublishLayerVersion"
    name_property = "LayerName"
    name_chars_max = 140

    @override
    def replacing(self, changed: frozenset[str], before: Mapping[str, Any]) -> frozenset[str]:
        return frozenset()  # each change publishes another version of the same layer

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        content = pick(wanted.properties["Content"], "S3Bucket", "S3Key", "S3ObjectVersion")
        params = pick(
            wanted.properties, "Description", "CompatibleRuntimes", "CompatibleArchitectures", "LicenseInfo"
        )
        made = await ask("lambda", "PublishLayerVersion", LayerName=wanted.name, Content=content, **params)
        return Made(made["LayerVersionArn"], {"LayerVersionArn": made["LayerVersionArn"]})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        layer, _, version = wanted.physical_id.rpartition(":")
        named = {"LayerName": layer, "VersionNumber": int(version)}
        await without_absence(ask("lambda", "DeleteLayerVersion", **named))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        found = await without_absence(ask("lambda", "ListLayerVersions", LayerName=wanted.name))
        if found is None:
            return ""
        versions = found.get("LayerVersions") or ()
        return versions[0]["LayerVersionArn"] if versions else ""


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::Lambda::Alias": Alias,
    "AWS::Lambda::Function": Function,
    "AWS::Lambda::LayerVersion": LayerVersion,
    "AWS::Lambda::Version": Version,
}
