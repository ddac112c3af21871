"""`redrive config` and `redrive doctor`, and the options that name settings, the same for every command.

`config` prints the settings and where each comes from; `doctor` says which leave a server open to others, and whether the
store is fit to serve.
"""

import argparse
import asyncio
import os
import resource
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from redrive.cli.terminal import add_json, note, print_json
from redrive.settings import ENVIRONMENT_PREFIX, Origin, Settings, read_settings, row_of, variable_of
from redrive.settings.hardening import Finding, findings

_CONFIG_VARIABLE: Final = "REDRIVE_CONFIG"
# Variables that are no settings of a server: of commands that ask one, and of Redrive's own tests.
_OTHER_VARIABLES: Final = frozenset({_CONFIG_VARIABLE, "REDRIVE_URL"})
_TEST_PREFIX: Final = "REDRIVE_TEST"
_OTHERS: Final = 0o077
_FILES_MIN: Final = 20_000  # 10,000 connections of clients, and the endpoints'


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

    It warns of variables that look like settings and are none, since these have no effect.
    """
    for warning in _unknown_variable_warnings(os.environ):
        note(warning)
    return read_settings(vars(parsed), os.environ, file_of(parsed))


def file_of(parsed: argparse.Namespace) -> Path | None:
    """The file that settings are read from, if there is one."""
    path = os.environ.get(_CONFIG_VARIABLE)
    file: Path | None = parsed.config or (Path(path) if path else None)
    return file


def _unknown_variable_warnings(environment: Mapping[str, str]) -> Iterator[str]:
    """A warning for each variable that is named like a setting and is none."""
    variables = {variable_of(field.name) for field in fields(Settings)} | _OTHER_VARIABLES
    for name in sorted(environment.keys() - variables):
        if name.startswith(ENVIRONMENT_PREFIX) and not name.startswith(_TEST_PREFIX):
            similar_names = get_close_matches(name, variables, n=1)
            yield f"warning: {name} is not a setting" + (
                f"; did you mean {similar_names[0]}?" if similar_names else ""
            )


def register_config(command: argparse.ArgumentParser) -> None:
    """Add the options of `redrive config`."""
    command.description = "Print the settings that serve would use, and where each comes from."
    add_settings(command)
    add_json(command)
    command.set_defaults(run=_config)


def _config(parsed: argparse.Namespace) -> int:
    """Print a line a setting."""
    _, origins = settings_of(parsed)
    if parsed.json:
        settings = [
            {"name": origin.name, "value": origin.masked, "source": origin.source} for origin in origins
        ]
        print_json({"settings": settings})
        return 0
    for origin in origins:
        print(f"{origin.name:12} {origin.masked:32} {origin.source}")
    return 0


def register_doctor(command: argparse.ArgumentParser) -> None:
    """Add the options of `redrive doctor`."""
    command.description = (
        "Check the settings that serve would use, the files that they name, and the store. Nothing is changed. The exit"
        " status is 1 if something is exposed or wrong."
    )
    add_settings(command)
    add_json(command)
    command.set_defaults(run=_doctor)


def _doctor(parsed: argparse.Namespace) -> int:
    """Print a line a check."""
    settings, origins = settings_of(parsed)
    file = file_of(parsed) if any(map(_is_secret_of_file, origins)) else None
    all_findings = [*findings(settings), *_machine_findings(settings, file)]
    store_checks = _examine_store(settings)
    if parsed.json:
        store = [
            {"check": check, "fact": fact or None, "wrong": fault or None}
            for check, fact, fault in store_checks
        ]
        checks = [{"check": each.check, "open": each.open or None} for each in all_findings]
        print_json({"checks": checks, "store": store})
    else:
        for each in all_findings:
            print(f"{'OPEN' if each.open else 'ok':6}{each.check:18}{each.open}".rstrip())
        for check, fact, fault in store_checks:
            text = "; ".join(filter(None, (fact, fault)))
            print(f"{'WRONG' if fault else 'ok':6}{check:18}{text}".rstrip())
    return 1 if any(each.open for each in all_findings) or any(fault for *_, fault in store_checks) else 0


def _examine_store(settings: Settings) -> Sequence[tuple[str, str, str]]:
    from redrive.composition.store import kind_of  # noqa: PLC0415 - 60 ms of imports that other commands do not need

    return asyncio.run(kind_of(settings).examine())


def _is_secret_of_file(origin: Origin) -> bool:
    """True if a setting may put a secret into the settings file: a password, or the keys that resources declare."""
    is_masked = isinstance(origin.value, str) and origin.masked != origin.value
    return "file (" in origin.source and (is_masked or origin.name == "resources")


def _machine_findings(settings: Settings, config: Path | None) -> Iterator[Finding]:
    """Checks of the machine: file modes, the user, the limit of open files."""
    readable = [f"{file} ({mode:o})" for file, mode in _open_to_others(_secret_files(settings, config))]
    advice = f"others can read {', '.join(readable)}; chmod 600" if readable else ""
    yield Finding("files", advice)
    is_root = os.geteuid() == 0 and settings.functions_isolation != "user"
    yield Finding("user", "the server would run as root; run it as a dedicated user" if is_root else "")
    files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    is_low = files_max != resource.RLIM_INFINITY and files_max < _FILES_MIN
    yield Finding(
        "open files", f"{files_max} are allowed, and clients take 10,000; LimitNOFILE=20000" if is_low else ""
    )


def _secret_files(settings: Settings, config: Path | None) -> Iterator[Path]:
    """The files that others must not read."""
    if settings.store_file is not None:
        yield settings.store_file
    for name in (settings.store_key_file, settings.tls_key):
        if name:
            yield Path(name)
    if config is not None:
        yield config


def _open_to_others(files: Iterator[Path]) -> Iterator[tuple[Path, int]]:
    """The files that others may read or write, with their modes; files that do not exist yet are left out."""
    for file in files:
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:
            continue
        if mode & _OTHERS:
            yield file, mode
