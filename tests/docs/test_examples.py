"""Every example runs to its end, and the list of them is whole."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.services.server import Server, serving

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
_LAST_LINES = {
    "event_grid": re.escape("['cars/7', 'cars/8']"),
    "lambda_dead_letters": re.escape("['billed bus', 'billed van']"),
    "simulated_clock": r"""\{'days': 14\}: \{"now":17\d{8}.0,"attempts":0\}""",
    "sns_filters": re.escape("expensive ['bus', 'truck']"),
    "sns_webhook": re.escape("('Notification', 200)"),
    "sqs_dead_letters": re.escape("mended: {'car': 'van'}"),
    "sqs_fair_queues": re.escape(
        "['busy 0', 'quiet 0', 'busy 1', 'quiet 1', 'busy 2', 'quiet 2', 'busy 3', 'busy 4', 'busy 5', 'busy 6']"
    ),
    "sqs_fifo": "and then: ann pays 2",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("sqlite://:memory:", "--clock", "simulated", "--functions", "on") as started:
        yield started


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_twice_in_a_row(example: Path, server: Server) -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "error", str(example)],
            env={"PATH": os.environ["PATH"], "REDRIVE_URL": server.url},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(_LAST_LINES[example.stem], done.stdout.splitlines()[-1])


def test_the_list_of_examples_is_whole() -> None:
    listed = (ROOT / "examples/README.md").read_text()
    assert not [path.name for path in EXAMPLES if f"({path.name})" not in listed]
