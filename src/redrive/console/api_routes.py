"""Routes of APIs as their owners edit them: what each leads to, and how it maps requests and answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from redrive.aws.apigateway.control.exchange import Refusal
from redrive.aws.apigateway.control.records import (
    DEFAULT_STAGE,
    HTTP_API,
    METHODS,
    REST_API,
    STAGES,
    EditedApi,
    RestApi,
)
from redrive.aws.apigateway.control.targets import PATH
from redrive.aws.apigateway.http.kinds import INTEGRATIONS, ROUTES, TARGET
from redrive.aws.apigateway.requests.function_proxy import function_arn
from redrive.aws.apigateway.requests.metrics import CLASSES, OTHERS, route_series, route_span_series
from redrive.aws.apigateway.rest.integrations import read_uri
from redrive.aws.apigateway.rest.kinds import INTEGRATION, RESOURCES
from redrive.console import links
from redrive.console.health import SPANS
from redrive.console.visit import Visit
from redrive.engine.resources import Documents
from redrive.model.metric import Series
from redrive.model.names import ResourceName

APIS_MAX: Final = 200  # of each of the two kinds
_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """A route of a REST API or an HTTP API."""

    api: EditedApi  # Whose
    key: str  # Route key of an HTTP API: `GET /orders/{id}`
    resource: str  # The id of a REST API's resource; empty: it is an HTTP API's
    integration: Mapping[str, Any]  # Integration, as the wire has it; empty: none
    authorization: str  # Authorization type: `NONE`, `AWS_IAM`, `CUSTOM`, `JWT`

    @property
    def is_rest(self) -> bool:
        """True if it is a REST API's."""
        return isinstance(self.api, RestApi)

    @property
    def kind(self) -> str:
        """The integration's type, in the words of its kind of API: `AWS_PROXY`, `SQS-SendMessage`."""
        return str(
            self.integration.get("IntegrationSubtype")
            or self.integration.get("type")
            or self.integration.get("IntegrationType")
            or ""
        )

    @property
    def series(self) -> dict[str, Series]:
        """The series of its requests, by the class of their answers."""
        api = self.api
        classes = (*CLASSES.values(), OTHERS)
        return {each: route_series(api.account, api.region, api.id, self.key, each) for each in classes}

    @property
    def spans(self) -> list[Series]:
        """The series of its requests, by the span of time that they took."""
        api = self.api
        return [route_span_series(api.account, api.region, api.id, self.key, span) for span in range(SPANS)]


async def apis_of(documents: Documents, owner: ResourceName) -> list[EditedApi]:
    """The APIs of an account's region, by their names: two reads."""
    beginning = f"{owner.account}/{owner.region}/"
    rest = await documents.find(REST_API, beginning, limit=APIS_MAX)
    http = await documents.find(HTTP_API, beginning, limit=APIS_MAX)
    return sorted([*rest, *http], key=lambda api: (name_of(api), api.id))


def name_of(api: EditedApi) -> str:
    """The name that its owner gave an API."""
    return str(api.settings.get("name") or api.settings.get("Name") or api.id)


def routes_of(api: EditedApi) -> list[ApiRoute]:
    """The routes of an API, by path and method."""
    routes = _rest_routes(api) if isinstance(api, RestApi) else _http_routes(api)
    return sorted(routes, key=lambda route: route.key.partition(" ")[::-1])


def _rest_routes(api: EditedApi) -> Iterator[ApiRoute]:
    """The routes of a REST API: each method of each resource."""
    for resource in (api.tree.get(RESOURCES) or _NOTHING).values():
        for name, method in (resource.get(METHODS) or _NOTHING).items():
            yield ApiRoute(
                api,
                f"{name} {resource['path']}",
                resource["id"],
                method.get(INTEGRATION) or _NOTHING,
                method.get("authorizationType") or "NONE",
            )


def _http_routes(api: EditedApi) -> Iterator[ApiRoute]:
    integrations = api.tree.get(INTEGRATIONS) or _NOTHING
    for route in (api.tree.get(ROUTES) or _NOTHING).values():
        integration = integrations.get((route.get("Target") or "").removeprefix(TARGET)) or _NOTHING
        yield ApiRoute(api, route["RouteKey"], "", integration, route.get("AuthorizationType") or "NONE")


def target_of(visit: Visit, route: ApiRoute) -> links.Target:
    """The thing that a route leads to, with a link where the console has a page for it."""
    kind, uri = route.kind, str(route.integration.get("uri") or route.integration.get("IntegrationUri") or "")
    if kind == "MOCK":
        return links.Target("", "mock answer", "", "")
    if kind in ("HTTP", "HTTP_PROXY"):
        address = uri.partition("?")[0]
        return links.Target(address, address.partition("://")[2] or address, "", "")
    parameters = route.integration.get("RequestParameters") or _NOTHING
    if "QueueUrl" in parameters or "TopicArn" in parameters:
        return _of_parameters(visit, route, parameters)
    try:
        return links.target(visit, function_arn(uri))
    except Refusal:
        return _of_service(visit, uri)


def _of_parameters(visit: Visit, route: ApiRoute, parameters: Mapping[str, str]) -> links.Target:
    """The queue or topic that an HTTP API's integration of a service names, unless a request does."""
    url, arn = parameters.get("QueueUrl", ""), parameters.get("TopicArn", "")
    account, _, name = "/".join(url.split("/")[-2:]).partition("/")
    if url and not url.startswith("$") and name:
        return links.target(visit, f"arn:aws:sqs:{route.api.region}:{account}:{name}")
    if arn and not arn.startswith("$"):
        return links.target(visit, arn)
    return links.Target(url or arn, route.kind, "", "")


def _of_service(visit: Visit, uri: str) -> links.Target:
    """The service that a REST API's integration calls, and the queue where its path names one."""
    try:
        service = read_uri(uri)
    except Refusal:
        return links.Target(uri, uri or "nothing", "", "")
    account, _, name = service.rest.partition("/")
    if service.service == "sqs" and service.kind == "path" and name:
        return links.target(visit, f"arn:aws:sqs:{service.region}:{account}:{name}")
    return links.Target(uri, service.rest, service.service, "")


def invoke_url(visit: Visit, route: ApiRoute) -> str:
    """The address of a route at the first stage that shows the API; empty: none does."""
    stages = route.api.tree.get(STAGES) or _NOTHING
    stage = next(iter(sorted(stages)), "")
    if not stage:
        return ""
    path = route.key.partition(" ")[2] or "/"
    stage_part = "" if stage == DEFAULT_STAGE else f"/{stage}"
    return f"{visit.host}{PATH}{route.api.id}{stage_part}{path}"


def failure_links(visit: Visit, route: ApiRoute) -> list[tuple[str, str]]:
    """The pages that tell of a route's failed requests: the function's invocations, and access logs of stages."""
    function = target_of(visit, route)
    pages = [("the invocations of the function", function.link)] if function.service == "lambda" else []
    for name, stage in sorted((route.api.tree.get(STAGES) or _NOTHING).items()):
        log = stage.get("accessLogSettings") or stage.get("AccessLogSettings") or _NOTHING
        arn = str(log.get("destinationArn") or log.get("DestinationArn") or "")
        pages.append((f"the access log of {name}", links.target(visit, arn).link))
    return [(text, link) for text, link in pages if link]
