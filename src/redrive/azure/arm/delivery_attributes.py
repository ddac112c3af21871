"""`deliveryAttributeMappings`: the headers that a subscriber wants with each delivery.

https://learn.microsoft.com/azure/event-grid/delivery-properties has the limits: ten headers, 4,096 bytes a value, no
name that begins with `aeg-`. A secret value is shown to nobody who does not ask for it by name (getDeliveryAttributes).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.azure.arm import schema
from redrive.azure.arm.schema import Document
from redrive.azure.wire.errors import invalid

MAPPINGS: Final = "deliveryAttributeMappings"
ATTRIBUTES_MAX: Final = 10
VALUE_BYTES_MAX: Final = 4096
HIDDEN: Final = "Hidden"  # stands for a secret
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110's token
_OURS: Final = ("aeg-", "content-length", "content-type", "transfer-encoding", "connection", "host")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def accepted_attributes(values: Sequence[Any], before: Sequence[Any]) -> list[dict[str, Any]]:
    """The mappings as they are kept.

    Args:
        values: As sent.
        before: Those that they replace: a client that sends a secret back as it was shown leaves it as it is.

    Raises:
        AzureError: One is none, or there are too many.
    """
    if len(values) > ATTRIBUTES_MAX:
        raise invalid(f"There are {len(values)} delivery attributes; {ATTRIBUTES_MAX} are allowed.")
    secrets = {each["name"].lower(): each["properties"]["value"] for each in before if _is_secret(each)}
    accepted = [_accepted(each, secrets) for each in values]
    names = [each["name"].lower() for each in accepted]
    if len(set(names)) < len(names):
        raise invalid("Two delivery attributes have the same name.")
    return accepted


def masked(mappings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The mappings without their secrets."""
    return [
        {**each, "properties": {**each["properties"], "value": HIDDEN}} if _is_secret(each) else each
        for each in mappings
    ]


def _accepted(value: Any, secrets: Mapping[str, str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid(f"The property '{MAPPINGS}' must be a list of objects.")
    name = schema.text(value, "name") or ""
    if not _NAME.fullmatch(name) or name.lower().startswith(_OURS):
        raise invalid(f"The delivery attribute '{name}' has a name that no header of a delivery can have.")
    kind = schema.one_of(value, "type", "Static", "Dynamic")
    properties = schema.present(schema.part(value, "properties") or {})
    if kind == "Static":
        return {"name": name, "type": kind, "properties": _static(name, properties, secrets)}
    if kind == "Dynamic" and schema.text(properties, "sourceField"):
        return {"name": name, "type": kind, "properties": properties}
    raise invalid(f"The delivery attribute '{name}' is neither Static nor Dynamic with a sourceField.")


def _static(name: str, properties: Document, secrets: Mapping[str, str]) -> dict[str, Any]:
    value, secret = schema.text(properties, "value"), schema.flag(properties, "isSecret") or False
    if secret and value in (None, HIDDEN):
        value = secrets.get(name.lower(), value)
    if value is None:
        raise invalid(f"The delivery attribute '{name}' has no value.")
    if len(value.encode()) > VALUE_BYTES_MAX:
        raise invalid(f"The value of the delivery attribute '{name}' has more than {VALUE_BYTES_MAX} bytes.")
    if _CONTROL.search(value):
        raise invalid(f"The value of the delivery attribute '{name}' has characters that no header can have.")
    return {**properties, "value": value, "isSecret": secret}


def _is_secret(mapping: Mapping[str, Any]) -> bool:
    return mapping.get("type") == "Static" and bool(mapping["properties"].get("isSecret"))
