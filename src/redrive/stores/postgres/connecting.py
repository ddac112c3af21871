"""The connection to the server that takes writes, of all that a URL names.

Hosts are tried beside each other: the one that is asked first may be gone without a word, and would use up a caller's
patience before the next has its turn.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import asyncpg

# How long (s) a call may wait for a connection to be free, again for it to be made, and for each statement's answer:
# longer than a database under load needs, and all three shorter than the 30 s after which clients give up.
PATIENCE_SECONDS: Final = 8
_HEAD_START_SECONDS: Final = 0.3  # of a host before the next: as a rule the first answers in milliseconds

_TARGET: Final = "target_session_attrs"
_WRITES: Final = "read-write"
_READ_ONLY: Final = ("in_hot_standby", "default_transaction_read_only")
TURNED_AWAY: Final = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.exceptions.ClientConfigurationError,
)
_Attempt = Coroutine[Any, Any, asyncpg.Connection]


def each_host(url: str) -> list[str]:
    """The URL of each of the hosts that a URL names, `postgresql://user@one:5432,two:5432/database`, in their order."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    if "," not in hosts:
        return [url]
    return [parts._replace(netloc=f"{user}{at}{host}").geturl() for host in hosts.split(",")]


async def connect(url: str, name: str, **settings: str) -> asyncpg.Connection:
    """A connection to whichever host takes writes, unless the URL's `target_session_attrs` says otherwise.

    Args:
        url: The database's, of one host or several.
        name: By which an operator can tell the nodes apart.
        settings: Of the session. They are set by a statement: a pooler refuses those at the start of a connection.
    """
    attempts = [_connect_alone(each, name) for each in each_host(url)]
    connection = await (attempts[0] if len(attempts) == 1 else _first_of(attempts))
    try:
        if settings:
            await connection.execute("; ".join(f"SET {key} = {value}" for key, value in settings.items()))
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _connect_alone(url: str, name: str) -> asyncpg.Connection:
    """Connect to the one host of this URL.

    Raises:
        ConnectionRefusedError: It refuses, or its session is not of the kind that is asked for.
    """
    session_kind = parse_qs(urlsplit(url).query).get(_TARGET, [_WRITES])[-1]
    try:
        connection = await asyncpg.connect(
            url,
            timeout=PATIENCE_SECONDS,
            command_timeout=PATIENCE_SECONDS,
            target_session_attrs="any" if session_kind == _WRITES else session_kind,
            server_settings={"application_name": name},
        )
    except asyncpg.TargetServerAttributeNotMatched:
        raise _refusal(url, session_kind) from None
    except ConnectionRefusedError:
        raise ConnectionRefusedError(f"{_host(url)} refused the connection") from None
    if session_kind == _WRITES and not await _takes_writes(connection):
        connection.terminate()
        raise _refusal(url, session_kind)
    return connection


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _refusal(url: str, session_kind: str) -> ConnectionRefusedError:
    return ConnectionRefusedError(
        f"{_host(url)} accepts no writes: it is a standby or read-only ({session_kind} was requested)"
    )


async def _takes_writes(connection: asyncpg.Connection) -> bool:
    """True if a session may write.

    A pooler goes on saying at each connection's start what the first session said, of a standby that has long been
    promoted, too: so where the start says no, the session is asked.
    """
    parameters = connection.get_settings()
    if all(getattr(parameters, parameter, None) == "off" for parameter in _READ_ONLY):
        return True
    try:
        answer: str = await connection.fetchval("SHOW transaction_read_only")
    except BaseException:
        connection.terminate()
        raise
    return answer == "off"


async def _first_of(attempts: Iterable[_Attempt]) -> asyncpg.Connection:
    """The first connection that is made; each attempt but the first begins when earlier ones have failed or take long."""
    waiting_attempts, pending = list(attempts), set[asyncio.Task[asyncpg.Connection]]()
    failures: list[BaseException] = []
    try:
        while waiting_attempts or pending:
            if waiting_attempts:
                pending.add(asyncio.create_task(waiting_attempts.pop(0), name="redrive-connect"))
            done, pending = await asyncio.wait(
                pending,
                timeout=_HEAD_START_SECONDS if waiting_attempts else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            successes = [task for task in done if task.exception() is None]
            if successes:
                pending |= set(successes[1:])
                return successes[0].result()
            failures += filter(None, (task.exception() for task in done))
        raise _of_all(failures)
    finally:
        for attempt in waiting_attempts:
            attempt.close()
        for task in pending:
            task.add_done_callback(_terminate)
            task.cancel()


def _of_all(failures: Sequence[BaseException]) -> BaseException:
    """The failure to tell: that of the host which did answer, or of all of them."""
    turned_away: list[BaseException] = [failure for failure in failures if isinstance(failure, TURNED_AWAY)]
    if turned_away:
        return turned_away[0]
    return ConnectionRefusedError("no host answered: " + "; ".join(dict.fromkeys(map(describe, failures))))


def _terminate(task: asyncio.Task[asyncpg.Connection]) -> None:
    """Let a connection go that was made for nothing."""
    if not task.cancelled() and task.exception() is None:
        with contextlib.suppress(OSError):
            task.result().terminate()


def describe(error: BaseException) -> str:
    """An error in one line: the database's further lines quote the row, and messages do not belong in a log."""
    first_line, _, _ = str(error).partition("\n")
    reason = error.strerror if isinstance(error, OSError) else None
    return reason or first_line or type(error).__name__
