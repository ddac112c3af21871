"""The table of resource types."""

from collections.abc import Mapping
from typing import Final

from redrive.protocols.aws.cloudformation.types import sns, sqs
from redrive.protocols.aws.cloudformation.types.resource_type import Factory, ResourceType

_FACTORIES: Final[Mapping[str, Factory]] = {**sns.TYPES, **sqs.TYPES}

KNOWN: Final = tuple(sorted(_FACTORIES))
"""The names of the types; one that ends with colons stands for all that begin so."""


def type_of(name: str) -> ResourceType:
    """The type of a name that is among the known ones."""
    factory = _FACTORIES.get(name) or _FACTORIES["Custom::"]
    return factory(name)
