from pathlib import Path

import pytest

from tests.docs.pages import Page, all_pages
from tests.docs.reader import Reader

_POSTGRES = "postgresql://redrive@db.example/redrive"


@pytest.mark.parametrize("page", [page for page in all_pages() if page.fences], ids=str)
def test_a_page_can_be_followed(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path)
    if _POSTGRES in page.text:
        reader.stand_ins[_POSTGRES] = request.getfixturevalue("postgres_database")
    try:
        reader.follow(page)
    finally:
        reader.close()
