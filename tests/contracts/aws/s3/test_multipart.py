"""Uploads in parts."""

import hashlib
import io
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig  # type: ignore[import-untyped]  # boto3 ships no types

from redrive.aws.s3.checksums import checksum_of
from tests.contracts.aws.s3.buckets import BUCKET, refusal

MIB = 1024 * 1024
FIRST, LAST = b"f" * (5 * MIB), b"last"
AT = {"Bucket": BUCKET, "Key": "large"}


def tag(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def part(s3: Any, upload: str, number: int, content: bytes, algorithm: str = "CRC32") -> dict[str, Any]:
    """A part, with the checksum that boto3 sends; it has code of its own for few algorithms."""
    chosen = {"ChecksumAlgorithm": algorithm} if algorithm != "CRC64NVME" else {}
    if algorithm == "CRC64NVME":
        chosen["ChecksumCRC64NVME"] = checksum_of(algorithm, [content])
    answer = s3.upload_part(**AT, UploadId=upload, PartNumber=number, Body=content, **chosen)
    return {"PartNumber": number, "ETag": answer["ETag"]}


def test_an_object_is_put_together_of_its_parts(s3: Any) -> None:
    upload = s3.create_multipart_upload(**AT, ContentType="text/large", Metadata={"n": "1"})["UploadId"]
    parts = [part(s3, upload, 7, LAST), part(s3, upload, 2, b"to be replaced"), part(s3, upload, 2, FIRST)]
    listed = s3.list_parts(**AT, UploadId=upload)["Parts"]
    assert [(each["PartNumber"], each["Size"]) for each in listed] == [(2, 5 * MIB), (7, 4)]
    page = s3.list_parts(**AT, UploadId=upload, MaxParts=1)
    assert (page["IsTruncated"], page["NextPartNumberMarker"]) == (True, 2)
    assert refusal(s3.head_object, **AT) == ("404", 404)
    done = s3.complete_multipart_upload(
        **AT, UploadId=upload, MultipartUpload={"Parts": [parts[2], parts[0]]}
    )
    expected = tag(bytes.fromhex(tag(FIRST)) + bytes.fromhex(tag(LAST)))
    assert done["ETag"] == f'"{expected}-2"'
    read = s3.get_object(**AT)
    assert read["Body"].read() == FIRST + LAST
    assert (read["ContentType"], read["Metadata"], read["ETag"]) == ("text/large", {"n": "1"}, done["ETag"])
    over_both = s3.get_object(**AT, Range=f"bytes={5 * MIB - 2}-{5 * MIB + 1}")
    assert over_both["Body"].read() == b"ffla"
    second = s3.get_object(**AT, PartNumber=2)
    assert (second["Body"].read(), second["PartsCount"]) == (LAST, 2)
    assert refusal(s3.list_parts, **AT, UploadId=upload) == ("NoSuchUpload", 404)


def test_an_upload_that_is_given_up_leaves_nothing(s3: Any) -> None:
    upload = s3.create_multipart_upload(**AT)["UploadId"]
    part(s3, upload, 1, LAST)
    s3.abort_multipart_upload(**AT, UploadId=upload)
    again = {**AT, "UploadId": upload, "PartNumber": 1, "Body": b""}
    assert refusal(s3.upload_part, **again) == ("NoSuchUpload", 404)
    assert refusal(s3.abort_multipart_upload, **AT, UploadId=upload) == ("NoSuchUpload", 404)
    s3.delete_bucket(Bucket=BUCKET)


def test_parts_that_do_not_fit_are_refused(s3: Any) -> None:
    upload = s3.create_multipart_upload(**AT)["UploadId"]
    one, two = part(s3, upload, 1, LAST), part(s3, upload, 2, LAST)

    def refused(*parts: dict[str, Any]) -> tuple[str, int]:
        return refusal(
            s3.complete_multipart_upload, **AT, UploadId=upload, MultipartUpload={"Parts": list(parts)}
        )

    assert refused(one, two) == ("EntityTooSmall", 400)
    assert refused(two, one) == ("InvalidPartOrder", 400)
    assert refused({**one, "ETag": '"other"'}) == ("InvalidPart", 400)
    assert refused({**one, "PartNumber": 3}) == ("InvalidPart", 400)
    assert refused() == ("MalformedXML", 400)
    wrong = {**AT, "UploadId": upload, "PartNumber": 10_001, "Body": b""}
    assert refusal(s3.upload_part, **wrong) == ("InvalidArgument", 400)
    s3.delete_bucket(Bucket=BUCKET)  # the upload ends with it
    s3.create_bucket(Bucket=BUCKET)
    assert refusal(s3.list_parts, **AT, UploadId=upload) == ("NoSuchUpload", 404)


def test_a_part_is_copied_of_an_object(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="source", Body=FIRST + LAST)
    upload = s3.create_multipart_upload(**AT)["UploadId"]
    source = {"CopySource": f"{BUCKET}/source", "UploadId": upload, "PartNumber": 1}
    copied = s3.upload_part_copy(**AT, **source, CopySourceRange=f"bytes={5 * MIB}-{5 * MIB + 3}")
    assert copied["CopyPartResult"]["ETag"] == f'"{tag(LAST)}"'
    too_far = {**source, "CopySourceRange": f"bytes=0-{6 * MIB}"}
    assert refusal(s3.upload_part_copy, **AT, **too_far) == ("InvalidArgument", 400)


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [("CRC32", "COMPOSITE"), ("CRC32", "FULL_OBJECT"), ("CRC64NVME", "FULL_OBJECT"), ("SHA256", "COMPOSITE")],
)
def test_an_upload_has_a_checksum(s3: Any, algorithm: str, kind: str) -> None:
    begun = s3.create_multipart_upload(**AT, ChecksumAlgorithm=algorithm, ChecksumType=kind)
    assert begun["ChecksumType"] == kind
    other = {**AT, "UploadId": begun["UploadId"], "PartNumber": 1, "Body": b"", "ChecksumAlgorithm": "SHA1"}
    assert refusal(s3.upload_part, **other) == ("InvalidRequest", 400)
    parts = [part(s3, begun["UploadId"], *each, algorithm) for each in ((1, FIRST), (2, LAST))]
    done = s3.complete_multipart_upload(**AT, UploadId=begun["UploadId"], MultipartUpload={"Parts": parts})
    member = f"Checksum{algorithm}"
    assert done["ChecksumType"] == kind
    assert done[member].endswith("-2") is (kind == "COMPOSITE")
    if kind == "FULL_OBJECT":
        s3.put_object(Bucket=BUCKET, Key="whole", Body=FIRST + LAST, **{member: done[member]})
    assert s3.head_object(**AT, ChecksumMode="ENABLED")[member] == done[member]


def test_transfers_of_boto3_go_both_ways(s3: Any) -> None:
    content = bytes(range(256)) * (11 * MIB // 256)
    config = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)
    s3.upload_fileobj(io.BytesIO(content), BUCKET, "moved", Config=config)
    assert s3.head_object(Bucket=BUCKET, Key="moved")["ETag"].endswith('-3"')
    s3.copy({"Bucket": BUCKET, "Key": "moved"}, BUCKET, "copied", Config=config)
    read = io.BytesIO()
    s3.download_fileobj(BUCKET, "copied", read, Config=config)
    assert read.getvalue() == content
