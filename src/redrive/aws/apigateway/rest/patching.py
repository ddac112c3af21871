"""Patch operations: changes to what an API consists of, as JSON Pointer names the places.

https://docs.aws.amazon.com/apigateway/latest/api/patch-operations.html
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from redrive.aws.apigateway.control.errors import bad_request
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Shape, Structure

_OPERATIONS: Final = frozenset({"add", "replace", "remove"})


def patched(
    value: Structure,
    shape: Shape,
    names: frozenset[str],
    operations: Iterable[Mapping[str, Any]],
    kind: str = "",
    replaced: Sequence[str] = (),
) -> Structure:
    """A value with changes made.

    Args:
        value: As it is.
        shape: Its members and their types.
        names: Those members that may be changed.
        operations: Each with `op`, `path` and, besides of a removal, `value`.
        kind: Named in refusals.
        replaced: Those paths that may only be replaced, and which refusals list, where there are such.

    Raises:
        AwsError: `BadRequestException`.
    """
    for operation in operations:
        op, path = operation.get("op", ""), operation.get("path") or ""
        if op not in _OPERATIONS:
            raise bad_request(f"Invalid patch operation specified. Must be one of: {sorted(_OPERATIONS)}")
        steps = steps_of(path)
        if replaced and (path not in replaced or op != "replace"):
            raise _only_replaced(path, op, replaced)
        if not steps or steps[0] not in names:
            raise _invalid(path, kind)
        value = _changed(value, shape, steps, op, operation.get("value"), path)
    return value


def steps_of(path: str) -> list[str]:
    """The steps of a path, as JSON Pointer escapes them."""
    if not path.startswith("/"):
        return []
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _changed(
    value: Any, shape: Shape, steps: Sequence[str], op: str, new_value: str | None, path: str
) -> Any:
    step, *rest = steps
    if shape.type == "list":
        return _changed_list(value, shape, steps, op, new_value, path)
    inner = _shape_of(shape, step, path)
    known = dict(value or {})
    if rest:
        known[step] = _changed(known.get(step), inner, rest, op, new_value, path)
    elif op == "remove":
        known.pop(step, None)
    elif inner.type == "list":
        known[step] = _changed_list(known.get(step), inner, [], op, new_value, path)
    else:
        known[step] = typed(inner, new_value, path)
    return known


def _shape_of(shape: Shape, step: str, path: str) -> Shape:
    if shape.type == "map":
        return shape.value.shape
    if shape.type != "structure" or step not in shape.members:
        raise _invalid(path)
    return shape.members[step].shape


def _changed_list(
    value: Any, shape: Shape, steps: Sequence[str], op: str, new_value: str | None, path: str
) -> list[Any]:
    """A list of texts, of which a path names one by its number or by itself, and a value several by commas."""
    known = list(value or ())
    if len(steps) > 1 or shape.element.shape.type != "string":
        raise _invalid(path)
    step = steps[0] if steps else ""
    if op == "remove":
        if step.isdecimal() and int(step[:9]) < len(known):
            del known[int(step)]
            return known
        return [item for item in known if item != (step or new_value)]
    if step.isdecimal() and op == "replace" and int(step[:9]) < len(known) and new_value is not None:
        known[int(step)] = new_value
        return known
    if not steps and op == "replace":
        return (new_value or "").split(",") if new_value else []
    item = new_value if new_value and (not step or step == "-") else step or new_value
    return known if item in known or not item else [*known, item]


def typed(shape: Shape, value: str | None, path: str) -> Any:
    """A value as the model has it, of the text that patch operations give.

    Raises:
        AwsError: `BadRequestException`.
    """
    try:
        match shape.type:
            case "boolean":
                return (value or "").lower() == "true"  # anything else is false, as in Java (recorded)
            case "integer" | "long":
                return int(value or "")
            case "double" | "float" if isfinite(number := float(value or "")):
                return number
            case "string" if not shape.enum or value in shape.enum:
                return value or ""
    except (KeyError, ValueError):
        pass
    raise bad_request(f"Invalid patch value '{value}' specified for path '{path}'")


def _only_replaced(path: str, op: str, replaced: Sequence[str]) -> AwsError:
    choice = "Please choose supported operations"
    if path not in replaced:
        choice = f"Must be one of: [{', '.join(replaced)}]"
    return bad_request(f"Invalid patch path  '{path}' specified for op '{op}'. {choice}")


def _invalid(path: str, kind: str = "") -> Exception:
    of_kind = f" for {kind}" if kind else ""
    return bad_request(f"Invalid patch path {path}{of_kind}")
