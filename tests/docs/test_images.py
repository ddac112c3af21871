from pathlib import Path

import pytest

from redrive.cli.main import main
from tests.docs.pages import DOCS


def test_the_picture_of_a_schedule_is_what_the_command_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = tmp_path / "retries.svg"
    assert main(["schedule", "--plan", "managed", "--outage", "4h", "--picture", str(drawn)]) == 0
    assert drawn.read_text() == (DOCS / "images/retries.svg").read_text()
