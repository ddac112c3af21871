"""Records through the end of the server's process, in the middle of whatever it does."""

from pathlib import Path

from tests.contracts.aws.firehose.landing import BUCKET, Landing
from tests.services.server import serving


def test_every_answered_record_comes_to_s3_through_a_kill(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/redrive.db", "--clock", "simulated", directory=tmp_path) as server:
        landing = Landing(server)
        landing.s3.create_bucket(Bucket=BUCKET)
        landing.stream(BufferingHints={"SizeInMBs": 1, "IntervalInSeconds": 60})
        for number in range(25):
            landing.put(b"%d;" % number, b"-" * 100_000 + b";")
        server.kill()
        server.start()
        server.advance(300)
        found = b"".join(Landing(server).contents()).split(b";")
        assert {int(each) for each in found if each.isdigit()} == set(range(25))
