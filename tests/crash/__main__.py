"""`python -m tests.crash [messages|functions|nodes|pooled|citus|join|upgrade] --rounds 200`: one line a round."""

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.crash.cluster import ClusterBacking
from tests.crash.functions import FunctionRounds, Round, function_server
from tests.crash.joining import Joining, line
from tests.crash.nodes import NodeRound, NodeRounds
from tests.crash.pair import PairBacking, run_directory
from tests.crash.pooled import PooledBacking
from tests.crash.rounds import AttemptResult, Rounds, crash_server
from tests.crash.upgrades import UpgradeRound, Upgrades, summary
from tests.services.citus import CITUS_VARIABLE
from tests.services.postgres import PostgresServer, end_run, new_run_directory, own_server
from tests.services.postgres_pair import PostgresPair

_UNDER_ONE_LOAD: Final = 20
_NODES_ON_CITUS: Final = 2
_NODES_BEHIND_A_POOLER: Final = 2


def main() -> int:
    """Run the rounds asked for; 1 where a promise was broken."""
    asked = _asked()
    _ROUNDS[asked.of](asked, range(asked.seed, asked.seed + asked.rounds))
    return 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("of", nargs="?", choices=_ROUNDS, default="messages")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--old", type=Path, help="upgrade: a tree of the older version, `git worktree add`")
    parser.add_argument("--rows", type=int, default=200_000, help="upgrade: messages in a deep queue")
    parser.add_argument(
        "--cluster",
        default=os.environ.get(CITUS_VARIABLE),
        help=f"citus, join: a database on the coordinator; else {CITUS_VARIABLE}",
    )
    parser.add_argument("--kill", help="citus: the shell command that kills the cluster's node {host} {port}")
    parser.add_argument("--start", help="citus: the one that starts it again")
    parser.add_argument("--newcomer", help="join: a database on a server with Citus that is no node yet")
    asked = parser.parse_args()
    for name in _NEEDS.get(asked.of, ()):
        if getattr(asked, name) is None:
            parser.error(f"{asked.of} needs --{' and --'.join(_NEEDS[asked.of])}")
    return asked


def _alone(asked: argparse.Namespace, seeds: Sequence[int]) -> None:
    outcomes: list[AttemptResult | Round] = []
    with _store(asked.store) as (url, postgres), tempfile.TemporaryDirectory() as directory:
        functions = asked.of == "functions"
        server = function_server(url, Path(directory)) if functions else crash_server(url)
        server.start()
        try:
            rounds = FunctionRounds(server, Path(directory)) if functions else Rounds(server, postgres)
            for seed in seeds:
                outcomes.append(rounds.run(seed))
                _say(str(outcomes[-1]))
        except BaseException:
            _say(f"seed {asked.seed + len(outcomes)} failed; log:\n{server.log.read_text()[-5000:]}")
            raise
        finally:
            if server.process.poll() is None:
                server.kill()
    seconds = statistics.median(result.seconds for result in outcomes)
    calls = sum(result.acknowledged for result in outcomes)
    messages = sum(result.messages for result in outcomes)
    _say(f"{len(outcomes)} rounds, {calls} calls, {messages} messages, median {seconds:.2f} s a round")


def _on_a_pair(_: argparse.Namespace, seeds: Sequence[int]) -> None:
    directory = run_directory()
    try:
        asyncio.run(_nodes(NodeRounds(PairBacking(PostgresPair(directory))), seeds))
    finally:
        end_run(directory)


def _behind_a_pooler(_: argparse.Namespace, seeds: Sequence[int]) -> None:
    directory = new_run_directory()
    try:
        asyncio.run(_nodes(NodeRounds(PooledBacking(directory), _NODES_BEHIND_A_POOLER), seeds))
    finally:
        end_run(directory)


def _on_citus(asked: argparse.Namespace, seeds: Sequence[int]) -> None:
    backing = ClusterBacking(asked.cluster, asked.kill, asked.start)
    asyncio.run(_nodes(NodeRounds(backing, _NODES_ON_CITUS), seeds))


def _of_joining(asked: argparse.Namespace, seeds: Sequence[int]) -> None:
    joining = Joining(asked.cluster, asked.newcomer)
    for seed in seeds:
        _say(*map(line, asyncio.run(joining.run(seed))))


def _of_upgrades(asked: argparse.Namespace, seeds: Sequence[int]) -> None:
    asyncio.run(_upgrades(asked.old, seeds, asked.rows))


async def _nodes(cluster: NodeRounds, seeds: Sequence[int]) -> None:
    """Rounds of several nodes, twenty under one load; what was longest without an answer, and how it is distributed."""
    rounds: list[NodeRound] = []

    def told(done: NodeRound) -> None:
        rounds.append(done)
        _say(str(done))

    try:
        await cluster.open()
        for first in range(0, len(seeds), _UNDER_ONE_LOAD):
            load = await cluster.run(seeds[first : first + _UNDER_ONE_LOAD], told)
            _say(
                f"settled: {load.calls} calls, {len(load.published)} publications pushed, {load.tasks_done} tasks,"
                f" {sum(ledger.duplicates for ledger in (load.standard, load.fifo, *load.copies, load.moved))} came again"
            )
    finally:
        await cluster.close()
        for lost in sorted({each.lost for each in rounds}):
            of_lost = [each for each in rounds if each.lost == lost]
            _say(f"{lost:14} {_distribution([each.silence for each in of_lost])}")
            _say(f"{'':14} of one caller: {_distribution([each.wait for each in of_lost])}")
        if rounds:
            _say(f"{'all':14} {_distribution([each.silence for each in rounds])}")
            _say(f"{'of one caller':14} {_distribution([each.wait for each in rounds])}")


async def _upgrades(old: Path, seeds: Sequence[int], rows: int) -> None:
    """Rounds of a rolling upgrade, each on a database of its own, and what callers noticed of all of them."""
    rounds: list[UpgradeRound] = []
    directory = run_directory()
    try:
        postgres = own_server(directory)
        upgrades = Upgrades(postgres, old, rows=rows)
        for seed in seeds:
            rounds.append(await upgrades.run(seed))
            before, now = rounds[-1].steps
            _say(f"seed {seed}: schema {before} to {now}, {rounds[-1].calls} calls answered")
    finally:
        end_run(directory)
        _say(*summary(rounds))


def _distribution(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    at = {share: ordered[min(int(share / 100 * len(ordered)), len(ordered) - 1)] for share in (50, 90, 99)}
    shown = ", ".join(f"{share} % {value:.2f}" for share, value in at.items())
    return f"{len(ordered)} rounds, s without an answer: {shown}, longest {ordered[-1]:.2f}"


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


@contextlib.contextmanager
def _store(kind: str) -> Iterator[tuple[str, PostgresServer | None]]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="redrive-crash-") as directory:
            yield f"sqlite:///{directory}/redrive.db", None
        return
    run_directory = new_run_directory()
    try:
        postgres = own_server(run_directory)
        yield postgres.url(), postgres
    finally:
        end_run(Path(run_directory))


_ROUNDS: Final[dict[str, Callable[[argparse.Namespace, Sequence[int]], None]]] = {
    "messages": _alone,
    "functions": _alone,
    "nodes": _on_a_pair,
    "pooled": _behind_a_pooler,
    "citus": _on_citus,
    "join": _of_joining,
    "upgrade": _of_upgrades,
}
_NEEDS: Final = {
    "citus": ("cluster", "kill", "start"),
    "join": ("cluster", "newcomer"),
    "upgrade": ("old",),
}

if __name__ == "__main__":
    sys.exit(main())
