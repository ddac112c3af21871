import os
import re
import signal
import subprocess
import sys
import urllib.request
from urllib.error import URLError

import pytest

from tests.services.server import PROGRAM


def test_the_demo_ends_as_it_says_in_a_few_seconds_wherever_it_is_told() -> None:
    # Nothing of it is lost on a narrow screen, nor where a server's own settings are in the environment.
    surroundings = {"COLUMNS": "50", "REDRIVE_AUTH": "required", "REDRIVE_HOST": "0.0.0.0"}
    told = PROGRAM.run(["demo"], {**os.environ, **surroundings}, timeout=60)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "Nothing was lost." in told.stdout
    assert "✘" not in told.stdout
    assert "…" not in told.stdout
    assert "\n                   │     └─ unreachable ────────► Rental-Fulfilment-Fanout-DLQ\n" in told.stdout
    assert "└─ unreachable ────────► Rental-Billing-Fanout-DLQ ● 1\n" in told.stdout


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_that_stays_shows_its_dead_orders_until_somebody_ends_it(ended_by: signal.Signals) -> None:
    command = [sys.executable, "-m", "redrive.cli.main", "demo", "--stay", "--orders", "20"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    url = ""
    while not url.startswith("http"):
        url = demo.stdout.readline().strip()
        assert demo.poll() is None, demo.communicate()
    with urllib.request.urlopen(url, timeout=30) as answer:
        page = answer.read().decode()
    numbers = re.findall(r'<td class="num end">(\d+)</td><td data-label="From"', page)
    assert (numbers, "server_error" in page) == (["18", "12", "2"], True)
    demo.send_signal(ended_by)
    _, complaints = demo.communicate(timeout=60)
    assert (demo.returncode, complaints) == (0, "")
    with pytest.raises(URLError, match="refused"):
        urllib.request.urlopen(url, timeout=30)
