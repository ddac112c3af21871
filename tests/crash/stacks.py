"""`python -m tests.crash.stacks --rounds 50`: the server is killed in the middle of a stack's change, again and again.

After each restart the stack comes to a final status by itself; then there is what it says there is, and nothing else.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.contracts.aws.cloudformation.stacks import Stacks
from tests.services.server import Server, new_server

FLAGS: Final = ("--allow-reset", "--skip-queue-waits", "--log-level", "warning")
WIDTH: Final = 12  # queues, each with a topic and a subscription
SECONDS_MAX: Final = 60  # for a stack to come to its end after the restart


def template(letter: str, *, fails: bool) -> dict[str, Any]:
    """A template whose next letter changes all of it: some in place, some by replacement."""
    resources: dict[str, Any] = {}
    for number in range(WIDTH):
        named = {"QueueName": f"{letter}-{number}"} if number % 2 else {"VisibilityTimeout": ord(letter)}
        resources[f"Queue{number}"] = {"Type": "AWS::SQS::Queue", "Properties": named}
        resources[f"Topic{number}"] = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": letter}}
        resources[f"Subscription{number}"] = {
            "Type": "AWS::SNS::Subscription",
            "Properties": {
                "Protocol": "sqs",
                "TopicArn": {"Ref": f"Topic{number}"},
                "Endpoint": {"Fn::GetAtt": [f"Queue{number}", "Arn"]},
            },
        }
    if fails:
        last = [f"Subscription{number}" for number in range(WIDTH)]
        broken = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": -1}, "DependsOn": last}
        resources["Broken"] = broken
    return {"Resources": resources}


class StackRounds:
    """Kills a server, and looks at its stacks."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.stacks = Stacks(server)

    def run(self, seed: int) -> str:
        """One round: a stack is made, changed and deleted, and the server is killed in each of them."""
        rng = random.Random(seed)
        fails = rng.random() < 0.3
        said = []
        body = json.dumps(template("a", fails=fails))
        arn = self.stacks.client.create_stack(StackName="shop", TemplateBody=body)["StackId"]
        said.append(self._killed(arn, rng))
        if said[-1] == "CREATE_COMPLETE":
            body = json.dumps(template("b", fails=rng.random() < 0.5))
            self.stacks.client.update_stack(StackName="shop", TemplateBody=body)
            said.append(self._killed(arn, rng))
        self.stacks.client.delete_stack(StackName="shop")
        said.append(self._killed(arn, rng))
        return f"seed {seed}: {', '.join(said)}"

    def _killed(self, arn: str, rng: random.Random) -> str:
        """Kill the server when so many events have come; the status that the stack comes to, and that it is true."""
        before = len(self._events(arn))
        after = before + rng.randrange(1, WIDTH * 12)
        for events in self._until(arn):
            if events >= after:
                break
        self._server.kill()
        self._server.start()
        self.stacks = Stacks(self._server)
        for _ in self._until(arn):
            pass
        status: str = self.stacks.client.describe_stacks(StackName=arn)["Stacks"][0]["StackStatus"]
        assert status.endswith("_COMPLETE"), status
        self._check(arn, status)
        return status

    def _until(self, arn: str) -> Iterator[int]:
        """The number of events, again and again until the stack has a final status."""
        end = time.monotonic() + SECONDS_MAX
        while self.stacks.client.describe_stacks(StackName=arn)["Stacks"][0]["StackStatus"].endswith(
            "_IN_PROGRESS"
        ):
            assert time.monotonic() < end, "the stack stays as it is"
            yield len(self._events(arn))

    def _events(self, arn: str) -> list[Any]:
        found = self.stacks.client.get_paginator("describe_stack_events").paginate(StackName=arn)
        return [event for page in found for event in page["StackEvents"]]

    def _check(self, arn: str, status: str) -> None:
        resources = self.stacks.client.get_paginator("list_stack_resources").paginate(StackName=arn)
        there = {
            resource["PhysicalResourceId"].rpartition("/")[2]
            for page in resources
            for resource in page["StackResourceSummaries"]
            if not resource["ResourceStatus"].startswith("DELETE")
        }
        gone = status in ("DELETE_COMPLETE", "ROLLBACK_COMPLETE")
        assert bool(there) != gone, status
        subscriptions = self.stacks.sns.get_paginator("list_subscriptions").paginate()
        found = {one["SubscriptionArn"] for page in subscriptions for one in page["Subscriptions"]}
        topics = self.stacks.sns.get_paginator("list_topics").paginate()
        found |= {topic["TopicArn"] for page in topics for topic in page["Topics"]}
        assert found | self.stacks.queues() == there, (status, found ^ there)


def main() -> int:
    """Run the rounds asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.stacks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="redrive-stacks-") as directory:
        server = new_server(f"sqlite:///{directory}/redrive.db", *FLAGS, directory=Path(directory))
        server.start()
        rounds = StackRounds(server)
        began = time.monotonic()
        try:
            for seed in range(asked.seed, asked.seed + asked.rounds):
                sys.stdout.write(f"{rounds.run(seed)}\n")
                sys.stdout.flush()
        finally:
            server.kill()
        log = server.log.read_text()
        assert "Traceback" not in log, log[-5000:]
        sys.stdout.write(f"{asked.rounds} rounds in {time.monotonic() - began:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
