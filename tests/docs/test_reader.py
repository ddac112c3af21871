"""The reader notices when a page is wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Page
from tests.docs.reader import Reader


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.close()


def page(text: str) -> Page:
    return Page(ROOT / "page.md", text)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1 + 1)\n```\n\n```text output\n2\n```\n",
        "```python\nx = 20\n```\n```python\nprint(x, 'beside', object())\n```\n```text output\n20 beside …\n```\n",
        "```console run\n$ export A=b\n$ echo $A\nb\n$ printf 'one\\ntwo\\n'\none\n…\n```\n",
        "```json some.json\n{}\n```\n```console run\n$ cd $HOME && cat some.json\n{}\n```\n",
        "```python no-run\nraise SystemExit\n```\n```console\n$ false\n```\n",
        "```console run\n$ redrive --version | cut -d' ' -f1\nredrive\n```\n",
    ],
)
def test_a_page_that_is_right(text: str, reader: Reader) -> None:
    reader.follow(page(text))


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1 + 1)\n```\n\n```text output\n3\n```\n",
        "```python\nprint(1 + 1)\n```\n\n```text output\n```\n",
        "```python\nassert False\n```\n",
        "```console run\n$ false\n```\n",
        "```console run\n$ echo one\ntwo\n```\n",
        "```console run\n$ echo one\n```\n",
        "```console run\n$ redrive config --port none\n…\n```\n",
        "```console serve\n$ redrive serve --clock sundial\n```\n",
        "```console serve\n$ rm -r redrive.db\n```\n",
        "```python maybe\nprint()\n```\n",
    ],
)
def test_a_page_that_is_wrong(text: str, reader: Reader) -> None:
    with pytest.raises((AssertionError, RuntimeError)) as caught:
        reader.follow(page(text))
    assert any("page.md:" in note for note in caught.value.__notes__)
