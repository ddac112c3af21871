"""Documents of API Gateway: APIs and the trees in them, deployments, keys, plans; ids, and the places they lead to."""

import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from redrive.aws.apigateway.control.errors import bad_request
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

    account: str  # Account that owns it
    region: str  # Region
    id: str  # Ten letters and digits
    created_at: int  # ms
    settings: Tree  # Its members in the published model, besides those above
    tree: Tree  # Everything that it consists of
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
    settings: Tree  # Settings of the API at that time
    tree: Tree  # Tree of the API at that time, without stages


@dataclass(frozen=True, slots=True)
class ApiPlace(Document):
    """The place that an API's id leads to, since a request names nothing else."""

    account: str  # Account of the API
    region: str  # Region
    kind: str  # `REST` or `HTTP`


@dataclass(frozen=True, slots=True)
class ApiKey(Document):
    """A key that callers of methods may have to show."""

    restored: ClassVar = {"plans": tuple}

    account: str  # Account that owns it
    region: str  # Region
    id: str  # Ten letters and digits
    value: str  # The secret that callers send
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

    account: str  # Account that owns it
    region: str  # Region
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


_LETTERS: Final = string.ascii_lowercase + string.digits
_CHOSEN: Final = frozenset(string.ascii_lowercase + string.digits + "-")
_CHOSEN_CHARS_MAX: Final = 63
API_CHARS: Final = 10
PART_CHARS: Final = 6
KEY_CHARS: Final = 40
CHOSEN_TAG: Final = "_custom_id_"
"""The tag by which callers choose the id of an API that they make, as LocalStack has it."""


def new_id(rng: random.Random, chars: int = PART_CHARS) -> str:
    """An id of so many small letters and digits; it begins with a letter, as names of hosts do."""
    rest = (rng.choice(_LETTERS) for _ in range(chars - 1))
    return rng.choice(string.ascii_lowercase) + "".join(rest)


def chosen_id(tags: dict[str, str]) -> str:
    """The id that a caller wants for an API; empty: any.

    Raises:
        AwsError: `BadRequestException`: it is not a part of a host's name.
    """
    chosen = tags.get(CHOSEN_TAG, "")
    fits = len(chosen) <= _CHOSEN_CHARS_MAX and _CHOSEN.issuperset(chosen) and chosen.strip("-") == chosen
    if not fits:
        raise bad_request(f"Invalid API identifier chosen by the tag {CHOSEN_TAG}: {chosen}")
    return chosen


Path = Sequence[str]
"""The keys that lead to a place."""


def value_at(tree: Tree, path: Path) -> Any:
    """The value at a place; None: nothing stands there."""
    at: Any = tree
    for key in path:
        at = at.get(key) if isinstance(at, Mapping) else None
        if at is None:
            return None
    return at


def with_value(tree: Tree, path: Path, value: Any) -> dict[str, Any]:
    """The tree with a value at a place; what leads there is made where it is missing."""
    key, *rest = path
    if not rest:
        return {**tree, key: value}
    return {**tree, key: with_value(tree.get(key) or {}, rest, value)}


def without(tree: Tree, path: Path) -> dict[str, Any]:
    """The tree without what stands at a place."""
    key, *rest = path
    if key not in tree:
        return dict(tree)
    if not rest:
        return {name: value for name, value in tree.items() if name != key}
    return {**tree, key: without(tree[key], rest)}


DEFAULT_STAGE: Final = "$default"


@dataclass(frozen=True, slots=True)
class HttpApi(EditedApi):
    """An HTTP API: its tree has routes, integrations and stages; stages that deploy by themselves show it as it is."""


HTTP_API: Final = DocumentKind.of("apigateway_http_api", HttpApi)
