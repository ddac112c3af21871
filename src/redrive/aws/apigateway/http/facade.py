"""Amazon API Gateway, HTTP APIs, on an engine."""

from collections.abc import Mapping
from typing import Any

from redrive.aws.apigateway.control.errors import translated
from redrive.aws.apigateway.control.roles import integration_roles
from redrive.aws.apigateway.control.scopes import http_scopes
from redrive.aws.apigateway.http.apis import TAGS, HttpApiOperations
from redrive.aws.apigateway.http.parts import operations_alike
from redrive.aws.apigateway.http.records import HTTP_API
from redrive.aws.gateway.identities import Identities
from redrive.aws.kit.call import Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError


class HttpApiGateway:
    """HTTP APIs and what belongs to them."""

    kinds: tuple[DocumentKind[Any], ...] = (HTTP_API,)
    """All that callers make through this service, besides what REST APIs have too."""

    def __init__(self, engine: Engine, identities: Identities) -> None:
        apis = HttpApiOperations(engine, integration_roles(identities))
        self.operations: Mapping[str, Verb] = {
            **operations_alike(apis, engine),
            **operations_of("apigatewayv2", apis, TAGS.operations(apis)),
        }

    scopes = staticmethod(http_scopes)

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
