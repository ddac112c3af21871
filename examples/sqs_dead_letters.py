"""A message that its consumer cannot process three times, and its way back once the consumer is mended."""

import json
import os
import time
import uuid

import boto3

sqs = boto3.client(
    "sqs",
    endpoint_url=os.environ.get("REDRIVE_URL", "http://127.0.0.1:4566"),
    region_name="us-east-1",
    aws_access_key_id="test",
    aws_secret_access_key="test",
)


def arn_of(url):
    """The ARN of a queue."""
    return sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


RUN = uuid.uuid4().hex[:8]  # names of its own for each run: a deleted queue's is free again after a minute
dead = sqs.create_queue(QueueName=f"example-orders-{RUN}-dead")["QueueUrl"]
policy = {"deadLetterTargetArn": arn_of(dead), "maxReceiveCount": 3}
attributes = {"RedrivePolicy": json.dumps(policy)}
orders = sqs.create_queue(QueueName=f"example-orders-{RUN}", Attributes=attributes)["QueueUrl"]

sqs.send_message(QueueUrl=orders, MessageBody='{"car": "van"')  # a brace is missing

while messages := sqs.receive_message(QueueUrl=orders).get("Messages"):
    try:
        json.loads(messages[0]["Body"])
    except ValueError as error:
        print("failed:", error)
        # Back at once; a consumer that crashes would leave it to the visibility timeout.
        handle = messages[0]["ReceiptHandle"]
        sqs.change_message_visibility(QueueUrl=orders, ReceiptHandle=handle, VisibilityTimeout=0)

(letter,) = sqs.receive_message(
    QueueUrl=dead, VisibilityTimeout=0, MessageSystemAttributeNames=["DeadLetterQueueSourceArn"]
)["Messages"]
print("dead letter of", letter["Attributes"]["DeadLetterQueueSourceArn"])

sqs.start_message_move_task(SourceArn=arn_of(dead))
while sqs.list_message_move_tasks(SourceArn=arn_of(dead))["Results"][0]["Status"] == "RUNNING":
    time.sleep(0.05)

(message,) = sqs.receive_message(QueueUrl=orders)["Messages"]
print("mended:", json.loads(message["Body"] + "}"))
sqs.delete_message(QueueUrl=orders, ReceiptHandle=message["ReceiptHandle"])
for queue in (orders, dead):
    sqs.delete_queue(QueueUrl=queue)
