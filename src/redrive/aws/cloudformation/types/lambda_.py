"""Types of AWS Lambda: functions, their versions and aliases, and layers."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.calls import (
    Ask,
    ResourceSpec,
    ResourceState,
    TagCalls,
    changed_properties,
    own_tags,
    pick,
    unless_created,
    without_absence,
)
from redrive.aws.cloudformation.types.resource_type import (
    ID,
    Description,
    Factory,
    Parameters,
    PutResourceType,
    ResourceType,
)

_CONFIGURATION: Final = (
    *("Role", "Handler", "Description", "Timeout", "MemorySize", "VpcConfig", "Environment", "Runtime"),
    *("DeadLetterConfig", "KmsKeyArn", "TracingConfig", "Layers", "FileSystemConfigs", "ImageConfig"),
    *("EphemeralStorage", "SnapStart", "LoggingConfig"),
)
# The values of settings of a function that a template no longer has.
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
PARAMETER_NAMES: Final = {"KmsKeyArn": "KMSKeyArn"}
_EXISTS: Final = "ResourceConflictException"
TAGS: Final = TagCalls("lambda", "ListTags", "TagResource", "UntagResource", pair=())


class FunctionType(ResourceType):
    """`AWS::Lambda::Function`; its id is its name."""

    service, noun = "lambda", "Function"
    name_property = "FunctionName"
    name_chars_max = 64
    keys: ClassVar[Parameters] = {"FunctionName": ID}
    description = Description("GetFunctionConfiguration", _CONFIGURATION)
    undescribed = frozenset({"Code"})

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        await self.refuse_existing(ask, spec, "GetFunctionConfiguration", FunctionName=spec.name)
        params = _configuration(properties) | pick(properties, "Architectures", "PackageType")
        params |= {"FunctionName": spec.name, "Code": _code(properties), "Tags": own_tags(spec)}
        await unless_created(ask("lambda", "CreateFunction", **params), spec, _EXISTS)
        await _set_concurrency(ask, spec.name, properties)
        return _state(spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        name, properties = spec.physical_id, spec.properties
        changed_names = changed_properties(before, properties)
        if settings := changed_names & frozenset(_CONFIGURATION):
            configuration = _configuration(pick(_DEFAULTS, *settings) | pick(properties, *settings))
            await ask("lambda", "UpdateFunctionConfiguration", FunctionName=name, **configuration)
        if changed_names & {"Code", "Architectures"}:
            code = _code(properties) | pick(properties, "Architectures")
            await ask("lambda", "UpdateFunctionCode", FunctionName=name, **code)
        if "ReservedConcurrentExecutions" in changed_names:
            await _set_concurrency(ask, name, properties, clear=True)
        await TAGS.set(ask, own_tags(spec), Resource=spec.arn("lambda", f"function:{name}"))
        return _state(spec, name)


def _configuration(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        PARAMETER_NAMES.get(name, name): value for name, value in pick(properties, *_CONFIGURATION).items()
    }


def _code(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the code: a text becomes an archive of one file and the module that sends responses."""
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
    """Set the reserved concurrency; if the properties have none, `clear` removes an earlier one."""
    concurrency = pick(properties, "ReservedConcurrentExecutions")
    if concurrency:
        await ask("lambda", "PutFunctionConcurrency", FunctionName=name, **concurrency)
    elif clear:
        await ask("lambda", "DeleteFunctionConcurrency", FunctionName=name)


def _state(spec: ResourceSpec, name: str) -> ResourceState:
    snap_start = {"SnapStartResponse.ApplyOn": "None", "SnapStartResponse.OptimizationStatus": "Off"}
    return ResourceState(name, {"Arn": spec.arn("lambda", f"function:{name}"), **snap_start})


# ---- versions and aliases --------------------------------------------------------------------------------------------


_PROVISIONED: Final = "ProvisionedConcurrencyConfig"


class VersionType(ResourceType):
    """`AWS::Lambda::Version`; its id is its ARN. Publishing an unchanged function again answers with the same version."""

    service, noun = "lambda", "Function"
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params = pick(spec.properties, "FunctionName", "Description", "CodeSha256")
        answer = await ask("lambda", "PublishVersion", **params)
        await _set_provisioned_concurrency(ask, spec, answer["FunctionArn"])
        return _version(answer["FunctionArn"])

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        await _set_provisioned_concurrency(ask, spec, spec.physical_id, before)
        return _version(spec.physical_id)

    @override
    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        return _version_params(spec.physical_id)

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return ""


def _version(arn: str) -> ResourceState:
    return ResourceState(arn, {"Version": arn.rpartition(":")[2], "FunctionArn": arn})


def _version_params(arn: str) -> dict[str, str]:
    function, _, qualifier = arn.rpartition(":")
    return {"FunctionName": function, "Qualifier": qualifier}


async def _set_provisioned_concurrency(
    ask: Ask, spec: ResourceSpec, arn: str, before: Mapping[str, Any] | None = None
) -> None:
    """Configure the provisioned concurrency of a version or an alias."""
    old, new = (before or {}).get(_PROVISIONED), spec.properties.get(_PROVISIONED)
    if old == new:
        return
    if new:
        await ask("lambda", "PutProvisionedConcurrencyConfig", **_version_params(arn), **new)
    else:
        await without_absence(ask("lambda", "DeleteProvisionedConcurrencyConfig", **_version_params(arn)))


