"""Resource scopes: the resources that an operation is about, as far as its parameters tell.

A service says in `scopes` (see `Facade`) which resources a caller's own policies are asked about. What no parameter names
is about `*`: so an operation, or a spelling, that a service's function does not know is refused rather than let through.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from redrive.aws.wire.shapes import Structure

_ARN_PARTS: Final = 6


@dataclass(frozen=True, slots=True)
class ResourceScope:
    """Resources that an operation is about."""

    # What a caller's own policies have to allow. One that ends in `*` stands for whatever begins so, and `*`
    # for whatever the service has: a Deny of any of it holds.
    arn: str
    related: tuple[str, ...] = ()  # Further ARNs, of the same form: a Deny of any of them holds


#: The scope of what names no resource.
WHOLE_SERVICE: Final = ResourceScope("*")


def values_of(params: Structure, *members: str) -> Iterator[str]:
    """The texts of parameters, and those in the lists that parameters are."""
    for member in members:
        value = params.get(member)
        if isinstance(value, str):
            yield value
        elif value:
            yield from value


def resource_part(text: str) -> str:
    """The last part of an ARN; a text that is none, as it is."""
    parts = text.split(":", _ARN_PARTS - 1)
    return parts[-1] if text.startswith("arn:") and len(parts) == _ARN_PARTS else text
