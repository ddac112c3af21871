"""The operations of a service, found among its methods by the names of its published model."""

import re
from collections.abc import Mapping
from typing import Any, Final

from redrive.aws.kit.call import Verb
from redrive.aws.wire.service import Service

_WORD_ENDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(operation: str) -> str:
    """The name of the method for an operation: `get_sms_attributes` for `GetSMSAttributes`."""
    return _WORD_ENDS.sub("_", operation).lower()


def operations_of(service: str, *parts: object) -> dict[str, Verb]:
    """Map the operations of a service to the methods that carry them out.

    Args:
        service: Botocore's name of the service.
        parts: The objects whose methods are called as the operations are, in snake case, and mappings of operations.

    Raises:
        ValueError: Two parts have a method for the same operation.
    """
    verbs: dict[str, Verb] = {}
    for part in parts:
        if isinstance(part, Mapping):
            verbs |= part
    for operation in sorted(Service.load(service).operation_names):
        name = snake_case(operation)
        methods: list[Any] = [getattr(part, name) for part in parts if hasattr(part, name)]
        if len(methods) + (operation in verbs) > 1:
            raise ValueError(f"{service} {operation} has {len(methods)} methods {name}")
        if methods:
            verbs[operation] = methods[0]
    return verbs
