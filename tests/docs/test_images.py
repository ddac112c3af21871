from pathlib import Path

import pytest

from redrive.cli.main import main
from tests.browser.pictures import PICTURES, Picture
from tests.docs.pages import DOCS


def test_the_picture_of_a_schedule_is_what_the_command_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = tmp_path / "retries.svg"
    assert main(["schedule", "--plan", "managed", "--outage", "4h", "--picture", str(drawn)]) == 0
    assert drawn.read_text() == (DOCS / "images/retries.svg").read_text()


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_of_the_console_is_small_and_shown(picture: Picture) -> None:
    name = f"{picture.name}.png"
    assert 10_000 < (DOCS / "images" / name).stat().st_size < 150_000
    assert f"../images/{name}" in (DOCS / "how-to/console.md").read_text()
