"""Objects through the end of the server's process."""

import json
from pathlib import Path

from tests.contracts.aws.s3.buckets import BUCKET, client, refusal
from tests.contracts.aws.sqs.client import Queue, Sqs
from tests.services.server import serving


def _keys_told(queue: Queue, number: int) -> set[str]:
    """The keys of so many objects that a queue is told of; the first message is the test of the queue."""
    keys: set[str] = set()
    while len(keys) < number:
        for message in queue.receive(WaitTimeSeconds=20):
            records = json.loads(message["Body"]).get("Records", ())
            keys |= {record["s3"]["object"]["key"] for record in records}
    return keys


def test_an_answered_object_survives_a_kill(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/redrive.db", directory=tmp_path) as server:
        s3 = client(server)
        s3.create_bucket(Bucket=BUCKET)
        upload = s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
        part = s3.upload_part(Bucket=BUCKET, Key="parts", UploadId=upload, PartNumber=1, Body=b"part")
        s3.put_object(Bucket=BUCKET, Key="removed", Body=b"1")
        s3.delete_object(Bucket=BUCKET, Key="removed")
        queue = Sqs(server).queue()
        rule = {"QueueArn": queue.arn, "Events": ["s3:ObjectCreated:*"]}
        s3.put_bucket_notification_configuration(
            Bucket=BUCKET, NotificationConfiguration={"QueueConfigurations": [rule]}
        )
        for number in range(20):
            s3.put_object(Bucket=BUCKET, Key=f"k{number}", Body=b"%d" % number)
        server.kill()
        server.start()
        assert _keys_told(queue, 20) == {f"k{number}" for number in range(20)}
        s3 = client(server)
        for number in range(20):
            assert s3.get_object(Bucket=BUCKET, Key=f"k{number}")["Body"].read() == b"%d" % number
        assert refusal(s3.head_object, Bucket=BUCKET, Key="removed") == ("404", 404)
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        s3.complete_multipart_upload(Bucket=BUCKET, Key="parts", UploadId=upload, MultipartUpload=parts)
        server.kill()
        server.start()
        assert client(server).get_object(Bucket=BUCKET, Key="parts")["Body"].read() == b"part"


def test_an_object_whose_file_is_gone_is_told_by_name_and_once_in_the_log(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/redrive.db", directory=tmp_path) as server:
        s3 = client(server)
        s3.create_bucket(Bucket=BUCKET)
        for key, size in (("small", 1), ("large", 2_000_000)):
            s3.put_object(Bucket=BUCKET, Key=key, Body=b"x" * size)
        files = [place for place in (tmp_path / "redrive-blobs").rglob("*") if place.is_file()]
        for file in files:
            file.unlink()
        for key in ("small", "large"):
            assert refusal(s3.get_object, Bucket=BUCKET, Key=key) == ("InvalidObjectState", 403)
        log = server.log.read_text()
    lines = [line for line in log.splitlines() if "s3.content_lost" in line]
    assert len(lines) == len(files) == 2
    assert all(any(file.name in line for line in lines) for file in files)
    assert "Traceback" not in log
