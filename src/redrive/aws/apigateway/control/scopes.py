"""Resource scopes of API Gateway: the paths that operations of REST APIs and of HTTP APIs are about."""

from collections.abc import Iterable
from urllib.parse import quote, unquote

from redrive.aws.gateway.inner_calls import path_of
from redrive.aws.kit.call import Call, ResourceScope, resource_part
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Structure


def path_scopes(
    service: str, call: Call, operation: str, params: Structure, tagged: str | None
) -> Iterable[ResourceScope]:
    """The path that the parameters make, however the request spelled it; ARNs of HTTP APIs leave `/v2` out."""
    own = f"arn:aws:apigateway:{call.region}::"
    operation_model = Service.load(service).operation(operation)
    if tagged is not None:
        resource = resource_part(tagged).rpartition(":")[2].strip("/")
        return [ResourceScope(f"{own}/tags/{quote(tagged, safe='')}", (f"{own}/{resource}",))]
    arn = own + unquote(path_of(operation_model, params)).removeprefix("/v2")
    lists = operation_model.method == "GET" and not operation_model.path.endswith("}")
    return [ResourceScope(arn, (f"{arn}/*",) if lists else ())]
