"""First steps: commands for an empty server, each ticked off when done."""

from dataclasses import replace
from typing import NamedTuple

from redrive.console import navigation
from redrive.console.commands import aws_command
from redrive.console.visit import Visit
from redrive.model.names import ResourceName


class Step(NamedTuple):
    """A first step."""

    title: str  # Title of the command
    comes_of_it: str  # Expected result
    command: str  # To be copied, whole for this server
    done: bool  # Whether it was done


async def first_steps(visit: Visit, owner: ResourceName | None, *, sent: bool) -> list[Step]:
    """The steps for a server with one account's region at most.

    Args:
        visit: Whose server it is.
        owner: The account and region with queues or topics; None: there is none yet.
        sent: Whether something was sent.
    """
    queue = topic = False
    if owner is not None:
        resources = visit.engine.resources
        queue = bool(await resources.queues.find(owner, limit=1))
        topic = bool(await resources.topics.find(owner, limit=1))
    owner = owner or navigation.default_scope(visit)
    at_home = replace(visit, args={"account": owner.account, "region": owner.region})
    send = ("sqs", "send-message", "--queue-url", f"{visit.host}/{owner.account}/orders")
    return [
        Step(
            "Create a queue",
            "it stands under Queues",
            aws_command(at_home, "sqs", "create-queue", "--queue-name", "orders"),
            queue,
        ),
        Step(
            "Send a message",
            "the queue shows it without receiving it",
            aws_command(at_home, *send, "--message-body", '{"order": 1}'),
            queue and sent,
        ),
        Step(
            "Create a topic",
            "webhooks that subscribe to it are signed, retried, and dead-lettered when they keep failing",
            aws_command(at_home, "sns", "create-topic", "--name", "rentals"),
            topic,
        ),
        Step(
            "See 40,000 dead letters and send them back",
            "on a server of its own, in 17 seconds",
            "redrive demo --stay",
            done=False,
        ),
    ]
