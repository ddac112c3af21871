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
    """An API as its owner edits it.

    Attributes:
        account: Whose it is.
        region: Where.
        id: Ten letters and digits.
        created_at: ms.
        settings: Its members in the published model, besides those above.
        tree: All that it consists of.
        tags: By key.
    """

    account: str
    region: str
    id: str
    created_at: int
    settings: Tree
    tree: Tree
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of the document."""
        return api_key(self.account, self.region, self.id)


@dataclass(frozen=True, slots=True)
class RestApi(EditedApi):
    """A REST API: its tree has resources, models, stages …; callers see deployments."""


@dataclass(frozen=True, slots=True)
class ApiDeployment(Document):
    """An API as it was at a moment, which stages show.

    Attributes:
        id: Six letters and digits.
        created_at: ms.
        description: Free text.
        settings: Of the API then.
        tree: Of the API then, without stages.
    """

    id: str
    created_at: int
    description: str
    settings: Tree
    tree: Tree


@dataclass(frozen=True, slots=True)
class ApiPlace(Document):
    """The place that an API's id leads to, since a request names nothing else.

    Attributes:
        account: The API's.
        region: Where it is.
        kind: `REST` or `HTTP`.
    """

    account: str
    region: str
    kind: str


@dataclass(frozen=True, slots=True)
class ApiKey(Document):
    """A key that callers of methods may have to show.

    Attributes:
        account: Whose it is.
        region: Where.
        id: Ten letters and digits.
        value: What callers show.
        created_at: ms.
        updated_at: ms.
        settings: Its members on the wire, besides those above.
        plans: The ids of the usage plans that it belongs to.
        tags: By key.
    """

    restored: ClassVar = {"plans": tuple}

    account: str
    region: str
    id: str
    value: str
    created_at: int
    updated_at: int
    settings: Tree
    plans: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeyValue(Document):
    """The key that has a value.

    Attributes:
        id: The key's.
    """

    id: str


@dataclass(frozen=True, slots=True)
class UsagePlan(Document):
    """A plan: how much the holders of its keys may ask of which stages.

    Attributes:
        account: Whose it is.
        region: Where.
        id: Six letters and digits.
        created_at: ms.
        settings: Its members on the wire, besides those above.
        keys: The ids of its keys.
        tags: By key.
    """

    restored: ClassVar = {"keys": tuple}

    account: str
    region: str
    id: str
    created_at: int
    settings: Tree
    keys: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GatewayAccount(Document):
    """The settings of an account's region.

    Attributes:
        role: That logs are written by, as `cloudwatchRoleArn` has it.
    """

    role: str = ""


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
