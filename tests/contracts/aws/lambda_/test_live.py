"""Functions that run from a folder of the machine: what is changed there counts for the next call."""

from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.aws.lambda_.workshop import ROLE, RUNTIME, Workshop, archive
from tests.contracts.aws.sqs.client import refused
from tests.services.programs import free_port
from tests.services.server import serving

_SOURCE = """
calls = 0

def handler(event, context):
    global calls
    calls += 1
    return ["VERSION", calls]
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("projects")


@pytest.fixture(scope="module")
def live(base: Path) -> Iterator[Workshop]:
    flags = ("--functions", "on", "--functions-live-folder", str(base))
    with serving("sqlite://:memory:", *flags) as server:
        yield Workshop(server)


def _create(workshop: Workshop, name: str, folder: Path, **more: Any) -> Any:
    code = {"S3Bucket": "hot-reload", "S3Key": str(folder)}
    given = {"Runtime": RUNTIME, "Role": ROLE, "Handler": "index.handler", "Timeout": 20, **more}
    return workshop.client.create_function(FunctionName=name, Code=code, **given)


def test_a_change_counts_for_the_next_call_and_no_change_keeps_the_environment(
    live: Workshop, base: Path
) -> None:
    folder = base / "billing"
    folder.mkdir()
    (folder / "index.py").write_text(_SOURCE.replace("VERSION", "first"))
    _create(live, "billing", folder)
    assert [live.call("billing").payload for _ in range(2)] == [["first", 1], ["first", 2]]
    (folder / "index.py").write_text(_SOURCE.replace("VERSION", "second"))
    assert [live.call("billing").payload for _ in range(2)] == [["second", 1], ["second", 2]]
    (folder / "more.py").write_text("")
    assert live.call("billing").payload == ["second", 1]


def test_a_folder_elsewhere_is_no_code(live: Workshop, tmp_path: Path) -> None:
    (tmp_path / "index.py").write_text(_SOURCE)
    with refused("InvalidParameterValueException") as error:
        _create(live, "elsewhere", tmp_path)
    assert "NoSuchBucket" in error["Message"]


def test_an_archive_made_by_hand_leads_nowhere_else(live: Workshop, base: Path, tmp_path: Path) -> None:
    (tmp_path / "index.py").write_text(_SOURCE)
    (base / "link").symlink_to(tmp_path)
    for number, path in enumerate((tmp_path, base / "link", base / ".." / tmp_path.name)):
        live.create(f"forged-{number}", archive({".redrive-live-folder": str(path)}), "index.handler")
        assert live.call(f"forged-{number}").payload["errorType"] == "Runtime.ImportModuleError"


def test_a_debugger_finds_a_function_in_node(live: Workshop, base: Path) -> None:
    folder, port = base / "debugged", free_port()
    folder.mkdir()
    (folder / "index.js").write_text("exports.handler = async (event) => event;")
    variables = {"NODE_OPTIONS": f"--inspect=127.0.0.1:{port}"}
    _create(live, "debugged", folder, Runtime="nodejs20.x", Environment={"Variables": variables})
    assert live.call("debugged", 7).payload == 7
    inspector = HTTPConnection("127.0.0.1", port, timeout=10)
    inspector.request("GET", "/json/version")
    assert b"node.js" in inspector.getresponse().read()
    inspector.close()