class FunctionAliasType(ResourceType):
    """`AWS::Lambda::Alias`; its id is its ARN."""

    service, noun = "lambda", "Alias"
    name_property = "Name"
    name_chars_max = 128
    keys: ClassVar[Parameters] = {"FunctionName": "FunctionName", "Name": "Name"}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params = _alias(spec.properties)
        answer = await unless_created(ask("lambda", "CreateAlias", **params), spec, _EXISTS)
        if answer is None:
            answer = await ask("lambda", "UpdateAlias", **params)
        await _set_provisioned_concurrency(ask, spec, answer["AliasArn"])
        return ResourceState(answer["AliasArn"], {"AliasArn": answer["AliasArn"]})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        answer = await ask("lambda", "UpdateAlias", **{"RoutingConfig": {}, **_alias(spec.properties)})
        await _set_provisioned_concurrency(ask, spec, answer["AliasArn"], before)
        return ResourceState(answer["AliasArn"], {"AliasArn": answer["AliasArn"]})


def _alias(properties: Mapping[str, Any]) -> dict[str, Any]:
    params = pick(properties, "FunctionName", "FunctionVersion", "Name", "Description")
    weights = (properties.get("RoutingConfig") or {}).get("AdditionalVersionWeights")
    if weights is not None:
        shares = {row["FunctionVersion"]: row["FunctionWeight"] for row in weights}
        params["RoutingConfig"] = {"AdditionalVersionWeights": shares}
    return params


class LayerVersionType(PutResourceType):
    """`AWS::Lambda::LayerVersion`; its id is the ARN of the version."""

    service, noun = "lambda", "LayerVersion"
    name_property = "LayerName"
    name_chars_max = 140

    @override
    def create_only_names(self, changed_names: frozenset[str], before: Mapping[str, Any]) -> frozenset[str]:
        return frozenset()  # each change publishes another version of the same layer

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        content = pick(spec.properties["Content"], "S3Bucket", "S3Key", "S3ObjectVersion")
        params = pick(
            spec.properties, "Description", "CompatibleRuntimes", "CompatibleArchitectures", "LicenseInfo"
        )
        answer = await ask("lambda", "PublishLayerVersion", LayerName=spec.name, Content=content, **params)
        return ResourceState(answer["LayerVersionArn"], {"LayerVersionArn": answer["LayerVersionArn"]})

    @override
    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        layer, _, version = spec.physical_id.rpartition(":")
        return {"LayerName": layer, "VersionNumber": int(version)}

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        answer = await without_absence(ask("lambda", "ListLayerVersions", LayerName=spec.name))
        versions = (answer or {}).get("LayerVersions") or ()
        return versions[0]["LayerVersionArn"] if versions else ""


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::Lambda::Alias": FunctionAliasType,
    "AWS::Lambda::Function": FunctionType,
    "AWS::Lambda::LayerVersion": LayerVersionType,
    "AWS::Lambda::Version": VersionType,
}


# ---- code in templates ----------------------------------------------------------------------------------
#
# The name of its file, and the module beside it that sends the responses of custom resources.

_PYTHON: Final = '''"""Answers CloudFormation on behalf of a custom resource."""

import json
import urllib.request

SUCCESS = "SUCCESS"
FAILED = "FAILED"


def send(event, context, responseStatus, responseData, physicalResourceId=None, noEcho=False, reason=None):
    body = json.dumps(
        {
            "Status": responseStatus,
            "Reason": reason or f"See the details in CloudWatch Log Stream: {context.log_stream_name}",
            "PhysicalResourceId": physicalResourceId or context.log_stream_name,
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            "NoEcho": noEcho,
            "Data": responseData,
        }
    ).encode()
    request = urllib.request.Request(event["ResponseURL"], data=body, headers={"Content-Type": ""}, method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        print("Status code:", answer.status)
'''
_NODE: Final = """exports.SUCCESS = "SUCCESS";
exports.FAILED = "FAILED";
exports.send = function (event, context, responseStatus, responseData, physicalResourceId, noEcho) {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify({
      Status: responseStatus,
      Reason: "See the details in CloudWatch Log Stream: " + context.logStreamName,
      PhysicalResourceId: physicalResourceId || context.logStreamName,
      StackId: event.StackId,
      RequestId: event.RequestId,
      LogicalResourceId: event.LogicalResourceId,
      NoEcho: noEcho || false,
      Data: responseData,
    });
    const url = new URL(event.ResponseURL);
    const library = require(url.protocol === "https:" ? "https" : "http");
    const headers = { "content-type": "", "content-length": Buffer.byteLength(body) };
    const request = library.request(url, { method: "PUT", headers }, (answer) => {
      answer.resume();
      answer.on("end", () => { resolve(); context.done && context.done(); });
    });
    request.on("error", (error) => { reject(error); context.done && context.done(error); });
    request.end(body);
  });
};
"""


def file_name(runtime: str) -> str:
    """The name of the file of a function's code: its handler is `index.handler`."""
    if runtime.startswith("nodejs"):
        return "index.js"
    return "index.py" if runtime.startswith("python") else "index"


def response_modules(runtime: str) -> list[tuple[str, str]]:
    """The names and texts of the files beside it, which AWS adds as well."""
    if runtime.startswith("python"):
        return [("cfnresponse.py", _PYTHON)]
    return [("cfn-response.js", _NODE)] if runtime.startswith("nodejs") else []
