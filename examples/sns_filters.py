"""A topic whose subscribers want some messages only: by an attribute, and by what is in the body."""

import json
import os
import uuid

import boto3

SERVER = {
    "endpoint_url": os.environ.get("REDRIVE_URL", "http://127.0.0.1:4566"),
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}
sns, sqs = boto3.client("sns", **SERVER), boto3.client("sqs", **SERVER)
RUN = uuid.uuid4().hex[:8]  # names of its own for each run: a deleted queue's is free again after a minute
topic = sns.create_topic(Name=f"example-rentals-{RUN}")["TopicArn"]


def subscribe(name, scope, policy):
    """A queue that gets what the policy lets pass."""
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    sns.subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=f"arn:aws:sqs:us-east-1:000000000000:{name}",
        Attributes={
            "RawMessageDelivery": "true",
            "FilterPolicyScope": scope,
            "FilterPolicy": json.dumps(policy),
        },
    )
    return url


confirmed = subscribe(
    f"example-confirmed-{RUN}", "MessageAttributes", {"order-status": ["confirmed", "canceled"]}
)
expensive = subscribe(f"example-expensive-{RUN}", "MessageBody", {"price": [{"numeric": [">=", 500]}]})

for status, order in (
    ("confirmed", {"car": "small", "price": 90}),
    ("draft", {"car": "bus", "price": 900}),
    ("canceled", {"car": "truck", "price": 600}),
):
    sns.publish(
        TopicArn=topic,
        Message=json.dumps(order),
        MessageAttributes={"order-status": {"DataType": "String", "StringValue": status}},
    )

for name, url in (("confirmed", confirmed), ("expensive", expensive)):
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    print(name, [json.loads(message["Body"])["car"] for message in messages])
    sqs.delete_queue(QueueUrl=url)
sns.delete_topic(TopicArn=topic)
