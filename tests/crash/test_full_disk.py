from pathlib import Path

import orjson

from tests.contracts.aws.sqs.client import Sqs, refused
from tests.crash.rounds import limit_files
from tests.services.server import serving

BODY = "x" * 10_000


def test_a_full_disk_is_told_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/redrive.db", directory=tmp_path) as server:
        queue = Sqs(server).queue()
        kept = [queue.send(f"{number} {BODY}")["MessageId"] for number in range(3)]
        limit_files(server, room_bytes=0)
        for _ in range(3):
            with refused("ServiceUnavailable", "Service is unavailable. Please try again.", status=503):
                queue.send(BODY)
            with refused("ServiceUnavailable", status=503):
                queue.receive()
        assert queue.counts() == (3, 0, 0)
        status, told = server.ask("GET", "/_redrive/health")
        assert (status, orjson.loads(told)["status"]) == (503, "unavailable")
        log = server.log.read_text()
        assert "store.unavailable error=" in log
        assert "nothing of this call was kept" in log
        assert "Traceback" not in log
        limit_files(server, room_bytes=None)
        kept.append(queue.send("room again")["MessageId"])
        assert server.ask("GET", "/_redrive/health")[0] == 200
        server.kill()
        server.start()
        assert sorted(message["MessageId"] for message in queue.receive()) == sorted(kept)
