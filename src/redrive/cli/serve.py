"""`redrive serve`: start the server, as one process or as several."""

import argparse
import asyncio
import errno
import gc
import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from redrive.cli import log_format
from redrive.cli.settings import add_settings, settings_of
from redrive.cli.terminal import CommandFailed
from redrive.settings import CertificateUnusable, Origin, Settings

_ASK_SECONDS: Final = 1


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    command.description = "Start the server."
    add_settings(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    settings, origins = settings_of(parsed)
    log_format.set_up(settings.log_level, settings.log_format)
    try:
        if settings.workers > 1 and parsed.worker is None:
            return asyncio.run(_supervise(settings, parsed.words))
        _serve(settings, origins, parsed.worker)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        if error.errno == errno.EADDRINUSE:
            raise CommandFailed(f"{where} is in use{_holder(where)}; choose another port: --port N") from None
        raise CommandFailed(f"cannot serve on {where}: {error.strerror or error}") from None
    return 0


def _holder(where: str) -> str:
    """The version of another Redrive that listens there, as a phrase; empty for other programs."""
    import http.client  # noqa: PLC0415 - for this alone

    connection = http.client.HTTPConnection(where, timeout=_ASK_SECONDS)
    try:
        connection.request("GET", "/_redrive/health")
        version = json.load(connection.getresponse()).get("version")
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
    return f" by Redrive {version}" if version else ""


def _serve(settings: Settings, origins: Sequence[Origin], worker: Any) -> None:
    """Serve in this process."""
    gc.disable()  # what is imported stays: to look for garbage meanwhile would be a twelfth of the start
    from redrive.app import serve  # noqa: PLC0415 - imports that the other commands do not need

    gc.enable()

    try:
        serve(settings, ready, origins, worker)
    except CertificateUnusable as error:
        raise CommandFailed(str(error)) from None


async def _supervise(settings: Settings, words: list[str]) -> int:
    """Serve with several worker processes; returns the exit status."""
    from redrive.cli.worker import command  # noqa: PLC0415 - which imports the command line
    from redrive.server.http import bound, url_of  # noqa: PLC0415 - 60 ms of imports that other commands do not need
    from redrive.workers.member import WorkerFailed  # noqa: PLC0415 - likewise
    from redrive.workers.supervisor import Supervisor  # noqa: PLC0415 - likewise

    sockets = await bound(settings.host, settings.port)
    url = url_of(settings.host, sockets, encrypted=bool(settings.tls_cert) or settings.tls != "off")
    supervisor = Supervisor(settings.workers, sockets, partial(command, words))
    try:
        await supervisor.run(lambda: ready(url))
    except WorkerFailed as failure:
        return failure.status
    finally:
        for each in sockets:
            each.close()
    return 0


def ready(url: str) -> None:
    """Say that requests are accepted; scripts wait for this line."""
    print(f"Redrive ready on {url}", flush=True)
