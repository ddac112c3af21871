"""The example of the rental cars, as its page has it: packed, deployed, loaded, and failing."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.aws.cloudformation.stacks import ACCOUNT, Stacks
from tests.docs.pages import ROOT
from tests.services.clients import AWS
from tests.services.server import Server, serving

EXAMPLE = ROOT / "examples/rental-car"
DEMO = ROOT / "src/redrive/cli/rental_car"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    flags = ("--clock", "simulated", "--functions", "on", "--allow-reset")
    with serving("sqlite://:memory:", *flags) as started:
        yield started


def run(server: Server, folder: Path, *command: str) -> str:
    """The last line that a command of the page prints, in the environment that the page sets."""
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": server.url,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": ACCOUNT,
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    done = subprocess.run(
        command, check=False, env=environment, cwd=folder, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip().rpartition("\n")[2]


def test_the_page_can_be_followed(server: Server, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "rental-car"))
    stacks = Stacks(server)
    stacks.of("s3").create_bucket(Bucket="deployments")
    packed = ("--s3-bucket", "deployments", "--output-template-file", "packaged.yaml")
    run(
        server, folder, *AWS.command, "cloudformation", "package", "--template-file", "template.yaml", *packed
    )
    # `deploy` would do no more, and sleep for half a minute.
    made = stacks.client.create_stack(
        StackName="rental",
        TemplateBody=(folder / "packaged.yaml").read_text(),
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    stack = stacks.ended(made["StackId"])
    assert stack["StackStatus"] == "CREATE_COMPLETE"

    assert run(server, folder, sys.executable, "load.py", "20") == "20 orders answered 200"
    server.advance(1)
    fulfilment = (sys.executable, "fulfilment.py", "--wait", "0")  # simulated time passes for nobody's sake
    assert run(server, folder, *fulfilment) == "16 orders fulfilled, 0 attempts failed"
    logs = stacks.of("logs")
    billed = logs.filter_log_events(logGroupName="/aws/lambda/Rental-Billing", filterPattern="billed")
    assert len(billed["events"]) == 20

    run(server, folder, sys.executable, "load.py", "2", "--car", "unicycle")
    server.advance(181)
    assert run(server, folder, *fulfilment) == "0 orders fulfilled, 6 attempts failed"
    for queue in ("Rental-Fulfilment-DLQ", "Rental-Billing-DLQ"):
        url = f"{server.url}/{ACCOUNT}/{queue}"
        letters = stacks.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        assert sorted(re.findall(r"order-\d", "".join(letter["Body"] for letter in letters))) == [
            "order-0",
            "order-1",
        ]
    stacks.delete(stack)
    assert (stacks.queues(), stacks.topics()) == (set(), set())


@pytest.mark.parametrize("name", ["template.yaml", "billing.py"])
def test_the_demo_has_the_same_file(name: str) -> None:
    """No link: who copies the example's folder, or gets it in an archive, has the file."""
    (example,) = EXAMPLE.rglob(name)
    assert not example.is_symlink()
    assert (DEMO / name).read_bytes() == example.read_bytes()
