"""Hostile functions, in each isolation: it holds what the documentation promises of it, and no more."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from redrive.model.function import InvocationResult, Isolation
from tests.functions.conftest import Workshop, make

#: Where the loader, the shell, glibc, Python, Perl or bubblewrap would take something from.
_LEADING = {
    **dict.fromkeys(("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_DEBUG_OUTPUT", "GCONV_PATH"), "./e.so"),
    **dict.fromkeys(("NLSPATH", "LOCPATH", "GETCONF_DIR", "BASH_ENV", "ENV", "PYTHONSTARTUP"), "."),
    **dict.fromkeys(("PERL5LIB", "TMPDIR", "MALLOC_TRACE", "HOSTALIASES", "RES_OPTIONS", "IFS"), "."),
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
    "PATH": ".:/usr/bin:/bin",
}


def document(result: InvocationResult) -> Any:
    return json.loads(result.payload)


async def test_programs_that_start_a_function_have_none_of_its_variables(open_folder: Path) -> None:
    """The chain runs with the server's rights: each of these variables led it to the function's own code."""
    tool, seen = open_folder / "prlimit", open_folder / "seen"
    tool.write_text(
        f'#!/bin/sh\ntr "\\0" "\\n" < /proc/$$/environ > {seen}\npwd >> {seen}\nexec /usr/bin/prlimit "$@"\n'
    )
    tool.chmod(0o755)
    workshop = make(open_folder, Isolation.NONE, lambda _: 1000, prlimit=str(tool))
    told = await workshop.call(workshop.function("app.variables", variables=_LEADING))
    await workshop.pool.close()
    variables = document(told)
    assert {name: variables[name] for name in _LEADING} == _LEADING
    *marks, folder = seen.read_text().split()
    assert [mark.partition("=")[0] for mark in marks] == ["REDRIVE_ENVIRONMENT", "REDRIVE_SERVER"]
    assert folder == "/"


async def test_the_loader_heeds_a_functions_variables_in_its_own_process_alone(walled: Workshop) -> None:
    function = walled.hostile("nothing", variables={"LD_PRELOAD": "/var/task/evil.so"})
    assert document(await walled.call(function, b"1")) == 1
    complaints = [line for line in walled.log.lines if "evil.so" in line]
    assert len(complaints) <= 2, complaints  # `bootstrap` and nothing before it


async def test_a_process_has_no_rights_beyond_its_level(walled: Workshop) -> None:
    told = document(await walled.call(walled.hostile("look")))
    assert told["no_new_privs"] == "1"
    if walled.isolation is Isolation.NONE:
        assert told["user"] == os.geteuid()
        return
    assert not any("PYTEST_CURRENT_TEST" in each for each in told["environments"])
    assert told["user"] != 0
    assert set(told["capabilities"][:3]) == {"0" * 16}
    if walled.isolation is Isolation.BUBBLEWRAP:
        assert set(told["capabilities"]) == {"0" * 16}
        assert told["folder"] == "/var/task"
        assert told["nested"] != 0
        assert set(told["ssl"]) <= {"certs", "openssl.cnf"}


async def test_functions_do_not_answer_for_each_other(walled: Workshop) -> None:
    """A function asked the ports of all others for their events, and answered them."""
    victims = [walled.hostile("nothing", name=f"victim-{number}") for number in range(2)]
    for victim in victims:
        await walled.call(victim)
    assert document(await walled.call(walled.hostile("steal"))) == []
    answers = [document(await walled.call(victim, b'{"card": 4111}')) for victim in victims]
    assert answers == [{"card": 4111}] * 2


async def test_files_of_other_functions_and_of_the_server(walled: Workshop, open_folder: Path) -> None:
    await walled.call(walled.hostile("keep", name="victim"), b'"secret"')
    secrets = [str(path) for path in open_folder.glob("functions/*/secret")]  # noqa: ASYNC240 - a test's own
    assert len(secrets) == (walled.isolation is not Isolation.BUBBLEWRAP)
    store = open_folder / "redrive.db"
    store.write_text("secret")
    store.chmod(0o600)
    paths = [str(store), *secrets, str(open_folder / "functions" / "hosts")]
    told = document(await walled.call(walled.hostile("read"), json.dumps(paths).encode()))
    assert told[:-1] == [walled.isolation is Isolation.NONE] * (1 + len(secrets))
    assert told[-1] is (
        walled.isolation is not Isolation.BUBBLEWRAP
    )  # it is no secret, and shows that paths are right


async def test_nothing_that_a_function_started_outlives_it(walled: Workshop) -> None:
    for number, attack in enumerate(("outlive", "outlive_the_reaper")):
        if walled.isolation is Isolation.NONE and attack == "outlive_the_reaper":
            continue  # the page says so
        command = ["/usr/bin/sleep", f"{86_000 + number}.{os.getpid()}"]
        assert document(await walled.call(walled.hostile(attack), json.dumps(command).encode()))
        assert _running(command)
        await walled.pool.drop(walled.hostile("nothing").name)
        assert not _running(command)


def _running(command: list[str]) -> list[str]:
    line = "\0".join([*command, ""]).encode()
    return [path.parent.name for path in Path("/proc").glob("[0-9]*/cmdline") if _content(path) == line]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("walled", [Isolation.BUBBLEWRAP], indirect=True)
async def test_with_bubblewrap_a_function_writes_as_much_as_its_storage(walled: Workshop) -> None:
    folders = ["/tmp", "/tmp/..", "/dev/shm", "/dev", "/var/task", "/opt", "/var", "/run", "/etc", "/proc"]
    event = json.dumps({"bytes": 8 * 2**20, "folders": folders}).encode()
    told = document(await walled.call(walled.hostile("fill", storage_mb=4), event))
    assert 3 * 2**20 < told.pop("/tmp") <= 4 * 2**20
    assert set(told.values()) == {0}


@asynccontextmanager
async def _answering(word: bytes) -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(word)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"


async def test_bubblewrap_leads_to_the_server_and_nowhere_else(open_folder: Path, walled: Workshop) -> None:
    async with _answering(b"server") as server, _answering(b"other") as other:
        workshop = make(open_folder / "w", walled.isolation, lambda _: 1000, server=f"http://{server}")
        event = json.dumps([server, f"localhost:{server.rpartition(':')[2]}", other]).encode()
        told = document(await workshop.call(workshop.hostile("connect"), event))
        await workshop.pool.close()
    reached = "ConnectionRefusedError" if walled.isolation is Isolation.BUBBLEWRAP else "other"
    assert told == ["server", "server", reached]
