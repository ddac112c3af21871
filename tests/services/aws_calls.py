"""Calls to Amazon's services as a server of a test's own gets them: their signatures proved, their words read."""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import orjson

from redrive.aws.wire.signatures.sigv4 import VerifiedSignature, verify
from redrive.model.http import Request
from redrive.runtime.machine import SystemClock

KEY_ID: Final = "AKIDEXAMPLE"
SECRET: Final = "se/cret+with every=thing"
#: Before the host of a URL: keys to sign with.
USERINFO: Final = f"{KEY_ID}:se%2Fcret%2Bwith%20every%3Dthing@"


@dataclass(frozen=True)
class AwsCall:
    """One call.

    Attributes:
        target: The path as it was sent.
        headers: Names in lower case.
        body: As it was sent.
    """

    target: str
    headers: Mapping[str, str]
    body: bytes

    def proved(self, secret: str = SECRET) -> VerifiedSignature:
        """Return the id of the key that signed the call; fails a test whose signature does not hold."""
        path, _, query = self.target.partition("?")
        request = Request("POST", path, query, dict(self.headers), self.body)
        return verify(request, lambda _: secret, SystemClock().now())

    @property
    def function(self) -> str:
        """The function that it invokes."""
        return unquote(urlsplit(self.target).path.split("/")[3])

    @property
    def operation(self) -> str:
        """The operation of Firehose that it calls."""
        target = self.headers["x-amz-target"]
        version, _, operation = target.partition(".")
        assert version == "Firehose_20150804"
        assert self.headers["content-type"] == "application/x-amz-json-1.1"
        return operation

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = orjson.loads(self.body)
        return document

    @property
    def records(self) -> list[bytes]:
        """The records that the call puts into a stream."""
        single = self.operation == "PutRecord"
        entries = [self.document["Record"]] if single else self.document["Records"]
        return [b64decode(entry["Data"]) for entry in entries]


def put_answer(records: int, *failed: int, code: str = "ServiceUnavailableException") -> bytes:
    """Answer of PutRecordBatch to so many records, those with these places failed; `records=1` for PutRecord."""
    if records == 1:
        return orjson.dumps({"Encrypted": False, "RecordId": "r0"})
    entries = [
        {"ErrorCode": code, "ErrorMessage": "Slow down."} if number in failed else {"RecordId": f"r{number}"}
        for number in range(records)
    ]
    document = {"Encrypted": False, "FailedPutCount": len(failed), "RequestResponses": entries}
    return orjson.dumps(document)
