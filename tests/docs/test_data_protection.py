"""The page about data protection: its identifiers are the server's, and its policy is taken."""

import re
from pathlib import Path

from redrive.aws.sns.protection.identifiers import managed
from redrive.aws.sns.protection.identifiers.custom import SIZE_MAX, custom_finder
from redrive.aws.sns.protection.reader import read_protection_policy

_PAGE = (Path(__file__).parents[2] / "docs/reference/sns-data-protection.md").read_text()


def test_each_identifier_has_a_row_and_each_row_is_one() -> None:
    table = _PAGE.split("## Managed data identifiers")[1].split("## Custom")[0]
    shown = {"PhoneNumber"}
    for line in table.splitlines():
        if line.startswith("| `"):
            _, names, countries, _, _, _ = line.split("|")
            for name in re.findall("`(.+?)`", names):
                shown |= {f"{name}-{country}" for country in countries.split()} or {name}
    assert shown == managed.NAMES | managed.WITHOUT_PATTERN


def test_the_policy_shown_is_taken() -> None:
    text = re.search(r"```json\n(\{\n  \"Name\".+?\n\})\n```", _PAGE, re.DOTALL)
    assert text is not None
    assert len(read_protection_policy(text[1]).statements) == 2


def test_the_size_shown_is_held() -> None:
    assert f"compile to at most {SIZE_MAX} instructions" in " ".join(_PAGE.split())
    assert 200 <= custom_finder("x", "[A-Z]{200}").pattern.programsize < 210
