"""Sources of settings: flags, the environment, a file, and their defaults."""

import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, Final

from redrive.settings.declared import SEPARATOR, TABLES
from redrive.settings.table import Settings, row_of
from redrive.settings.values import SettingsInvalid

ENVIRONMENT_PREFIX: Final = "REDRIVE_"


@dataclass(frozen=True, slots=True)
class Origin:
    """A setting's value and where it came from."""

    name: str  # The setting
    value: str | int | bool
    source: str  # `flag`, `environment (VARIABLE)`, `file (PATH)` or `default`
    masked: str  # The value for terminals and logs, without passwords


def variable_of(setting: str) -> str:
    """The variable that a setting is read from."""
    return ENVIRONMENT_PREFIX + setting.upper()


def read_settings(
    flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None
) -> tuple[Settings, list[Origin]]:
    """Put the settings together; a flag wins over the environment, that over the file, that over the default.

    Args:
        flags: By setting name; None for a flag that was not given.
        environment: `REDRIVE_PORT=5000`.
        file: TOML, a setting a line.

    Raises:
        SettingsInvalid: Something is unknown or unusable.
    """
    from_file, declares_resources = _read_file(file)
    values: dict[str, Any] = {}
    origins: list[Origin] = []
    for field in fields(Settings):
        raw_value, source = _nearest_value(field, flags, environment, from_file, file)
        value = values[field.name] = _convert(field.name, raw_value, type(field.default))
        if field.name == "resources" and declares_resources:
            value = values[field.name] = SEPARATOR.join(filter(None, (str(file), str(value))))
            source = f"file ({file})" if source == "default" else f"{source} and file ({file})"
        origins.append(Origin(field.name, value, source, row_of(field).masked(value)))
    return Settings(**values), origins


def origins_of(settings: Settings) -> list[Origin]:
    """The origins of settings that a program put together: the defaults, or the program."""
    origins = []
    for field in fields(Settings):
        value = getattr(settings, field.name)
        source = "default" if value == field.default else "program"
        origins.append(Origin(field.name, value, source, row_of(field).masked(value)))
    return origins


def _nearest_value(
    field: "Field[Any]",
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    from_file: Mapping[str, Any],
    file: Path | None,
) -> tuple[Any, str]:
    """The value of a setting, as the nearest source gives it, and the name of that source."""
    variable = variable_of(field.name)
    if flags.get(field.name) is not None:
        return flags[field.name], "flag"
    if variable in environment:
        return environment[variable], f"environment ({variable})"
    if field.name in from_file:
        return from_file[field.name], f"file ({file})"
    return field.default, "default"


def _read_file(file: Path | None) -> tuple[dict[str, Any], bool]:
    """The settings of a file, and whether it declares resources as well."""
    if file is None:
        return {}, False
    try:
        values = tomllib.loads(file.read_text())
    except OSError as error:
        raise SettingsInvalid(f"cannot read {file}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsInvalid(f"cannot read {file}: {error}") from None
    settings = {name: value for name, value in values.items() if name not in TABLES}
    unknown = settings.keys() - {field.name for field in fields(Settings)}
    if unknown:
        raise SettingsInvalid(f"{file} has unknown settings: {', '.join(sorted(unknown))}")
    return settings, len(settings) < len(values)


def _convert(name: str, value: object, kind: type) -> str | int | bool:
    """A value of the type that the setting has; a table of TOML becomes `NAME=VALUE` pairs."""
    text = str(value)
    if kind is bool:
        if text.lower() not in ("true", "false", "1", "0"):
            raise SettingsInvalid(f"{name} must be true or false, not {text!r}")
        return text.lower() in ("true", "1")
    if kind is int:
        if not text.isdecimal():  # which excepts superscripts, as `int` does
            raise SettingsInvalid(f"{name} must be a number, not {text!r}")
        return int(text)
    return (
        " ".join(f"{key}={_text_without_spaces(item)}" for key, item in value.items())
        if isinstance(value, dict)
        else text
    )


def _text_without_spaces(value: object) -> str:
    """A value within a table."""
    text = str(value)
    if not text or any(character.isspace() for character in text):
        raise SettingsInvalid("a value in a table is empty or has a space in it")
    return text
