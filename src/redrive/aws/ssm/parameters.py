"""Operations on parameters, and on their tags, which deployment tools read."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import re2

from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.ssm.errors import PAGES, error, invalid, not_found
from redrive.aws.ssm.records import PARAMETER, VERSIONS_KEPT, Parameter, parameter_key, plain_name
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.errors import NotFound

PARAMETERS_MAX: Final = 10_000  # of an account's region
VALUE_BYTES_MAX: Final = 8192  # of the advanced tier; the standard tier is not limited any further
_NAME: Final = re.compile(r"[a-zA-Z0-9_.\-/]{1,1011}")
_RESERVED: Final = re.compile(r"/?(?:aws|ssm)", re.IGNORECASE)
_TYPES: Final = ("String", "StringList", "SecureString")
_PARAMETER: Final = "Parameter"
TAGS: Final = Tagging(
    too_many=lambda: error("TooManyTagsError", "A parameter has at most 50 tags."),
    add="AddTagsToResource",
    remove="RemoveTagsFromResource",
    listed="TagList",
)


class ParameterOperations:
    """The operations on parameters."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._documents = engine.resources.documents

    async def put_parameter(self, call: Call, params: Structure) -> Structure:
        name = _checked_name(params["Name"])
        key = parameter_key(call.account, call.region, name)
        parameters = await self._documents.find(
            PARAMETER, f"{call.account}/{call.region}/", limit=PARAMETERS_MAX
        )

        async def decide(draft: Draft) -> Parameter:
            current = await draft.get(PARAMETER, key)
            if current is not None and not params.get("Overwrite"):
                raise error(
                    "ParameterAlreadyExists",
                    "The parameter already exists. To overwrite this value, set the overwrite option in the"
                    " request to true.",
                )
            if current is None and len(parameters) >= PARAMETERS_MAX:
                raise error("ParameterLimitExceeded", f"An account has at most {PARAMETERS_MAX} parameters.")
            parameter = _new_version(call, params, name, current)
            draft.put(PARAMETER, key, parameter)
            return parameter

        parameter = await self._engine.resources.write(decide)
        return {"Version": parameter.version, "Tier": "Standard"}

    async def get_parameter(self, call: Call, params: Structure) -> Structure:
        parameter = await self._find(call, params["Name"], decrypts=bool(params.get("WithDecryption")))
        if parameter is None:
            raise not_found()
        return {"Parameter": parameter}

    async def get_parameters(self, call: Call, params: Structure) -> Structure:
        items, invalid_names = [], []
        for name in dict.fromkeys(params["Names"]):
            parameter = await self._find(call, name, decrypts=bool(params.get("WithDecryption")))
            if parameter is None:
                invalid_names.append(name)
            else:
                items.append(parameter)
        return {"Parameters": items, "InvalidParameters": invalid_names}

    async def get_parameters_by_path(self, call: Call, params: Structure) -> Structure:
        path: str = params["Path"]
        if not path.startswith("/"):
            raise invalid(f"The parameter path {path} must begin with a slash.")
        path = path if path.endswith("/") else f"{path}/"
        parameters = await self._all(call)
        # A name without a slash is at the root, too.
        matches = [each for each in parameters if path == "/" or each.name.startswith(path)]
        if not params.get("Recursive"):
            matches = [each for each in matches if "/" not in each.name.removeprefix(path)]

        def as_structure(parameter: Parameter) -> Structure:
            return _as_structure(parameter, parameter.version, decrypts=bool(params.get("WithDecryption")))

        return PAGES.of(
            "GetParametersByPath", params, matches, as_structure, lambda parameter: parameter.name
        )

    async def delete_parameter(self, call: Call, params: Structure) -> Structure:
        if not await self._documents.remove(PARAMETER, self._key(call, params["Name"])):
            raise not_found()
        return {}

    async def delete_parameters(self, call: Call, params: Structure) -> Structure:
        deleted_names: list[str] = []
        invalid_names: list[str] = []
        for name in dict.fromkeys(params["Names"]):
            removed = await self._documents.remove(PARAMETER, self._key(call, name))
            (deleted_names if removed else invalid_names).append(name)
        return {"DeletedParameters": deleted_names, "InvalidParameters": invalid_names}

    async def describe_parameters(self, call: Call, params: Structure) -> Structure:
        parameters = await self._all(call)
        for condition in params.get("ParameterFilters") or ():
            parameters = [each for each in parameters if _passes(each, condition)]
        return PAGES.of("DescribeParameters", params, parameters, _description, lambda each: each.name)

    def _key(self, call: Call, name: str) -> str:
        return parameter_key(call.account, call.region, plain_name(name))

    async def _all(self, call: Call) -> list[Parameter]:
        return await self._documents.find(PARAMETER, f"{call.account}/{call.region}/")

    async def _find(self, call: Call, name: str, *, decrypts: bool) -> Structure | None:
        """The parameter of a name, an ARN, or one of them with a version (`name:3`); None: there is none."""
        path, selector = plain_name(name), ""
        parameter = await self._documents.get(PARAMETER, parameter_key(call.account, call.region, path))
        if parameter is None:
            path, _, selector = path.rpartition(":")
            if not path or not selector:
                return None
            parameter = await self._documents.get(PARAMETER, parameter_key(call.account, call.region, path))
        if parameter is None:
            return None
        version = parameter.version
        if selector:
            version = int(selector) if selector.isdecimal() else 0  # no parameter has a version 0
        if parameter.value_of(version) is None:
            raise error(
                "ParameterVersionNotFound",
                f"Systems Manager could not find version {selector} of {path}.",
            )
        return _as_structure(parameter, version, decrypts=decrypts)


