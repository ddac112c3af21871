"""The table of resource types."""

from collections.abc import Mapping
from typing import Any, Final

from redrive.aws.cloudformation.types import (
    apigateway,
    apigateway_parts,
    apigatewayv2,
    cloudformation,
    iam,
    kms,
    lambda_,
    lambda_events,
    monitoring,
    sns,
    sqs,
    storage,
)
from redrive.aws.cloudformation.types.resource_type import Factory, ResourceType

_PARTS: Final = (
    *(apigateway, apigateway_parts, apigatewayv2, cloudformation, iam, kms),
    *(lambda_, lambda_events, monitoring, sns, sqs, storage),
)
_FACTORIES: Final[Mapping[str, Factory]] = {
    name: factory for part in _PARTS for name, factory in part.TYPES.items()
}
KNOWN: Final = tuple(sorted(_FACTORIES))
"""The names of all types; one that ends with colons stands for all names that begin with it."""


def type_of(name: str) -> ResourceType:
    """The type of a name that is among the known ones."""
    factory = _FACTORIES.get(name) or _FACTORIES["Custom::"]
    return factory(name)


def offered_types(services: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the types whose services are among these facades, by botocore's names."""
    return tuple(name for name in KNOWN if _is_offered(type_of(name), services))


def _is_offered(kind: ResourceType, services: Mapping[str, Any]) -> bool:
    return not kind.service or kind.service in services
