"""Names of functions: as callers write them, with or without a version or an alias, and the ARNs written back.

NAME  NAME:QUALIFIER  ACCOUNT:function:NAME[:QUALIFIER]  arn:aws:lambda:REGION:ACCOUNT:function:NAME[:QUALIFIER]
"""

import re
from typing import Final, NamedTuple

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.errors import error, invalid
from redrive.model.names import ResourceName

LATEST: Final = "$LATEST"
NAME_CHARS_MAX: Final = 64
_ARN_PARTS: Final = 7  # without a qualifier
_VERSION: Final = re.compile(r"[0-9]+")
#: The published model's, with names for its groups: `function` without a name behind it is the function's name.
_FORM: Final = re.compile(
    r"(?:arn:aws[a-zA-Z-]*:lambda:)?(?:(?P<region>[a-z]{2}(?:-[a-z]+)+-\d):)?(?:(?P<account>\d{12}):)?(?:function:)?"
    r"(?P<name>[^:]+)(?::(?P<qualifier>[^:]+))?"
)


class FunctionReference(NamedTuple):
    """A function that a caller named."""

    name: ResourceName  # Account, region and name
    qualifier: str | None = None  # The version or the alias; None if the caller gave none

    @property
    def arn(self) -> str:
        """The ARN as the caller meant it, qualified or not."""
        return arn_of(self.name, self.qualifier)


def read(call: Call, text: str, qualifier: str | None = None) -> FunctionReference:
    """The function that a text names, within the caller's account and region unless it says otherwise.

    Raises:
        AwsError: The text has none of the forms, the region is another, or the qualifiers differ.
    """
    parts = _FORM.fullmatch(text)
    if parts is None:
        raise invalid(f"{text} is not a valid function name.")
    region = parts["region"] or call.region
    if region != call.region:
        raise error(
            "ResourceNotFoundException",
            f"Functions from '{region}' are not reachable in this region ('{call.region}')",
        )
    qualifier_in_text = parts["qualifier"]
    if qualifier_in_text is not None and qualifier is not None and qualifier_in_text != qualifier:
        raise invalid("The derived qualifier from the function name does not match the specified qualifier.")
    return FunctionReference(
        ResourceName(parts["account"] or call.account, region, parts["name"]), qualifier or qualifier_in_text
    )


def check_length(reference: FunctionReference) -> None:
    """Refuse a name that is too long for a new function; of a function that exists it is a name like any other.

    Raises:
        AwsError: `InvalidParameterValueException`.
    """
    if len(reference.name.name) > NAME_CHARS_MAX:
        raise invalid(
            f"1 validation error detected: Value '{reference.name.name}' at 'functionName' failed to satisfy constraint:"
            f" Member must have length less than or equal to {NAME_CHARS_MAX}"
        )


def of_arn(arn: str) -> FunctionReference | None:
    """The function of a whole ARN; None: it is not one of a function."""
    parts = arn.split(":")
    if len(parts) not in (_ARN_PARTS, _ARN_PARTS + 1) or parts[2] != "lambda" or parts[5] != "function":
        return None
    _, _, _, region, account, _, name, *qualifiers = parts
    return FunctionReference(ResourceName(account, region, name), qualifiers[0] if qualifiers else None)


def arn_of(name: ResourceName, qualifier: str | None = None) -> str:
    """The ARN of a function, or of one of its versions or aliases."""
    arn = f"arn:aws:lambda:{name.region}:{name.account}:function:{name.name}"
    return arn if qualifier is None else f"{arn}:{qualifier}"


def is_version(qualifier: str) -> bool:
    """True if a qualifier is a published version's number."""
    return _VERSION.fullmatch(qualifier) is not None