def _checked_name(name: str) -> str:
    name = plain_name(name)
    if not _NAME.fullmatch(name) or _RESERVED.match(name):
        raise invalid(
            'Parameter name: can\'t be prefixed with "aws" or "ssm" (case-insensitive). If formed as a path, it can'
            " consist of sub-paths divided by slash symbol; each sub-path can be formed as a mix of letters, numbers"
            " and the following 3 symbols .-_"
        )
    return name


def _new_version(call: Call, params: Structure, name: str, current: Parameter | None) -> Parameter:
    kind = params.get("Type") or (current.type if current else "")
    if kind not in _TYPES:
        raise invalid("A parameter type is required when you create a parameter.")
    value: str = params["Value"]
    if not value or len(value.encode()) > VALUE_BYTES_MAX:
        raise invalid(f"A value has 1 to {VALUE_BYTES_MAX} bytes.")
    pattern = params.get("AllowedPattern") or ""
    _check_pattern(pattern, value)
    tags = {tag["Key"]: tag["Value"] for tag in params.get("Tags") or ()}
    values = (*(current.values if current else ()), value)[-VERSIONS_KEPT:]
    return Parameter(
        account=call.account,
        region=call.region,
        name=name,
        type=kind,
        values=values,
        version=current.version + 1 if current else 1,
        modified_at=call.now,
        description=params.get("Description") or (current.description if current else ""),
        pattern=pattern,
        data_type=params.get("DataType") or "text",
        tags={**(current.tags if current else {}), **tags},
    )


def _check_pattern(pattern: str, value: str) -> None:
    try:
        is_valid = not pattern or re2.fullmatch(pattern, value) is not None
    except re2.error:
        raise error("InvalidAllowedPatternException", "The pattern is not a regular expression.") from None
    if not is_valid:
        raise error(
            "ParameterPatternMismatchException",
            f"Parameter value, cannot be validated against allowedPattern: {pattern}",
        )


def _arn(parameter: Parameter) -> str:
    name = parameter.name if parameter.name.startswith("/") else f"/{parameter.name}"
    return f"arn:aws:ssm:{parameter.region}:{parameter.account}:parameter{name}"


def _as_structure(parameter: Parameter, version: int, *, decrypts: bool) -> Structure:
    value = parameter.value_of(version) or ""
    if parameter.type == "SecureString" and not decrypts:
        # Callers expect ciphertext, which is the same for each call and differs between versions; a hash is, too.
        value = b64encode(sha256(f"{parameter.name}\n{version}".encode()).digest()).decode()
    return {
        "Name": parameter.name,
        "Type": parameter.type,
        "Value": value,
        "Version": version,
        "LastModifiedDate": parameter.modified_at,
        "ARN": _arn(parameter),
        "DataType": parameter.data_type,
    }


def _description(parameter: Parameter) -> Structure:
    description: dict[str, Any] = {
        "Name": parameter.name,
        "ARN": _arn(parameter),
        "Type": parameter.type,
        "LastModifiedDate": parameter.modified_at,
        "Version": parameter.version,
        "Tier": "Standard",
        "Policies": [],
        "DataType": parameter.data_type,
    }
    if parameter.description:
        description["Description"] = parameter.description
    if parameter.pattern:
        description["AllowedPattern"] = parameter.pattern
    return description


def _passes(parameter: Parameter, condition: Mapping[str, Any]) -> bool:
    """True if a parameter passes a filter of DescribeParameters; raises AwsError if its key is unknown here."""
    option, values = condition.get("Option") or "Equals", condition.get("Values") or []
    attribute = {"Name": parameter.name, "Type": parameter.type, "DataType": parameter.data_type}.get(
        condition["Key"]
    )
    if attribute is None:
        raise error("InvalidFilterKey", f"The filter key {condition['Key']} is not offered by this server.")
    if option == "BeginsWith":
        return any(attribute.startswith(value) for value in values)
    return any(value in attribute for value in values) if option == "Contains" else attribute in values


class ParameterTags:
    """The tags of parameters (`redrive.aws.kit.tagging.Tagged`)."""

    def __init__(self, engine: Engine) -> None:
        self._documents = engine.resources.documents

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the parameter that a request names; raises AwsError if there is none."""
        parameter = await self._documents.get(PARAMETER, _key(request.call, request.params))
        if parameter is None:
            raise _invalid_resource_id(request.params)
        return parameter.tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the parameter that a request names; raises AwsError if there is none."""
        try:
            await self._documents.update(
                PARAMETER,
                _key(request.call, request.params),
                lambda current: replace(current, tags=change(current.tags)),
            )
        except NotFound:
            raise _invalid_resource_id(request.params) from None


def _key(call: Call, params: Structure) -> str:
    if params["ResourceType"] != _PARAMETER:
        raise error("InvalidResourceType", "The resource type is not valid.")
    return parameter_key(call.account, call.region, plain_name(params["ResourceId"]))


def _invalid_resource_id(params: Structure) -> Exception:
    return error("InvalidResourceId", f'The resource ID "{params["ResourceId"]}" is not valid.')
