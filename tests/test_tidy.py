"""Applies the house rules of `tidy.py` to every file, and shows that each rule can fail."""

from collections import Counter
from pathlib import Path, PurePosixPath

import pytest

from tests import tidy
from tests.tidy import RULES, Rule, Source

_DOCSTRING = '"""A module about settling."""\n'


def test_the_house_keeps_its_rules() -> None:
    """One test of all rules, which look at a file before the next is read: the trees of all files take 370 MB.

    `found` and `wanted` as names say that something was done; a noun says what it is. Lower a package's number of them
    when you rename some.
    """
    complaints: dict[Rule, list[str]] = {}
    uses = Counter[str]()
    for source in tidy.all_sources(tidy.ROOT):
        for rule in RULES:
            if found := list(rule(source)):
                complaints.setdefault(rule, []).extend(found)
        if source.is_python("src/redrive"):
            uses[source.path.parts[2].removesuffix(".py")] += tidy.participles(source)
    assert not complaints, "\n".join(
        "\n".join([rule.__doc__ or "", *complaints[rule]]) for rule in complaints
    )
    too_many = {package for package, count in uses.items() if count > tidy.PARTICIPLES_MAX.get(package, 0)}
    assert not too_many, uses


def test_participles_are_counted_as_arguments_variables_and_functions() -> None:
    source = Source(
        PurePosixPath("src/a.py"), "def _found(wanted):\n    given = wanted.found\n    return result\n"
    )
    assert tidy.participles(source) == 4


