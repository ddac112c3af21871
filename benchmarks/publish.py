"""The rate of a publication to four queues, beside the least work that four durable inserts can be."""

from collections.abc import Iterator
from typing import Any, Final

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import orjson

from benchmarks.bench import Bench
from benchmarks.ceiling import FAN_OUT
from benchmarks.figures import Figure
from benchmarks.rounds import Lane, compared, in_turn
from benchmarks.servers import Redrive, ceiling, redrive

CREDENTIALS: Final = {
    "aws_access_key_id": "000000000000",
    "aws_secret_access_key": "secret",
    "region_name": "us-east-1",
}


def counters(bench: Bench) -> Iterator[Figure]:
    """One figure for each number of connections; what counts is publications."""
    with redrive(bench) as ours, ceiling(bench) as least:
        lanes = Lane("redrive", ours, lambda: new_topic(ours)), Lane("ceiling", least, least.new_queue)
        for connections in bench.scale.connections:
            runs = in_turn(bench.scale, lanes, "publish", connections)
            yield compared(f"publish to {FAN_OUT}, {connections} connections, {bench.store_name}", runs)


def new_topic(server: Redrive) -> str:
    """The ARN of a topic made now, with its queues subscribed."""
    sns = boto3.client("sns", endpoint_url=server.url, **CREDENTIALS)
    sqs = boto3.client("sqs", endpoint_url=server.url, **CREDENTIALS)
    queues = [_queue_arn(sqs, server.new_queue()) for _ in range(FAN_OUT)]
    topic: str = sns.create_topic(Name=queues[0].rpartition(":")[2])["TopicArn"]
    for queue in queues:
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue)
    return topic


def _queue_arn(sqs: Any, url: str) -> str:
    """The queue's ARN; its policy lets every topic send."""
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    arn: str = attributes["QueueArn"]
    statement = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn}
    policy = orjson.dumps({"Version": "2012-10-17", "Statement": [statement]}).decode()
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    return arn
