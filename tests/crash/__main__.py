"""`python -m tests.crash [messages|functions|nodes|upgrade] --rounds 200 --store sqlite`: one line a round."""

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.crash.functions import FunctionRounds, Round, function_server
from tests.crash.nodes import NodeRound, NodeRounds, run_directory
from tests.crash.rounds import AttemptResult, Rounds, crash_server
from tests.crash.upgrades import UpgradeRound, Upgrades, summary
from tests.services.postgres import PostgresServer, end_run, new_run_directory, own_server
from tests.services.postgres_pair import PostgresPair

_UNDER_ONE_LOAD: Final = 20


def main() -> int:
    """Run the rounds asked for; 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument(
        "of", nargs="?", choices=("messages", "functions", "nodes", "upgrade"), default="messages"
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--old", type=Path, help="upgrade: a tree of the older version, `git worktree add`")
    parser.add_argument("--rows", type=int, default=200_000, help="upgrade: messages in a deep queue")
    asked = parser.parse_args()
    if asked.of == "upgrade":
        if asked.old is None:
            parser.error("--old TREE: which version is upgraded")
        asyncio.run(_upgrades(asked.old, range(asked.seed, asked.seed + asked.rounds), asked.rows))
        return 0
    if asked.of == "nodes":
        asyncio.run(_nodes(range(asked.seed, asked.seed + asked.rounds)))
        return 0
    outcomes: list[AttemptResult | Round] = []
    with _store(asked.store) as (url, postgres), tempfile.TemporaryDirectory() as directory:
        functions = asked.of == "functions"
        server = function_server(url, Path(directory)) if functions else crash_server(url)
        server.start()
        try:
            rounds = FunctionRounds(server, Path(directory)) if functions else Rounds(server, postgres)
            for seed in range(asked.seed, asked.seed + asked.rounds):
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
    return 0


async def _nodes(seeds: Sequence[int]) -> None:
    """Rounds of three nodes, twenty under one load; what was longest without an answer, and how it is distributed."""
    rounds: list[NodeRound] = []

    def told(done: NodeRound) -> None:
        rounds.append(done)
        _say(str(done))

    directory = run_directory()
    cluster = NodeRounds(PostgresPair(directory))
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
        end_run(directory)
        for lost in sorted({each.lost for each in rounds}):
            _say(f"{lost:14} {_distribution([each.silence for each in rounds if each.lost == lost])}")
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


if __name__ == "__main__":
    sys.exit(main())
