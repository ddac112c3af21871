"""The kinds of parts of a REST API: the place of each in its tree, and the changes that patch operations may make.

The members and their types are those of the published model: of what the operation that shows a kind answers.

https://docs.aws.amazon.com/apigateway/latest/api/patch-operations.html
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

from redrive.aws.apigateway.control.errors import bad_request, not_found
from redrive.aws.apigateway.control.records import GATEWAY_RESPONSES, METHODS, STAGES, Tree, value_at
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Shape, Structure

_OPERATIONS: Final = frozenset({"add", "replace", "remove"})


@dataclass(frozen=True, slots=True)
class PatchRules:
    """The changes that patch operations may make to a kind, and the texts that refuse others (recorded)."""

    names: frozenset[str]  # The members that may be changed, with all that is in them
    kind: str = ""  # Its name in refusals
    replace_only: tuple[str, ...] = ()  # The paths that may only be replaced
    lists_paths: bool = False  # There are no other paths, and refusals list them
    # By member: the text that refuses to replace or remove an absent key.
    absent: Mapping[str, str] = field(default_factory=dict)

    def check(self, value: Structure, op: str, path: str) -> None:
        """Check a patch operation on a value of the kind.

        Raises:
            AwsError: `BadRequestException` or `NotFoundException`.
        """
        member, *inner_steps = steps_of(path) or [""]
        if self.lists_paths and (path not in self.replace_only or op != "replace"):
            raise _not_replaceable(path, op, self.replace_only)
        if member not in self.names:
            raise invalid_path(path, self.kind)
        if path in self.replace_only and op != "replace":
            raise bad_request("Invalid patch operation specified. Must be one of: [replace]")
        if op not in _OPERATIONS:
            raise bad_request("Invalid patch operation specified. Must be 'add'|'remove'|'replace'")
        refusal = self.absent.get(member)
        if refusal and op != "add" and inner_steps and inner_steps[0] not in (value.get(member) or {}):
            raise not_found(refusal)


def apply_patches(
    value: Structure, shape: Shape, rules: PatchRules, operations: Iterable[Mapping[str, Any]]
) -> Structure:
    """A value of a shape after patch operations, which its rules have to allow.

    Raises:
        AwsError: `BadRequestException` or `NotFoundException`.
    """
    for operation in operations:
        op, path = operation.get("op", ""), operation.get("path") or ""
        rules.check(value, op, path)
        value = _change_at(value, shape, steps_of(path), op, operation.get("value"), path)
    return value


def steps_of(path: str) -> list[str]:
    """The steps of a path, which is a JSON Pointer; empty if it is none."""
    if not path.startswith("/"):
        return []
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _change_at(
    value: Any, shape: Shape, steps: Sequence[str], op: str, new_value: str | None, path: str
) -> Any:
    """A value of a shape after an operation at the end of the steps; `path` is the whole path, for refusals."""
    step, *rest = steps
    if shape.type == "list":
        return _change_list(value, shape, steps, op, new_value, path)
    inner = _shape_of(shape, step, path)
    members = dict(value or {})
    if rest:
        members[step] = _change_at(members.get(step), inner, rest, op, new_value, path)
        if members[step] == {}:  # an object that becomes empty is removed (recorded)
            del members[step]
    elif op == "remove" or (new_value is None and inner.type == "string" and not inner.enum):
        members.pop(step, None)
    elif inner.type == "list":
        members[step] = _change_list(members.get(step), inner, [], op, new_value, path)
    else:
        members[step] = parse_value(inner, new_value, path)
    return members


def _shape_of(shape: Shape, step: str, path: str) -> Shape:
    """The shape of what a path's step leads to: a member, or an entry of a map; raises AwsError."""
    if shape.type == "map":
        return shape.value.shape
    if shape.type != "structure" or step not in shape.members:
        raise invalid_path(path)
    return shape.members[step].shape


