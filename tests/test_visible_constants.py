"""The constants that users, their programs and stores see, held by a list: no renaming changes one unnoticed.

Who adds or means to change one writes `visible_constants.json` anew (`python -m tests.test_visible_constants`), looks at
its diff, and says so in the changelog. What a store keeps (kinds of documents, values of enumerations) needs a migration
besides.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Final

import redrive
from redrive.azure.eventgrid import outcomes
from redrive.engine.node.memory import METRIC_NAMES
from redrive.settings import Settings

_LIST: Final = Path(__file__).with_name("visible_constants.json")
_SOURCE: Final = Path(next(iter(redrive.__path__)))
_PATTERNS: Final[Mapping[str, str]] = {
    "control routes": r'"(/_redrive/[a-z-]+)',
    "kinds of documents": r'DocumentKind(?:\.of)?\(\s*"(\w+)"',
    "log events": r'(?:logger\.(?:debug|info|warning|error|exception)\(\s*f?|Upkeep\([^"]*)"([a-z_]+\.[a-z_]+)',
    "metrics of Prometheus": r'"(redrive_[a-z_]+)',
    "settings of the environment": r'"(REDRIVE_[A-Z_]+)"',
}
#: As Azure documents `lastDeliveryOutcome`.
_OUTCOMES: Final = frozenset(
    {
        *(
            "NotFound",
            "Disabled",
            "Full",
            "Unauthorized",
            "BadRequest",
            "TimedOut",
            "Busy",
            "PayloadTooLarge",
        ),
        *("Probation", "Canceled", "Aborted", "SocketError", "ResolutionError", "Delivering"),
        *("SessionQueueNotSupported", "Forbidden", "InvalidAzureFunctionDestination"),
    }
)


@cache
def _texts() -> tuple[str, ...]:
    return tuple(path.read_text() for path in sorted(_SOURCE.rglob("*.py")))


def _enumerated(text: str) -> Iterator[str]:
    """The texts that are values of a module's enumerations."""
    if "Enum)" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
            for line in node.body:
                if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
                    yield str(line.value.value)


def _constants() -> dict[str, list[str]]:
    found = {
        name: {match for text in _texts() for match in re.findall(pattern, text)}
        for name, pattern in _PATTERNS.items()
    }
    found["values of enumerations"] = {value for text in _texts() for value in _enumerated(text)}
    found["metrics of queues"] = set(METRIC_NAMES)
    found["settings"] = {field.name for field in fields(Settings)}
    return {name: sorted(values) for name, values in sorted(found.items())}


def test_the_constants_are_those_of_the_list() -> None:
    listed, constants = json.loads(_LIST.read_text()), _constants()
    changed = {
        name: sorted(set(constants.get(name, ())) ^ set(listed.get(name, ())))
        for name in {*constants, *listed}
    }
    assert not {name: values for name, values in changed.items() if values}


def test_event_grids_outcomes_are_azures() -> None:
    said = {
        *outcomes._BY_STATUS.values(),
        *outcomes._BY_REASON.values(),
        *(outcomes.ABORTED, outcomes.PROBATION, outcomes._NO_SESSION, outcomes._INVALID_FUNCTION),
    }
    assert said <= _OUTCOMES


if __name__ == "__main__":  # python -m tests.test_visible_constants writes the list anew; look at its diff
    _LIST.write_text(json.dumps(_constants(), indent=1) + "\n")
