"""Names of functions: as callers write them, with or without a version or an alias, and the ARNs written back.

NAME  NAME:QUALIFIER  ACCOUNT:function:NAME[:QUALIFIER]  arn:aws:lambda:REGION:ACCOUNT:function:NAME[:QUALIFIER]
"""

import re
from typing import Final, NamedTuple

from redrive.model.names import ResourceName
from redrive.protocols.aws.call import Call
from redrive.protocols.aws.lambda_.errors import error, invalid

LATEST: Final = "$LATEST"
NAME_CHARS_MAX: Final = 64
_ARN_PARTS: Final = 7  # without a qualifier
_VERSION: Final = re.compile(r"[0-9]+")
_LONG_NAME: Final = (
    "1 validation error detected: Value '{}' at 'functionName' failed to satisfy constraint: Member must have length"
    f" less than or equal to {NAME_CHARS_MAX}"
)


class Named(NamedTuple):
    """A function that a caller named.

    Attributes:
        name: Account, region and name.
        qualifier: The version or the alias; None where the caller gave none.
    """

    name: ResourceName
    qualifier: str | None = None

    @property
    def arn(self) -> str:
        """The ARN as the caller meant it, qualified or not."""
        return arn_of(self.name, self.qualifier)


def read(call: Call, text: str, qualifier: str | None = None) -> Named:
    """The function that a text names, within the caller's account and region unless it says otherwise.

    Args:
        call: Whose account and region.
        text: In one of the forms above; the published model has checked its shape.
        qualifier: As a parameter of its own gives it.

    Raises:
        AwsError: The region is another, the qualifiers differ, or the name is too long.
    """
    parts = text.split(":")
    if parts[0] == "arn":
        region, account, *rest = parts[3], parts[4], *parts[6:]
    elif "function" in parts[:-1]:
        place = parts.index("function")
        region, account, rest = call.region, parts[place - 1] if place else call.account, parts[place + 1 :]
    else:
        region, account, rest = call.region, call.account, parts
    if region != call.region:
        raise error(
            "ResourceNotFoundException",
            f"Functions from '{region}' are not reachable in this region ('{call.region}')",
        )
    if len(rest[0]) > NAME_CHARS_MAX:
        raise invalid(_LONG_NAME.format(rest[0]))
    within = rest[1] if len(rest) > 1 else None
    if within is not None and qualifier is not None and within != qualifier:
        raise invalid("The derived qualifier from the function name does not match the specified qualifier.")
    return Named(ResourceName(account, region, rest[0]), qualifier or within)


def of_arn(arn: str) -> Named | None:
    """The function of a whole ARN; None: it is not one of a function."""
    parts = arn.split(":")
    if len(parts) not in (_ARN_PARTS, _ARN_PARTS + 1) or parts[2] != "lambda" or parts[5] != "function":
        return None
    return Named(ResourceName(parts[4], parts[3], parts[6]), parts[7] if len(parts) > _ARN_PARTS else None)


def arn_of(name: ResourceName, qualifier: str | None = None) -> str:
    """The ARN of a function, or of one of its versions or aliases."""
    arn = f"arn:aws:lambda:{name.region}:{name.account}:function:{name.name}"
    return arn if qualifier is None else f"{arn}:{qualifier}"


def is_version(qualifier: str) -> bool:
    """True if a qualifier is a published version's number."""
    return _VERSION.fullmatch(qualifier) is not None
