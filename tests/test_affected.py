"""The tests that a change can reach: what belongs to it is there, and what does not is left out."""

from tests.affected import Reach
from tests.tidy import ROOT

#: A changed file; a test that it can change; one that it cannot.
_CHANGES = (
    ("src/redrive/cli/demo.py", "tests/cli/test_demo.py", "tests/model/test_retry.py"),
    (
        "src/redrive/aws/s3/objects.py",
        "tests/contracts/aws/s3/test_objects.py",
        "tests/engine/test_publish.py",
    ),
    ("src/redrive/console/templates/stack.html", "tests/console/test_stacks.py", "tests/model/test_retry.py"),
    ("src/redrive/model/retry.py", "tests/model/test_retry_curves.py", "tests/model/test_claiming.py"),
    (
        "tests/contracts/conftest.py",
        "tests/contracts/aws/sqs/test_batches.py",
        "tests/console/test_stacks.py",
    ),
    ("tests/fuzz/world.py", "tests/fuzz/test_sqs_fuzz.py", "tests/contracts/aws/sqs/test_batches.py"),
    ("examples/sqs_fifo.py", "tests/docs/test_examples.py", "tests/model/test_retry.py"),
)


def test_a_change_reaches_the_tests_that_use_it_and_no_others() -> None:
    """One test of all cases: workers that take over some of them would each build the graph, 5 s of a processor."""
    reach = Reach()
    for path, reached, left_out in _CHANGES:
        tests = reach.tests([path])
        assert any(reached == test or reached.startswith(f"{test}/") for test in tests), path
        assert left_out not in tests, path
    assert reach.tests(["src/redrive/model/retry.py", "pyproject.toml"]) == [
        "tests"
    ]  # a list of dependencies
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert files <= reach.files
