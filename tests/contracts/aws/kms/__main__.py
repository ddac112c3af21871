"""`python -m tests.contracts.aws.kms --messages 10000`: rotation, disabling and deletion under a full queue.

Three parts of the messages are sent, with a rotation of the key after each. All of them are received; with the key
disabled none; with it enabled again all; after its deletion none. It prints a line for each step, and fails where one is
not so.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
from botocore.exceptions import ClientError

from tests.services.server import Server, serving

_DAY = 86_400
_BATCH = 10


def main() -> int:
    """Go through the steps; 1 where one went otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.contracts.aws.kms", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    number = parser.parse_args().messages
    with tempfile.TemporaryDirectory() as folder:
        url, flags = f"sqlite:///{folder}/redrive.db", ("--clock", "simulated")
        with serving(url, *flags, directory=Path(folder)) as server:
            return 0 if FullQueue(server, number).steps() else 1


class FullQueue:
    """A queue with a key, and very many messages."""

    def __init__(self, server: Server, number: int) -> None:
        """Make the queue."""
        self._server = server
        self._number = number // _BATCH * _BATCH
        session = boto3.Session("000000000000", "secret", region_name="us-east-1")
        self._kms = session.client("kms", endpoint_url=server.url)
        self._sqs = session.client("sqs", endpoint_url=server.url)
        self._key = self._kms.create_key()["KeyMetadata"]["Arn"]
        attributes = {"KmsMasterKeyId": self._key, "MessageRetentionPeriod": str(14 * _DAY)}
        made = self._sqs.create_queue(QueueName="full", Attributes=attributes)
        self._url = made["QueueUrl"]

    def steps(self) -> bool:
        """Returns whether all went as it should."""
        for part in range(3):
            self._send(range(part, self._number // _BATCH, 3))
            self._kms.rotate_key_on_demand(KeyId=self._key)
            self._server.advance(301)
        said = [self._say("received after three rotations", len(self._received()), self._number)]
        self._kms.disable_key(KeyId=self._key)
        self._server.advance(301)
        said.append(self._say("receives with the key disabled", self._refusal(), "KMS.DisabledException"))
        self._kms.enable_key(KeyId=self._key)
        said.append(self._say("received once it was enabled", len(self._received()), self._number))
        self._kms.schedule_key_deletion(KeyId=self._key, PendingWindowInDays=7)
        self._server.advance(301)
        said.append(self._say("receives before the deletion", self._refusal(), "KMS.InvalidStateException"))
        self._server.advance(7 * _DAY)
        said.append(self._say("receives after the deletion", self._refusal(), "KMS.NotFoundException"))
        return all(said)

    def _say(self, what: str, found: object, expected: object) -> bool:
        sys.stdout.write(f"{what:<34} {found}{'' if found == expected else f', expected {expected}'}\n")
        return found == expected

    def _send(self, batches: range) -> None:
        def send(batch: int) -> None:
            entries = [
                {"Id": str(one), "MessageBody": f"order {batch * _BATCH + one}"} for one in range(_BATCH)
            ]
            assert not self._sqs.send_message_batch(QueueUrl=self._url, Entries=entries).get("Failed")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(send, batches))

    def _received(self) -> set[str]:
        """The bodies of all messages; they are visible again afterwards."""
        bodies: set[str] = set()
        while messages := self._receive():
            bodies |= {message["Body"] for message in messages}
        self._server.advance(60)
        return bodies

    def _receive(self) -> list[Any]:
        answer = self._sqs.receive_message(
            QueueUrl=self._url, MaxNumberOfMessages=_BATCH, VisibilityTimeout=60
        )
        messages: list[Any] = answer.get("Messages", [])
        return messages

    def _refusal(self) -> str:
        try:
            return f"{len(self._receive())} messages"
        except ClientError as refused:
            code: str = refused.response["Error"]["Code"]
            return code


if __name__ == "__main__":
    sys.exit(main())
