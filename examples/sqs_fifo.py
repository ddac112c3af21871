"""A FIFO queue: order within each group, groups side by side, and a repetition that is recognised."""

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
RUN = uuid.uuid4().hex[:8]  # names of its own for each run: a queue remembers five minutes of repetitions
queue = sqs.create_queue(
    QueueName=f"example-payments-{RUN}.fifo",
    Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"},
)["QueueUrl"]

for customer, body in (
    ("ann", "ann pays 1"),
    ("bob", "bob pays 1"),
    ("ann", "ann pays 2"),
    ("ann", "ann pays 2"),
):
    sent = sqs.send_message(QueueUrl=queue, MessageBody=body, MessageGroupId=customer)
    print("sent", body, "as", sent["SequenceNumber"])  # the repetition gets the number of the original

(first,) = sqs.receive_message(QueueUrl=queue)["Messages"]
(second,) = sqs.receive_message(QueueUrl=queue)["Messages"]
print("at the same time:", first["Body"], "and", second["Body"])
assert "Messages" not in sqs.receive_message(QueueUrl=queue)  # ann's second waits for her first

sqs.delete_message(QueueUrl=queue, ReceiptHandle=first["ReceiptHandle"])
(third,) = sqs.receive_message(QueueUrl=queue)["Messages"]
print("and then:", third["Body"])
for message in (second, third):
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
sqs.delete_queue(QueueUrl=queue)
