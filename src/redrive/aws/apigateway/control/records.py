"""Documents of API Gateway: APIs, deployments, keys, plans, and the places that ids lead to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from redrive.engine.ports import DocumentKind
from redrive.model.document import Document

Tree = Mapping[str, Any]
"""What an API consists of: by kind, then by id or name; as the wire has it, with what belongs to each in it."""

REST: Final = "rest"
HTTP: Final = "http"

STAGES: Final = "stages"  # among the parts of an API
GATEWAY_RESPONSES: Final = "gatewayResponses"  # of a REST API
METHODS: Final = "resourceMethods"  # of a resource


@dataclass(frozen=True, slots=True)
class EditedApi(Document):
    """An API as its owner edits it."""

    account: str  # Whose it is
    region: str  # Where
    id: str  # Ten letters and digits
    created_at: int  # ms
    settings: Tree  # Its members in the published model, besides those above
    tree: Tree  # All that it consists of
    tags: Mapping[str, str] = field(default_factory=dict)  # By key

    @property
    def key(self) -> str:
        """The key of the document."""
        return api_key(self.account, self.region, self.id)


@dataclass(frozen=True, slots=True)
class RestApi(EditedApi):
    """A REST API: its tree has resources, models, stages …; callers see deployments."""


@dataclass(frozen=True, slots=True)
class ApiDeployment(Document):
    """An API as it was at a moment, which stages show."""

    id: str  # Six letters and digits
    created_at: int  # ms
    description: str  # Free text
    settings: Tree  # Of the API then
    tree: Tree  # Of the API then, without stages


@dataclass(frozen=True, slots=True)
class ApiPlace(Document):
    """The place that an API's id leads to, since a request names nothing else."""

    account: str  # The API's
    region: str  # Where it is
    kind: str  # `REST` or `HTTP`


@dataclass(frozen=True, slots=True)
class ApiKey(Document):
    """A key that callers of methods may have to show."""

    restored: ClassVar = {"plans": tuple}

    account: str  # Whose it is
    region: str  # Where
    id: str  # Ten letters and digits
    value: str  # What callers show
    created_at: int  # ms
    updated_at: int  # ms
    settings: Tree  # Its members on the wire, besides those above
    plans: tuple[str, ...] = ()  # The ids of the usage plans that it belongs to
    tags: Mapping[str, str] = field(default_factory=dict)  # By key


@dataclass(frozen=True, slots=True)
class KeyValue(Document):
    """The key that has a value."""

    id: str  # The key's


@dataclass(frozen=True, slots=True)
class UsagePlan(Document):
    """A plan: how much the holders of its keys may ask of which stages."""

    restored: ClassVar = {"keys": tuple}

    account: str  # Whose it is
    region: str  # Where
    id: str  # Six letters and digits
    created_at: int  # ms
    settings: Tree  # Its members on the wire, besides those above
    keys: tuple[str, ...] = ()  # The ids of its keys
    tags: Mapping[str, str] = field(default_factory=dict)  # By key


@dataclass(frozen=True, slots=True)
class GatewayAccount(Document):
    """The settings of an account's region."""

    role: str = ""  # That logs are written by, as `cloudwatchRoleArn` has it


def api_key(account: str, region: str, document_id: str) -> str:
    """The key of what belongs to an account's region; with an empty id the beginning of all of them."""
    return f"{account}/{region}/{document_id}"


def deployment_key(account: str, region: str, api_id: str, deployment_id: str) -> str:
    """The key of a deployment; with an empty id the beginning of all of its API's."""
    return f"{account}/{region}/{api_id}/{deployment_id}"


REST_API: Final = DocumentKind.of("apigateway_rest_api", RestApi)
DEPLOYMENT: Final = DocumentKind.of("apigateway_deployment", ApiDeployment)
API_PLACE: Final = DocumentKind.of("apigateway_place", ApiPlace)
API_KEY: Final = DocumentKind.of("apigateway_key", ApiKey)
KEY_VALUE: Final = DocumentKind.of("apigateway_key_value", KeyValue)
USAGE_PLAN: Final = DocumentKind.of("apigateway_plan", UsagePlan)
ACCOUNT: Final = DocumentKind.of("apigateway_account", GatewayAccount)
