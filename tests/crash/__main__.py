"""`python -m tests.crash [messages|functions] --rounds 200 --store sqlite`: the full proof, one line a round."""

import argparse
import contextlib
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.crash.functions import FunctionRounds, Round, function_server
from tests.crash.rounds import AttemptResult, Rounds, crash_server
from tests.services.postgres import PostgresServer, end_run, new_run_directory, own_server


def main() -> int:
    """Run the rounds asked for; 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("of", nargs="?", choices=("messages", "functions"), default="messages")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    asked = parser.parse_args()
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


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
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
