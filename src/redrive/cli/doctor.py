"""`redrive doctor`: tell what leaves a server open to others, and whether its store is fit to serve."""

import argparse
import asyncio
import os
import resource
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from redrive.cli.listing import add_json
from redrive.cli.options import add_settings, file_of, settings_of
from redrive.cli.terminal import print_json
from redrive.settings import Origin, Settings
from redrive.settings.hardening import Finding, findings

_OTHERS: Final = 0o077
_FILES_MIN: Final = 20_000  # 10,000 connections of clients, and the endpoints'
_SQLITE: Final = "sqlite:///"


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    command.description = (
        "Check the settings that serve would use, the files that they name, and the store. Nothing is changed. The exit"
        " status is 1 if something is exposed or wrong."
    )
    add_settings(command)
    add_json(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Print a line a check."""
    settings, origins = settings_of(parsed)
    file = file_of(parsed) if any(map(_is_secret_of_file, origins)) else None
    all_findings = [*findings(settings), *_of_machine(settings, file)]
    examined = _examined(settings)
    if parsed.json:
        store = [
            {"check": check, "fact": fact or None, "wrong": wrong or None} for check, fact, wrong in examined
        ]
        checks = [{"check": each.check, "open": each.open or None} for each in all_findings]
        print_json({"checks": checks, "store": store})
    else:
        for each in all_findings:
            print(f"{'OPEN' if each.open else 'ok':6}{each.check:18}{each.open}".rstrip())
        for check, fact, wrong in examined:
            text = "; ".join(filter(None, (fact, wrong)))
            print(f"{'WRONG' if wrong else 'ok':6}{check:18}{text}".rstrip())
    return 1 if any(each.open for each in all_findings) or any(wrong for *_, wrong in examined) else 0


def _examined(settings: Settings) -> Sequence[tuple[str, str, str]]:
    from redrive.composition.store_commands import examine_store  # noqa: PLC0415 - 60 ms of imports that other commands do not need

    return asyncio.run(examine_store(settings))


def _is_secret_of_file(origin: Origin) -> bool:
    """True if the settings file has a password, or declares keys perhaps."""
    masked = isinstance(origin.value, str) and origin.shown != origin.value
    return "file (" in origin.source and (masked or origin.name == "resources")


def _of_machine(settings: Settings, config: Path | None) -> Iterator[Finding]:
    """The checks of what the settings do not say: files, the user, the limit of files."""
    readable = [f"{file} ({mode:o})" for file, mode in _readable(_secret_files(settings, config))]
    advice = f"others can read {', '.join(readable)}; chmod 600" if readable else ""
    yield Finding("files", advice)
    root = os.geteuid() == 0 and settings.functions_isolation != "user"
    yield Finding("user", "the server would run as root; run it as a user of its own" if root else "")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    few = most != resource.RLIM_INFINITY and most < _FILES_MIN
    yield Finding(
        "open files", f"{most} are allowed, and clients take 10,000; LimitNOFILE=20000" if few else ""
    )


def _secret_files(settings: Settings, config: Path | None) -> Iterator[Path]:
    """The files that others must not read."""
    if settings.store.startswith(_SQLITE):
        yield Path(settings.store.removeprefix(_SQLITE))
    for name in (settings.store_key_file, settings.tls_key):
        if name:
            yield Path(name)
    if config is not None:
        yield config


def _readable(files: Iterator[Path]) -> Iterator[tuple[Path, int]]:
    """The files that others may read or write, with their modes; one that is not there yet is nobody's."""
    for file in files:
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:
            continue
        if mode & _OTHERS:
            yield file, mode
