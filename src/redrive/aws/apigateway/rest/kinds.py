"""The table of what a REST API consists of: where each kind stands in its tree, and what may be changed of it.

The members and their types are those of the published model: of what the operation that shows a kind answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from redrive.aws.apigateway.control.errors import not_found
from redrive.aws.apigateway.control.records import GATEWAY_RESPONSES, METHODS, STAGES, Tree, value_at
from redrive.aws.apigateway.rest.patching import PatchRules
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Shape, Structure

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
