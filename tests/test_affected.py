"""The tests that a change can reach: what belongs to it is there, and what does not is left out."""

from functools import cache

import pytest

from tests.affected import Reach
from tests.tidy import ROOT


@cache  # 5 s of a processor; a fixture is made anew wherever a worker takes one of these tests over
def graph() -> Reach:
    return Reach()


@pytest.mark.parametrize(
    ("path", "reached", "left_out"),
    [
        ("src/redrive/cli/demo.py", "tests/cli/test_demo.py", "tests/model/test_retry.py"),
        (
            "src/redrive/aws/s3/objects.py",
            "tests/contracts/aws/s3/test_objects.py",
            "tests/engine/test_publish.py",
        ),
        (
            "src/redrive/console/templates/stack.html",
            "tests/console/test_stacks.py",
            "tests/model/test_retry.py",
        ),
        ("src/redrive/model/retry.py", "tests/model/test_retry_curves.py", "tests/model/test_claiming.py"),
        (
            "tests/contracts/conftest.py",
            "tests/contracts/aws/sqs/test_batches.py",
            "tests/console/test_stacks.py",
        ),
        ("tests/fuzz/world.py", "tests/fuzz/test_sqs_fuzz.py", "tests/contracts/aws/sqs/test_batches.py"),
        ("examples/sqs_fifo.py", "tests/docs/test_examples.py", "tests/model/test_retry.py"),
    ],
)
def test_a_change_reaches_what_uses_it(path: str, reached: str, left_out: str) -> None:
    tests = graph().tests([path])
    assert any(reached == test or reached.startswith(f"{test}/") for test in tests)
    assert left_out not in tests


def test_a_list_of_dependencies_reaches_every_test() -> None:
    assert graph().tests(["src/redrive/model/retry.py", "pyproject.toml"]) == ["tests"]


def test_every_test_file_is_in_the_graph() -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert files <= graph().files
