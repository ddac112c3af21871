"""Changes that a deployment would make, as what-if tells them."""

from collections.abc import Iterator, Mapping
from typing import Any


def change_of(resource: str, before: Any, after: Mapping[str, Any]) -> dict[str, Any]:
    """The change of a resource that a template names.

    Args:
        resource: Its resource id.
        before: As it is; None: it is not there.
        after: As the template has it.
    """
    if before is None:
        return {"resourceId": resource, "changeType": "Create", "after": after}
    delta = list(_differences("", before, after))
    kind = "Modify" if delta else "NoChange"
    return {
        "resourceId": resource,
        "changeType": kind,
        "before": before,
        "after": {**before, **after},
        "delta": delta,
    }


def _differences(path: str, before: Any, after: Any) -> Iterator[dict[str, Any]]:
    """The differences that a template makes to a resource; members that the template leaves out stay."""
    for name, value in after.items():
        known = before.get(name) if isinstance(before, Mapping) else None
        member = f"{path}.{name}" if path else name
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            yield from _differences(member, known, value)
        elif value != known and member not in ("id", "name", "type"):
            kind = "Create" if known is None else "Modify"
            yield {"path": member, "propertyChangeType": kind, "before": known, "after": value}
