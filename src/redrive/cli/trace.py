"""`redrive trace`: where a message's deliveries stand, what their attempts came to, and what the logs say of it."""

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any, Final

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from redrive.cli.client import Client, Entry, add_server, with_client
from redrive.cli.dlq import print_attempts
from redrive.cli.redriving import origin
from redrive.cli.terminal import CommandFailed, add_json, many, moment, note, print_json, shorten

_LOG_GROUPS: Final = "sns/"  # SNS's delivery-status logs: sns/REGION/ACCOUNT/TOPIC


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    command.description = (
        "Show where the deliveries of a message are: the MessageId that SendMessage or Publish returned."
    )
    command.add_argument("message", metavar="MESSAGE_ID")
    add_json(command)
    add_server(command)
    command.set_defaults(run=with_client(_run))


def _run(client: Client, parsed: argparse.Namespace) -> int:
    """Print the deliveries of a message, and the log entries about those that ended."""
    trace = client.get("/_redrive/trace", message=parsed.message)
    entries = [] if client.scope else list(_log_entries(client, parsed.message))
    if parsed.json:
        print_json({**trace, "logged": entries})
        return 0
    for delivery in trace["deliveries"]:
        print(f"{_queue_or_topic(delivery)}: {_state(delivery)}")
        print_attempts(delivery["history"])
    for entry in entries:
        print(f"logged {moment(entry['timestamp'])}  {_log_line(entry['message'])}")
    if trace["partial"]:
        note(
            "there is more than one trace looks at: 10,000 queues and subscriptions, 10,000 messages of each"
        )
    if not trace["deliveries"]:
        note(
            f"no delivery of {parsed.message} is waiting, in flight or a dead letter:"
            " it was completed, or never accepted here"
        )
    return 0


def _queue_or_topic(delivery: Entry) -> str:
    """The place of a delivery in words."""
    subscription = delivery["subscription"]
    if subscription:
        return f"{subscription['topic']} to {subscription['endpoint']} ({subscription['id']})"
    if delivery["dead_letter"]:
        return f"dead letter {delivery['id']} in {delivery['queue']}, from {origin(delivery['from'])}"
    return f"queue {delivery['queue']}"


def _state(delivery: Entry) -> str:
    """The state of a delivery in words."""
    is_pushed = delivery["subscription"] or delivery["dead_letter"]
    attempts = f"{delivery['attempts']} {many(delivery['attempts'], 'attempt' if is_pushed else 'receive')}"
    if delivery["dead_letter"] and delivery["state"] == "available":
        return attempts
    if delivery["state"] == "available":
        return f"waits, {attempts}"
    verb = "in flight" if delivery["state"] == "in_flight" else "waits"
    return f"{verb} until {moment(delivery['available_at'])}, {attempts}"


def _log_line(line: str) -> str:
    """A delivery-status entry in short: how it ended, where, and the endpoint's status."""
    try:
        document = json.loads(line)
        delivery = document["delivery"]
        return f"{document['status']}  {delivery['destination']}  {delivery.get('statusCode', '')}".rstrip()
    except (ValueError, KeyError, TypeError):
        return shorten(line, 200)  # of another writer, who knows the message as well


def _log_entries(client: Client, message_id: str) -> Iterator[Entry]:
    """The delivery-status log entries of a message, where topics have them written."""
    logs: Any = botocore.session.get_session().create_client(
        "logs",
        region_name=client.region,
        endpoint_url=client.url,
        config=Config(retries={"total_max_attempts": 1}),
        aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID", "test"),
        aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "test"),
    )
    try:
        for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=_LOG_GROUPS):
            for group in page["logGroups"]:
                answer = logs.filter_log_events(
                    logGroupName=group["logGroupName"], filterPattern=f'"{message_id}"'
                )
                for event in answer["events"]:
                    yield {
                        "group": group["logGroupName"],
                        **{name: event[name] for name in ("timestamp", "message")},
                    }
    except (BotoCoreError, ClientError) as error:
        raise CommandFailed(f"the delivery-status logs cannot be read: {error}") from None
