"""Resource scopes of API Gateway: the paths that operations of REST APIs and of HTTP APIs are about."""

from collections.abc import Iterable
from urllib.parse import quote, unquote

from redrive.aws.gateway.inner_calls import path_of
from redrive.aws.kit.call import Call, ResourceScope, resource_part
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Structure


def path_scopes(
    service: str, call: Call, operation: str, params: Structure, tagged_arn: str | None
) -> Iterable[ResourceScope]:
    """The scope of an operation, by the path of its parameters; ARNs of HTTP APIs leave `/v2` out."""
    prefix = f"arn:aws:apigateway:{call.region}::"
    operation_model = Service.load(service).operation(operation)
    if tagged_arn is not None:
        resource = resource_part(tagged_arn).rpartition(":")[2].strip("/")
        return [ResourceScope(f"{prefix}/tags/{quote(tagged_arn, safe='')}", (f"{prefix}/{resource}",))]
    arn = prefix + unquote(path_of(operation_model, params)).removeprefix("/v2")
    is_list = operation_model.method == "GET" and not operation_model.path.endswith("}")
    return [ResourceScope(arn, (f"{arn}/*",) if is_list else ())]
