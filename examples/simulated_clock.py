"""Two weeks in a moment, on a server with `--clock simulated`: a delay, a visibility timeout, a retention period."""

import json
import os
import sys
import urllib.error
import urllib.request
import uuid

import boto3

URL = os.environ.get("REDRIVE_URL", "http://127.0.0.1:4566")
sqs = boto3.client(
    "sqs", endpoint_url=URL, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
)


def advance(**span):
    """Let the server's time pass."""
    seconds = span.get("days", 0) * 86_400 + span.get("seconds", 0)
    body = json.dumps({"advance_seconds": seconds}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{URL}/_redrive/clock", body)) as answer:
            print(f"{span}:", answer.read().decode())
    except urllib.error.HTTPError as error:
        sys.exit(f"{URL}: {json.load(error)['message']}")


def receive():
    """The bodies that can be received now."""
    return [message["Body"] for message in sqs.receive_message(QueueUrl=queue).get("Messages", [])]


attributes = {"MessageRetentionPeriod": str(14 * 86_400), "VisibilityTimeout": "30"}
name = f"example-letters-{uuid.uuid4().hex[:8]}"  # its own for each run
queue = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
sqs.send_message(QueueUrl=queue, MessageBody="a letter", DelaySeconds=900)

assert receive() == []
advance(seconds=900)
assert receive() == ["a letter"]
assert receive() == []
advance(seconds=30)
assert receive() == ["a letter"]
advance(days=14)
assert receive() == []
sqs.delete_queue(QueueUrl=queue)
