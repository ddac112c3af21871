"""Amazon API Gateway, REST APIs, on an engine."""

from collections.abc import Mapping
from typing import Any

from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError
from redrive.protocols.aws.apigateway.accounts import AccountOperations
from redrive.protocols.aws.apigateway.deployments import DeploymentOperations
from redrive.protocols.aws.apigateway.editing import Editing
from redrive.protocols.aws.apigateway.errors import translated
from redrive.protocols.aws.apigateway.keys import ApiKeyOperations
from redrive.protocols.aws.apigateway.methods import MethodOperations
from redrive.protocols.aws.apigateway.parts import PartOperations, operations_alike
from redrive.protocols.aws.apigateway.plans import UsagePlanOperations
from redrive.protocols.aws.apigateway.quotas import USAGE
from redrive.protocols.aws.apigateway.records import (
    ACCOUNT,
    API_KEY,
    API_PLACE,
    DEPLOYMENT,
    KEY_VALUE,
    REST_API,
    USAGE_PLAN,
)
from redrive.protocols.aws.apigateway.resources import ResourceOperations
from redrive.protocols.aws.apigateway.rest_apis import RestApiOperations
from redrive.protocols.aws.apigateway.stages import StageOperations
from redrive.protocols.aws.apigateway.tags import TagOperations
from redrive.protocols.aws.call import Verb
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.wire.errors import AwsError


class ApiGateway:
    """REST APIs and what belongs to them."""

    kinds: tuple[DocumentKind[Any], ...] = (
        REST_API,
        DEPLOYMENT,
        API_PLACE,
        API_KEY,
        KEY_VALUE,
        USAGE_PLAN,
        USAGE,
        ACCOUNT,
    )
    """All that callers make through this service."""

    def __init__(self, engine: Engine) -> None:
        """Speak for this engine."""
        editing = Editing(engine)
        self.operations: Mapping[str, Verb] = {
            **operations_alike(editing),
            **operations_of(
                "apigateway",
                RestApiOperations(engine, editing),
                ResourceOperations(engine, editing),
                MethodOperations(editing),
                PartOperations(engine, editing),
                DeploymentOperations(engine, editing),
                StageOperations(engine, editing),
                TagOperations(engine),
                ApiKeyOperations(engine),
                UsagePlanOperations(engine),
                AccountOperations(engine),
            ),
        }

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
