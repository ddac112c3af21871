"""The options that name settings, the same for every command."""

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from redrive.cli.terminal import note
from redrive.settings import ENVIRONMENT_PREFIX, Origin, Settings, read_settings, row_of, variable_of

_CONFIG_VARIABLE: Final = "REDRIVE_CONFIG"
# Variables that are no settings of a server: of commands that ask one, and of Redrive's own tests.
_OTHER_VARIABLES: Final = frozenset({_CONFIG_VARIABLE, "REDRIVE_URL"})
_TEST_PREFIX: Final = "REDRIVE_TEST"


def add_settings(command: argparse.ArgumentParser, names: frozenset[str] | None = None) -> None:
    """Let a command take these settings as flags, or all of them."""
    command.add_argument(
        "--config", type=Path, metavar="FILE", help=f"settings in a TOML file ({_CONFIG_VARIABLE})"
    )
    for field in fields(Settings):
        if names is not None and field.name not in names:
            continue
        flag = "--" + field.name.replace("_", "-")
        origin = variable_of(field.name)
        if isinstance(field.default, bool):
            help_text = f"{row_of(field).help} ({origin})"
            command.add_argument(flag, action="store_const", const=True, help=help_text)
        else:
            origin += f", default: {field.default}" if field.default else ""
            help_text = f"{row_of(field).help} ({origin})"
            command.add_argument(flag, metavar=field.name.rpartition("_")[2].upper(), help=help_text)


def settings_of(parsed: argparse.Namespace) -> tuple[Settings, list[Origin]]:
    """The settings that a parsed command line, the environment and its file make together.

    Variables that look like settings and are none are told of: nothing else says that they have no effect.
    """
    for warning in _unknown(os.environ):
        note(warning)
    return read_settings(vars(parsed), os.environ, file_of(parsed))


def file_of(parsed: argparse.Namespace) -> Path | None:
    """The file that settings are read from, if there is one."""
    path = os.environ.get(_CONFIG_VARIABLE)
    file: Path | None = parsed.config or (Path(path) if path else None)
    return file


def _unknown(environment: Mapping[str, str]) -> Iterator[str]:
    known = {variable_of(field.name) for field in fields(Settings)} | _OTHER_VARIABLES
    for name in sorted(environment.keys() - known):
        if name.startswith(ENVIRONMENT_PREFIX) and not name.startswith(_TEST_PREFIX):
            near = get_close_matches(name, known, n=1)
            yield f"warning: {name} is not a setting" + (f"; did you mean {near[0]}?" if near else "")
