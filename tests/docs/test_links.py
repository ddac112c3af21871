import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.pages import ROOT, Page, all_pages, anchor_of


@pytest.mark.parametrize("page", [page for page in all_pages() if page.links], ids=str)
def test_links_within_the_repository_lead_somewhere(page: Page) -> None:
    assert not [link for link in page.links if not _leads_somewhere(page, link)]


def _leads_somewhere(page: Page, link: str) -> bool:
    path, _, anchor = unquote(link).partition("#")
    target = (page.path.parent / path).resolve() if path else page.path
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not anchor or anchor in Page.at(target).anchors


def test_a_broken_link_is_noticed() -> None:
    page = Page.at(ROOT / "README.md")
    assert _leads_somewhere(page, "docs/README.md#writing-these-pages")
    assert not _leads_somewhere(page, "docs/README.md#writing-those-pages")
    assert not _leads_somewhere(page, "docs/no-such-page.md")


_LONG_WORDS = 1_800


@pytest.mark.parametrize("path", sorted((ROOT / "docs/reference").glob("*.md")), ids=lambda path: path.stem)
def test_a_long_reference_page_lists_its_sections(path: Path) -> None:
    page = Page.at(path)
    if len(page.text.split()) < _LONG_WORDS or path.stem == "glossary":  # which is an alphabet
        return
    sections = {f"#{anchor_of(heading)}" for heading in re.findall(r"^## (.+)$", page.prose, re.MULTILINE)}
    assert sections <= set(page.links)


def test_the_index_of_how_to_pages_is_whole() -> None:
    index = Page.at(ROOT / "docs/how-to/README.md")
    assert {path.name for path in (ROOT / "docs/how-to").glob("*.md")} - {"README.md"} <= set(index.links)
