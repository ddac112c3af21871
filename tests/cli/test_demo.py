import os
import subprocess
import sys


def test_the_demo_ends_as_it_says_in_a_few_seconds() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "redrive.cli.main", "demo"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "COLUMNS": "50"},  # nothing of it is lost on a narrow screen
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "Nothing was lost." in told.stdout
    assert "✘" not in told.stdout
    assert "…" not in told.stdout
    assert "\n                   │     └─ unreachable ────────► Rental-Fulfilment-Fanout-DLQ\n" in told.stdout
