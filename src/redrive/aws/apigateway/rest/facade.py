"""Amazon API Gateway, REST APIs, on an engine."""

from redrive.aws.apigateway.authorizers.rest import RestAuthorizers
from redrive.aws.apigateway.control.apis import Apis, integration_roles, log_roles
from redrive.aws.apigateway.rest.apis import REST_APIS, RestApiOperations
from redrive.aws.apigateway.rest.integrations import Integrations
from redrive.aws.apigateway.rest.invoke_tests import InvokeTests
from redrive.aws.apigateway.rest.keys import ApiKeyOperations
from redrive.aws.apigateway.rest.methods import MethodOperations, ResourceOperations
from redrive.aws.apigateway.rest.parts import PartOperations, part_operations
from redrive.aws.apigateway.rest.plans import UsagePlanOperations
from redrive.aws.apigateway.rest.service import SERVICE
from redrive.aws.apigateway.rest.stages import DeploymentOperations, StageOperations
from redrive.aws.apigateway.rest.tags import TAGS, ApiTags, GatewayAccountOperations
from redrive.aws.gateway.identities import Identities
from redrive.aws.kit.service import OfferedService, operations_of
from redrive.engine.engine import Engine


class ApiGateway(OfferedService):
    """REST APIs and what belongs to them."""

    def __init__(
        self, engine: Engine, identities: Identities, integrations: Integrations, authorizers: RestAuthorizers
    ) -> None:
        apis = Apis(engine, REST_APIS, integration_roles(identities))
        super().__init__(
            SERVICE,
            engine,
            {
                **part_operations(apis),
                **operations_of(
                    "apigateway",
                    RestApiOperations(engine, apis),
                    ResourceOperations(engine, apis),
                    MethodOperations(apis),
                    PartOperations(engine, apis),
                    DeploymentOperations(engine, apis),
                    StageOperations(engine, apis),
                    TAGS.operations(ApiTags(engine)),
                    ApiKeyOperations(engine),
                    UsagePlanOperations(engine),
                    GatewayAccountOperations(engine, log_roles(identities)),
                    InvokeTests(engine, apis, integrations, authorizers),
                ),
            },
        )