_CORE = "src/redrive/engine/receive/settler.py"
_LONG_PROSE = "    And so on.\n" * tidy.FUNCTION_LINES_MAX
_LONG_BODY = "    pass\n" * tidy.FUNCTION_LINES_MAX


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (tidy.time_and_randomness_come_in_by_the_front_door, _CORE, "import time\nnow = time.time()"),
        (tidy.time_and_randomness_come_in_by_the_front_door, _CORE, "import time as t\nread = t.monotonic"),
        (tidy.time_and_randomness_come_in_by_the_front_door, _CORE, "from asyncio import sleep\nsleep(1)"),
        (
            tidy.time_and_randomness_come_in_by_the_front_door,
            _CORE,
            "import datetime\ndatetime.datetime.now()",
        ),
        (
            tidy.time_and_randomness_come_in_by_the_front_door,
            _CORE,
            "from datetime import datetime as d\nd.now(UTC)",
        ),
        (tidy.time_and_randomness_come_in_by_the_front_door, _CORE, "import random\nrandom.random()"),
        (tidy.time_and_randomness_come_in_by_the_front_door, _CORE, "import random\nrandom.Random()"),
        (
            tidy.time_and_randomness_come_in_by_the_front_door,
            _CORE,
            "from uuid import uuid4\nfield(default_factory=uuid4)",
        ),
        (tidy.time_and_randomness_come_in_by_the_front_door, _CORE, "import secrets\nsecrets.token_hex(8)"),
        (tidy.the_loops_time_stays_in_the_server, _CORE, "asyncio.get_running_loop().time()"),
        (tidy.the_loops_time_stays_in_the_server, _CORE, "self._loop.time()"),
        (tidy.tests_wait_for_signals, "tests/test_settle.py", "import time\ntime.sleep(0.1)"),
        (tidy.functions_fit_on_a_screen, _CORE, f"async def settle():\n{_LONG_BODY}"),
        (tidy.files_are_rooms, _CORE, "settled = 1\n" * (tidy.FILE_LINES_MAX + 1)),
        (tidy.names_say_what_they_hold, "src/redrive/engine/utils.py", ""),
        (tidy.names_say_what_they_hold, "src/redrive/common/settle.py", ""),
        (tidy.names_say_what_they_hold, _CORE, "class DeliveryManager: ..."),
        (tidy.names_say_what_they_hold, _CORE, "class PublishHandler: ..."),
        (
            tidy.public_methods_of_services_have_docstrings,
            "src/redrive/aws/sqs/queues.py",
            "class Queues:\n    def named(self, call): ...",
        ),
        (
            tidy.docstrings_say_more_than_the_signature,
            _CORE,
            'class A:\n    def __init__(self):\n        """Do it here."""',
        ),
        (tidy.docstrings_say_more_than_the_signature, _CORE, 'def f():\n    """https://example.com/f"""'),
        (tidy.docstrings_begin_with_a_noun_or_a_verb, _CORE, '"""What settles."""'),
        (tidy.docstrings_begin_with_a_noun_or_a_verb, _CORE, 'def f():\n    """Whether it does."""'),
        (tidy.docstrings_begin_with_a_noun_or_a_verb, "tests/test_settle.py", '"""What settles."""'),
        (tidy.loops_name_their_elements, _CORE, "for one in ():\n    pass"),
        (tidy.loops_name_their_elements, _CORE, "settled = [one for one in ()]"),
        (tidy.tests_names_state_the_case, "tests/test_settle.py", "def test_what_was_settled(): ..."),
        (
            tidy.tests_names_state_the_case,
            "tests/test_settle.py",
            "class TestSettle:\n    async def test_it(self): ...",
        ),
        (tidy.errors_say_what_was_wrong, _CORE, "# ValueError: It is none."),
        (tidy.classes_stand_in_the_glossary, _CORE, "class NeverHeardOf: ..."),
        (tidy.modules_introduce_themselves, _CORE, "settled = 1"),
        (tidy.modules_introduce_themselves, _CORE, '"""."""'),
        (tidy.the_core_needs_only_python, _CORE, "import orjson"),
        (tidy.nothing_is_left_over, "docs/README.md", "TO" + "DO: write"),
        (tidy.nothing_is_left_over, "Makefile", "cd /ro" + "ot/redrive"),
        (tidy.nothing_is_left_over, "Makefile", "https://py" + "pi.org/simple"),
        (tidy.suppressions_give_a_reason, _CORE, "import os  # noqa: F401"),
        (tidy.suppressions_give_a_reason, _CORE, "settle(1)  # type: ignore[arg-type]  # noqa: S101, S102"),
        (tidy.decisions_are_in_the_index, "docs/decisions/9999-forgotten.md", ""),
    ],
)
def test_a_rule_bites(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(PurePosixPath(path), text)))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/redrive/runtime/machine.py", "import time\nnow = time.time_ns()"),
        ("src/redrive/server/connection.py", "deadline = self._loop.time() + 5"),
        (_CORE, "import random\ndef settle(rng: random.Random): ...\nsettle(random.Random(7))"),
        (
            _CORE,
            "import redrive.model.delivery\nfrom datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)",
        ),
        ("src/redrive/server/app.py", "class Handler: ..."),
        (_CORE, "settle(1)  # type: ignore[arg-type]  # the stub says str, the library takes both"),
        (_CORE, f'def settle():\n    """Settles.\n{_LONG_PROSE}    """\n'),
        ("tests/test_settle.py", "import asyncio\nasyncio.sleep(0)"),
        ("tests/test_settle.py", "def test_itemised_settlements_state_what_they_settle(): ..."),
        ("docs/README.md", "See https://example.com/home and ~/work/."),
    ],
)
def test_the_rules_spare_what_is_right(path: str, text: str) -> None:
    source = Source(PurePosixPath(path), _DOCSTRING + text if path.endswith(".py") else text)
    assert [complaint for rule in RULES for complaint in rule(source)] == []


def test_no_excuse_outlives_its_file() -> None:
    assert tidy.LONG_FILES.keys() <= {str(source.path) for source in tidy.all_sources(tidy.ROOT)}


def test_every_text_file_is_looked_at(tmp_path: Path) -> None:
    for path in (
        "src/a.py",
        ".ci/run",
        "Makefile",
        ".venv/lib/b.py",
        "src/a.egg-info/c",
        "src/__pycache__/d",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    (tmp_path / "picture.png").write_bytes(b"\0")
    assert [str(source.path) for source in tidy.all_sources(tmp_path)] == [".ci/run", "Makefile", "src/a.py"]
