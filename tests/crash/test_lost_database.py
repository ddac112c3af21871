from pathlib import Path

from tests.contracts.protocols.sqs import Sqs, refused
from tests.services.postgres import PostgresServer
from tests.services.server import serving


def test_a_database_that_is_away_is_told_and_found_again(
    durable_postgres: PostgresServer, tmp_path: Path
) -> None:
    with serving(durable_postgres.url(), directory=tmp_path) as server:
        queue = Sqs(server).queue()
        kept = [queue.send("before")["MessageId"]]
        durable_postgres.crash()
        for _ in range(3):
            with refused("ServiceUnavailable", "Service is unavailable. Please try again.", status=503):
                queue.send("while it is away")
            with refused("ServiceUnavailable", status=503):
                queue.receive()
        assert server.ask("GET", "/_redrive/health")[0] == 503
        durable_postgres.start()
        kept.append(queue.send("after")["MessageId"])
        assert server.ask("GET", "/_redrive/health")[0] == 200
        assert [message["MessageId"] for message in queue.receive()] == kept
        log = server.log.read_text()
        assert log.count("store.lost error=") == 1
        assert "store.back" in log
        assert "Traceback" not in log
