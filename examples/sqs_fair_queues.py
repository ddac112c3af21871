"""A fair queue: one tenant sends a hundred messages first, and another's three do not wait behind them."""

import os
import uuid

import boto3

sqs = boto3.client(
    "sqs",
    endpoint_url=os.environ.get("REDRIVE_URL", "http://127.0.0.1:4566"),
    region_name="us-east-1",
    aws_access_key_id="test",
    aws_secret_access_key="test",
)
RUN = uuid.uuid4().hex[:8]  # names of its own for each run: a deleted queue's is free again after a minute
queue = sqs.create_queue(QueueName=f"example-reports-{RUN}")["QueueUrl"]

for tenant, number in (("busy", 100), ("quiet", 3)):
    for first in range(0, number, 10):
        entries = [
            {"Id": str(n), "MessageBody": f"{tenant} {n}", "MessageGroupId": tenant}
            for n in range(first, min(first + 10, number))
        ]
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)

messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
print([message["Body"] for message in messages])
assert {"quiet 0", "quiet 1", "quiet 2"} <= {message["Body"] for message in messages}
sqs.delete_queue(QueueUrl=queue)
