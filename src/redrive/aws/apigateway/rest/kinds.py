"""The kinds of parts of a REST API: where each stands in its tree, and how patch operations change it.

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
    """The changes that a kind takes, and the words in which it refuses others (recorded)."""

    names: frozenset[str]  # The members that may be changed, besides all that stands in them
    kind: str = ""  # Named in refusals
    replaced: tuple[str, ...] = ()  # The paths that may only be replaced
    lists_paths: bool = False  # Whether these are all the paths there are, and refusals list them
    # By member: the refusal of a key that is to be replaced or removed, and is not there.
    absent: Mapping[str, str] = field(default_factory=dict)

    def check(self, value: Structure, op: str, path: str) -> None:
        """Refuse an operation that a value of the kind does not take.

        Raises:
            AwsError: `BadRequestException` or `NotFoundException`.
        """
        steps = steps_of(path)
        if self.lists_paths and (path not in self.replaced or op != "replace"):
            raise _only_replaced(path, op, self.replaced)
        if not steps or steps[0] not in self.names:
            raise invalid_path(path, self.kind)
        if path in self.replaced and op != "replace":
            raise bad_request("Invalid patch operation specified. Must be one of: [replace]")
        if op not in _OPERATIONS:
            raise bad_request("Invalid patch operation specified. Must be 'add'|'remove'|'replace'")
        if (
            op != "add"
            and steps[0] in self.absent
            and steps[1:]
            and steps[1] not in (value.get(steps[0]) or {})
        ):
            raise not_found(self.absent[steps[0]])


def patched(
    value: Structure, shape: Shape, rules: PatchRules, operations: Iterable[Mapping[str, Any]]
) -> Structure:
    """A value of a shape after patch operations, as far as its rules allow them.

    Raises:
        AwsError: `BadRequestException` or `NotFoundException`.
    """
    for operation in operations:
        op, path = operation.get("op", ""), operation.get("path") or ""
        rules.check(value, op, path)
        value = _changed(value, shape, steps_of(path), op, operation.get("value"), path)
    return value


def steps_of(path: str) -> list[str]:
    """The steps of a path, as JSON Pointer escapes them."""
    if not path.startswith("/"):
        return []
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _changed(
    value: Any, shape: Shape, steps: Sequence[str], op: str, new_value: str | None, path: str
) -> Any:
    step, *rest = steps
    if shape.type == "list":
        return _changed_list(value, shape, steps, op, new_value, path)
    inner = _shape_of(shape, step, path)
    known = dict(value or {})
    if rest:
        known[step] = _changed(known.get(step), inner, rest, op, new_value, path)
        if known[step] == {}:  # what was emptied is absent (recorded)
            del known[step]
    elif op == "remove" or (new_value is None and inner.type == "string" and not inner.enum):
        known.pop(step, None)
    elif inner.type == "list":
        known[step] = _changed_list(known.get(step), inner, [], op, new_value, path)
    else:
        known[step] = typed(inner, new_value, path)
    return known


def _shape_of(shape: Shape, step: str, path: str) -> Shape:
    if shape.type == "map":
        return shape.value.shape
    if shape.type != "structure" or step not in shape.members:
        raise invalid_path(path)
    return shape.members[step].shape


def _changed_list(
    value: Any, shape: Shape, steps: Sequence[str], op: str, new_value: str | None, path: str
) -> list[Any]:
    """A list of texts, of which a path names one by its number or by itself, and a value several by commas."""
    known = list(value or ())
    if len(steps) > 1 or shape.element.shape.type != "string":
        raise invalid_path(path)
    step = steps[0] if steps else ""
    if op == "remove":
        if step.isdecimal() and int(step[:9]) < len(known):
            del known[int(step)]
            return known
        return [item for item in known if item != (step or new_value)]
    if step.isdecimal() and op == "replace" and int(step[:9]) < len(known) and new_value is not None:
        known[int(step)] = new_value
        return known
    if op == "replace" and step in known and new_value:
        known[known.index(step)] = new_value
        return known
    if not steps and op == "replace":
        return (new_value or "").split(",") if new_value else []
    item = new_value if new_value and (not step or step == "-") else step or new_value
    return known if item in known or not item else [*known, item]


def typed(shape: Shape, value: str | None, path: str) -> Any:
    """A value as the model has it, of the text that patch operations give; raises AwsError (`BadRequestException`)."""
    try:
        match shape.type:
            case "boolean":
                return (value or "").lower() == "true"  # anything else is false, as in Java (recorded)
            case "integer" | "long":
                return int(value or "")
            case "double" | "float" if isfinite(number := float(value or "")):
                return number
            case "string" if not shape.enum or value in shape.enum:
                return value or ""
    except (KeyError, ValueError):
        pass
    raise bad_request(f"Invalid patch value '{value}' specified for path '{path}'")


def _only_replaced(path: str, op: str, replaced: Sequence[str]) -> AwsError:
    choice = "Please choose supported operations"
    if path not in replaced:
        choice = f"Must be one of: [{', '.join(replaced)}]"
    return bad_request(f"Invalid patch path  '{path}' specified for op '{op}'. {choice}")


def invalid_path(path: str, kind: str = "") -> AwsError:
    """The refusal of a path that leads nowhere."""
    of_kind = f" for {kind}" if kind else ""
    return bad_request(f"Invalid patch path {path or 'null'}{of_kind}")


RESOURCES: Final = "resources"
INTEGRATION: Final = "methodIntegration"

#: By what stands above: the text for what is not there.
_MISSING: Final[Mapping[str, str]] = {
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
    """A kind of what an API consists of."""

    name: str  # The vendor's: `Model`; operations are called by it
    place: tuple[str, ...]  # Path in the tree: words as they are, and parameters in braces
    rules: PatchRules  # Changes that patch operations may make
    plural: str = ""  # Plural in the name of the list operation; empty: there is no list operation

    def path(self, params: Structure) -> list[str]:
        """The place of the one that parameters name."""
        return [str(params[step[1:-1]]) if step.startswith("{") else step for step in self.place]

    def part_in(self, tree: Tree, params: Structure) -> Structure:
        """The one that parameters name.

        Raises:
            AwsError: `NotFoundException`, about the first of what leads there that is not there.
        """
        path = self.path(params)
        for length in range(1, len(path) + 1):
            if value_at(tree, path[:length]) is None:
                raise missing(path, length)
        value: Structure = value_at(tree, path)
        return value

    def absent(self, params: Structure) -> AwsError:
        """The refusal for what stands first on the way to the one that parameters name."""
        return missing(self.path(params), 2)

    @property
    def shape(self) -> Shape:
        """The structure that the wire shows of this kind."""
        return shape_of(f"Get{self.name}")

    def as_structure(self, value: Structure) -> Structure:
        """Those of its members that the wire knows."""
        members = self.shape.members
        return {name: item for name, item in value.items() if name in members}


def shape_of(operation: str) -> Shape:
    """The structure that an operation answers."""
    return Service.load("apigateway").operation(operation).output or _NOTHING


def missing(path: list[str], length: int) -> AwsError:
    """The refusal for what is not at the end of so much of a path."""
    last = path[length - 1]
    above = last if last in _MISSING or length == 1 else path[length - 2]
    return not_found(_MISSING.get(above, "Invalid identifier specified").format(path[-1]))


_UNKNOWN_PARAMETER: Final = "Invalid parameter name specified"
_OF_METHOD: Final = (RESOURCES, "{resourceId}", METHODS, "{httpMethod}")


def _listed(*paths: str) -> PatchRules:
    """The rules of a kind of which just these paths may be replaced, in the order of refusals."""
    return PatchRules(frozenset(path[1:] for path in paths), replaced=paths, lists_paths=True)


RESOURCE: Final = PartKind(
    "Resource", (RESOURCES, "{resourceId}"), _listed("/parentId", "/pathPart"), "Resources"
)
_METHOD_REPLACED: Final = (
    "authorizationType",
    "authorizerId",
    "apiKeyRequired",
    "requestValidatorId",
    "operationName",
)
METHOD: Final = PartKind(
    "Method",
    _OF_METHOD,
    PatchRules(
        frozenset({*_METHOD_REPLACED, "requestParameters", "requestModels", "authorizationScopes"}),
        replaced=tuple(f"/{name}" for name in _METHOD_REPLACED),
    ),
)
METHOD_RESPONSE: Final = PartKind(
    "MethodResponse",
    (*_OF_METHOD, "methodResponses", "{statusCode}"),
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
    (*_OF_METHOD, INTEGRATION),
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
    (*_OF_METHOD, INTEGRATION, "integrationResponses", "{statusCode}"),
    PatchRules(frozenset({"selectionPattern", "responseParameters", "responseTemplates", "contentHandling"})),
)
MODEL: Final = PartKind("Model", ("models", "{modelName}"), _listed("/description", "/schema"), "Models")
VALIDATOR: Final = PartKind(
    "RequestValidator",
    ("validators", "{requestValidatorId}"),
    _listed("/name", "/validateRequestParameters", "/validateRequestBody"),
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
