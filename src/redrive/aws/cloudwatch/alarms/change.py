"""An alarm's change of state, and words that all that is told of it have in common."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from redrive.aws.cloudwatch.alarms.records import Alarm, State


class StateChange(NamedTuple):
    """An alarm that came to another state."""

    alarm: Alarm  # As it is now
    before: State  # The state that it left


@cache
def region_name(region: str) -> str:
    """A region as people know it: `US East (N. Virginia)`; one that nobody published, by its code."""
    botocore = find_spec("botocore")
    if botocore is None or not botocore.submodule_search_locations:
        return region
    file = Path(botocore.submodule_search_locations[0], "data", "partitions.json")
    partitions: list[dict[str, Any]] = orjson.loads(file.read_bytes())["partitions"]
    names = {code: about for partition in partitions for code, about in partition["regions"].items()}
    name: str = names.get(region, {}).get("description", region)
    return name


def triggering(alarm: Alarm) -> Sequence[Mapping[str, Any]]:
    """The alarms that brought a composite one to its state, as its reason names them."""
    if not alarm.state.data:
        return ()
    alarms: Sequence[Mapping[str, Any]] = orjson.loads(alarm.state.data).get("triggeringAlarms", ())
    return alarms
