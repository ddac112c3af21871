"""Amazon API Gateway, HTTP APIs, on an engine."""

from collections.abc import Mapping
from typing import Any

from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError
from redrive.protocols.aws.apigateway.errors import translated
from redrive.protocols.aws.apigateway.http_apis import HttpApiOperations
from redrive.protocols.aws.apigateway.http_parts import operations_alike
from redrive.protocols.aws.apigateway.http_records import HTTP_API
from redrive.protocols.aws.call import Verb
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.wire.errors import AwsError


class HttpApiGateway:
    """HTTP APIs and what belongs to them."""

    kinds: tuple[DocumentKind[Any], ...] = (HTTP_API,)
    """All that callers make through this service, besides what REST APIs have too."""

    def __init__(self, engine: Engine) -> None:
        """Speak for this engine."""
        apis = HttpApiOperations(engine)
        self.operations: Mapping[str, Verb] = {
            **operations_alike(apis, engine),
            **operations_of("apigatewayv2", apis),
        }

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
