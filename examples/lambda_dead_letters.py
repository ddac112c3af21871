"""Orders that a function could not bill, and another function that drains its dead-letter queue once that is mended.

Wants a server with functions: `make run args="--functions on"`.
"""

import io
import json
import os
import time
import uuid
import zipfile

import boto3

RUN = uuid.uuid4().hex[:8]  # names of its own for each run
account = {
    "endpoint_url": os.environ.get("REDRIVE_URL", "http://127.0.0.1:4566"),
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}
sqs, functions, logs = (boto3.client(service, **account) for service in ("sqs", "lambda", "logs"))


def create(name, source, **more):
    """Make a function of a few lines."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("index.py", source)
    functions.create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role="arn:aws:iam::000000000000:role/rental",
        Handler="index.handler",
        Code={"ZipFile": archive.getvalue()},
        **more,
    )
    return name


dead = sqs.create_queue(QueueName=f"Rental-Billing-DLQ-{RUN}")["QueueUrl"]
dead_arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
billing = create(
    f"Rental-Billing-{RUN}",
    "def handler(order, context):\n    raise OSError('the billing system is away')\n",
    DeadLetterConfig={"TargetArn": dead_arn},
)
functions.put_function_event_invoke_config(FunctionName=billing, MaximumRetryAttempts=0)
for car in ("van", "bus"):
    functions.invoke(FunctionName=billing, InvocationType="Event", Payload=json.dumps({"car": car}))

counted = {"QueueUrl": dead, "AttributeNames": ["ApproximateNumberOfMessages"]}
while int(sqs.get_queue_attributes(**counted)["Attributes"]["ApproximateNumberOfMessages"]) < 2:
    time.sleep(0.05)
(letter, *_) = sqs.receive_message(QueueUrl=dead, VisibilityTimeout=0, MessageAttributeNames=["All"])[
    "Messages"
]
print("dead letter:", letter["Body"], letter["MessageAttributes"]["ErrorMessage"]["StringValue"])

# The billing system is back: the letters are what the first function was called with.
drain = create(
    f"Rental-Billing-Drain-{RUN}",
    "import json\n"
    "def handler(event, context):\n"
    "    for record in event['Records']:\n"
    "        print('billed', json.loads(record['body'])['car'])\n",
)
mapping = functions.create_event_source_mapping(EventSourceArn=dead_arn, FunctionName=drain)
billed = set()
while len(billed) < 2:
    time.sleep(0.05)
    try:
        events = logs.filter_log_events(logGroupName=f"/aws/lambda/{drain}", filterPattern="billed")["events"]
    except logs.exceptions.ResourceNotFoundException:  # before its first line
        continue
    billed = {event["message"].strip() for event in events}
print(sorted(billed))

functions.delete_event_source_mapping(UUID=mapping["UUID"])
for name in (billing, drain):
    functions.delete_function(FunctionName=name)
sqs.delete_queue(QueueUrl=dead)