def _change_list(
    value: Any, shape: Shape, steps: Sequence[str], op: str, new_value: str | None, path: str
) -> list[Any]:
    """A list of texts after an operation: the path may name an item by index or text, the value several by commas."""
    items = list(value or ())
    if len(steps) > 1 or shape.element.shape.type != "string":
        raise invalid_path(path)
    step = steps[0] if steps else ""
    is_index = step.isdecimal() and int(step[:9]) < len(items)
    if op == "remove":
        if is_index:
            del items[int(step)]
            return items
        return [item for item in items if item != (step or new_value)]
    if is_index and op == "replace" and new_value is not None:
        items[int(step)] = new_value
        return items
    if op == "replace" and step in items and new_value:
        items[items.index(step)] = new_value
        return items
    if not steps and op == "replace":
        return new_value.split(",") if new_value else []
    is_append = step in ("", "-")  # as JSON Pointer names the place behind the last item
    item = (new_value or step) if is_append else step
    return items if item in items or not item else [*items, item]


def parse_value(shape: Shape, value: str | None, path: str) -> Any:
    """The text of a patch operation as a value of the shape; raises AwsError (`BadRequestException`) if it is none."""
    try:
        match shape.type:
            case "boolean":
                return (value or "").lower() == "true"  # anything else is false, as in Java (recorded)
            case "integer" | "long":
                return int(value or "")
            case "double" | "float" if isfinite(float(value or "")):
                return float(value or "")
            case "string" if not shape.enum or value in shape.enum:
                return value or ""
    except (KeyError, ValueError):
        pass
    raise bad_request(f"Invalid patch value '{value}' specified for path '{path}'")


def _not_replaceable(path: str, op: str, replace_only: Sequence[str]) -> AwsError:
    choice = "Please choose supported operations"
    if path not in replace_only:
        choice = f"Must be one of: [{', '.join(replace_only)}]"
    return bad_request(f"Invalid patch path  '{path}' specified for op '{op}'. {choice}")


def invalid_path(path: str, kind: str = "") -> AwsError:
    """The refusal of a path that leads nowhere."""
    of_kind = f" for {kind}" if kind else ""
    return bad_request(f"Invalid patch path {path or 'null'}{of_kind}")


RESOURCES: Final = "resources"
INTEGRATION: Final = "methodIntegration"

#: The texts that refuse an absent part, by the key above it in the tree.
_NOT_FOUND: Final[Mapping[str, str]] = {
    RESOURCES: "Invalid Resource identifier specified",
    METHODS: "Invalid Method identifier specified",
    INTEGRATION: "Invalid Integration identifier specified",
    "methodResponses": "Invalid Response status code specified",
    "integrationResponses": "Invalid Response status code specified",
    "models": "Invalid model name specified: {}",
    "authorizers": "Invalid Authorizer identifier specified",
    "validators": "Invalid Request Validator identifier specified",
    STAGES: "Invalid stage identifier specified",
    GATEWAY_RESPONSES: "Gateway response type not defined on api",
}


_NOTHING: Final = Shape("Nothing", "structure")


@dataclass(frozen=True, slots=True)
class PartKind:
    """A kind of parts of APIs."""

    name: str  # Its name in operations: `Model`
    tree_path: tuple[str, ...]  # Its path in the tree: words, and parameters in braces
    rules: PatchRules  # Changes that patch operations may make
    plural: str = ""  # Plural in the name of the list operation; empty: there is no list operation

    def path(self, params: Structure) -> list[str]:
        """The path of the part that parameters name."""
        return [str(params[step[1:-1]]) if step.startswith("{") else step for step in self.tree_path]

    def part_in(self, tree: Tree, params: Structure) -> Structure:
        """The part that parameters name; raises AwsError (`NotFoundException`) for the first absent one on the path."""
        path = self.path(params)
        for length in range(1, len(path) + 1):
            if value_at(tree, path[:length]) is None:
                raise missing_part(path, length)
        value: Structure = value_at(tree, path)
        return value

    def absent(self, params: Structure) -> AwsError:
        """The refusal for the first part on the path of the one that parameters name."""
        return missing_part(self.path(params), 2)

    @property
    def shape(self) -> Shape:
        """The structure of this kind on the wire."""
        return shape_of(f"Get{self.name}")

    def as_structure(self, value: Structure) -> Structure:
        """A part as callers see it: without the members that the wire does not have."""
        members = self.shape.members
        return {name: item for name, item in value.items() if name in members}


def shape_of(operation: str) -> Shape:
    """The structure that an operation answers."""
    return Service.load("apigateway").operation(operation).output or _NOTHING


