"""Documents of S3 that take long to read."""

import pytest

from redrive.aws.s3.notifications.rules import normalized
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.rest.xml_input import read_xml
from tests.attack.test_filter_costs import TIMES_MAX, times_counting

MIB = 1024 * 1024

ATTACKS = {
    "lines": b"<a>" + b"x\n" * 8 * MIB + b"</a>",
    "attributes": b"<a " + b" ".join(b'a%d=""' % number for number in range(500_000)) + b"/>",
    "namespaces": b"<a" + b"".join(b' xmlns:a%d="u"' % number for number in range(300_000)) + b"/>",
    "elements": b"<a>" + b"<b/>" * MIB + b"</a>",
    "brackets": b"<a>" * MIB,
    "a document type": b'<!DOCTYPE a [<!ENTITY x "xxxxxxxx">]><a>' + b"&x;" * MIB + b"</a>",
}


@pytest.mark.parametrize("body", ATTACKS.values(), ids=ATTACKS)
def test_a_document_that_takes_long_is_refused(body: bytes) -> None:
    def read() -> None:
        with pytest.raises(AwsError):
            read_xml(body)

    assert times_counting(read) < TIMES_MAX / 4


def test_the_longest_list_of_parts_is_read() -> None:
    checksum = b"A" * 42 + b"=="
    part = (
        b"<Part>\n<PartNumber>%d</PartNumber>\n<ETag>&quot;" + b"0" * 32 + b"&quot;</ETag>\n"
        b"<ChecksumSHA256>" + checksum + b"</ChecksumSHA256>\n"
        b"<ChecksumCRC32>" + checksum + b"</ChecksumCRC32>\n</Part>\n"
    )
    parts = b"".join(part % number for number in range(10_000))
    assert len(read_xml(b"<CompleteMultipartUpload>" + parts + b"</CompleteMultipartUpload>").inner) == 10_000


def test_rules_of_notifications_name_each_event_once() -> None:
    topic = "arn:aws:sns:us-east-1:111111111111:news"
    events = ("s3:ObjectCreated:Put", "s3:ObjectRemoved:Delete")
    rules = [{"Id": event, "TopicArn": topic, "Events": [event] * 14_000} for event in events]

    def read() -> None:
        normalized({"TopicConfigurations": rules}, "us-east-1", str)

    assert times_counting(read) < TIMES_MAX / 4
