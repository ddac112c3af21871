import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.docs.pages import Page, all_pages
from tests.docs.reader import Reader

_DEFAULT_ADDRESS = "127.0.0.1:4566"
_AWS_COMMAND = re.compile(r"(?:^|[ (|])aws +(?=[a-z-])(.+)$", re.MULTILINE)
_POSTGRES = "postgresql://redrive@db.example/redrive"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory, and so one store, for all pages that this process follows: readers go from one to the next."""
    return tmp_path_factory.mktemp("reader")


@pytest.mark.parametrize("page", [page for page in all_pages() if page.fences], ids=str)
def test_a_page_can_be_followed_and_again_on_what_it_left(
    page: Page, directory: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(directory)
    stand_ins = {}
    if _POSTGRES in page.text:
        stand_ins[_POSTGRES] = request.getfixturevalue("postgres_database")
    for _ in range(2 if _DEFAULT_ADDRESS in page.text else 1):  # what asks no server leaves no store
        reader = Reader(directory, dict(stand_ins))
        try:
            reader.follow(page)
        finally:
            reader.close()


def test_every_page_uses_names_of_its_own() -> None:
    """So that a page works on a store where another was followed before."""
    pages = defaultdict(set)
    for page in all_pages():
        for fence in page.fences:
            if fence.language == "python" and not fence.mark:
                for name in re.findall(r'\b(?:Queue|create_topic\()Name="([^"]+)"', fence.text):
                    pages[name].add(str(page))
    assert {"orders", "returns", "billing-dead"} <= pages.keys()
    assert not {name: sorted(users) for name, users in pages.items() if len(users) > 1}


@pytest.mark.parametrize("page", [page for page in all_pages() if page.fences], ids=str)
def test_no_command_of_the_aws_cli_can_reach_the_real_aws(page: Page) -> None:
    """Version 1 ignores `AWS_ENDPOINT_URL` for SQS, and a command may be pasted without the line that exports it."""
    commands = [command for fence in page.fences for command in _AWS_COMMAND.findall(fence.text)]
    assert not [command for command in commands if not command.startswith("--endpoint-url http")]