def missing_part(path: list[str], length: int) -> AwsError:
    """The refusal for an absent part, to which the first `length` keys of a path lead."""
    last = path[length - 1]
    above = last if last in _NOT_FOUND or length == 1 else path[length - 2]
    return not_found(_NOT_FOUND.get(above, "Invalid identifier specified").format(path[-1]))


_UNKNOWN_PARAMETER: Final = "Invalid parameter name specified"
_METHOD_PATH: Final = (RESOURCES, "{resourceId}", METHODS, "{httpMethod}")


def _replace_only(*paths: str) -> PatchRules:
    """The rules of a kind in which only these paths may be replaced, in the order of refusals."""
    return PatchRules(frozenset(path[1:] for path in paths), replace_only=paths, lists_paths=True)


RESOURCE: Final = PartKind(
    "Resource", (RESOURCES, "{resourceId}"), _replace_only("/parentId", "/pathPart"), "Resources"
)
_METHOD_MEMBERS: Final = (
    "authorizationType",
    "authorizerId",
    "apiKeyRequired",
    "requestValidatorId",
    "operationName",
)
METHOD: Final = PartKind(
    "Method",
    _METHOD_PATH,
    PatchRules(
        frozenset({*_METHOD_MEMBERS, "requestParameters", "requestModels", "authorizationScopes"}),
        replace_only=tuple(f"/{name}" for name in _METHOD_MEMBERS),
    ),
)
METHOD_RESPONSE: Final = PartKind(
    "MethodResponse",
    (*_METHOD_PATH, "methodResponses", "{statusCode}"),
    PatchRules(
        frozenset({"responseParameters", "responseModels"}),
        absent={
            "responseParameters": _UNKNOWN_PARAMETER,
            "responseModels": "Content-Type specified was not found",
        },
    ),
)
METHOD_INTEGRATION: Final = PartKind(
    "Integration",
    (*_METHOD_PATH, INTEGRATION),
    PatchRules(
        frozenset(
            {
                *("type", "httpMethod", "uri", "credentials", "connectionType", "connectionId"),
                *("requestParameters", "requestTemplates", "passthroughBehavior", "contentHandling"),
                *("cacheNamespace", "cacheKeyParameters", "tlsConfig", "timeoutInMillis"),
            }
        )
    ),
)
INTEGRATION_RESPONSE: Final = PartKind(
    "IntegrationResponse",
    (*_METHOD_PATH, INTEGRATION, "integrationResponses", "{statusCode}"),
    PatchRules(frozenset({"selectionPattern", "responseParameters", "responseTemplates", "contentHandling"})),
)
MODEL: Final = PartKind(
    "Model", ("models", "{modelName}"), _replace_only("/description", "/schema"), "Models"
)
VALIDATOR: Final = PartKind(
    "RequestValidator",
    ("validators", "{requestValidatorId}"),
    _replace_only("/name", "/validateRequestParameters", "/validateRequestBody"),
    "RequestValidators",
)
AUTHORIZER: Final = PartKind(
    "Authorizer",
    ("authorizers", "{authorizerId}"),
    PatchRules(
        frozenset(
            {
                *("name", "type", "authType", "authorizerUri", "authorizerCredentials", "identitySource"),
                *("identityValidationExpression", "authorizerResultTtlInSeconds"),
            }
        )
    ),
    "Authorizers",
)
STAGE: Final = PartKind(
    "Stage",
    (STAGES, "{stageName}"),
    PatchRules(
        frozenset(
            {
                *("deploymentId", "description", "variables", "accessLogSettings", "tracingEnabled"),
                *("methodSettings", "cacheClusterEnabled", "cacheClusterSize", "documentationVersion"),
                *("clientCertificateId", "canarySettings"),
            }
        ),
        "Stage",
    ),
)
GATEWAY_RESPONSE: Final = PartKind(
    "GatewayResponse",
    (GATEWAY_RESPONSES, "{responseType}"),
    PatchRules(
        frozenset({"statusCode", "responseParameters", "responseTemplates"}),
        absent={"responseParameters": _UNKNOWN_PARAMETER, "responseTemplates": _UNKNOWN_PARAMETER},
    ),
)
