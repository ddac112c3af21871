"""Functions over the lives of servers: on other nodes, by the command line, and at the end."""

import base64
import os
from pathlib import Path

import orjson
import pytest
from botocore.exceptions import ClientError

from tests.contracts.aws.lambda_.workshop import ROLE, RUNTIME, Workshop, archive
from tests.contracts.aws.sqs.client import refused
from tests.services.clients import cli
from tests.services.postgres import DatabaseMaker
from tests.services.server import new_server, serving

_PROCESS = """
import os

def handler(event, context):
    return os.getpid()
"""


_SHARED = """
import where

def handler(event, context):
    return where.said
"""


def test_a_function_that_one_node_made_runs_on_another(database_maker: DatabaseMaker) -> None:
    with (
        database_maker.database() as url,
        serving(url, "--functions", "on") as first,
        serving(url, "--functions", "on") as second,
    ):
        name = Workshop(first).function()
        assert Workshop(second).call(name, {"car": 1}).payload == {"car": 1}
        assert Workshop(first).call(name, {"car": 2}).payload == {"car": 2}


def test_no_process_outlives_the_server(tmp_path: Path) -> None:
    with serving("sqlite://:memory:", "--functions", "on", directory=tmp_path) as server:
        workshop = Workshop(server)
        process: int = workshop.call(workshop.function(_PROCESS)).payload
        os.kill(process, 0)
        assert server.stop() == 0
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


_SPYING = """
import os

def handler(event, context):
    found = [path for path in [*event["paths"], *environments()] if holds(path, event["secret"].encode())]
    return {"found": found, "seen": os.path.exists(event["folder"])}

def environments():
    return [f"/proc/{process}/{file}" for process in os.listdir("/proc") if process.isdigit()
            for file in ("environ", "cmdline")]

def holds(path, secret):
    try:
        with open(path, "rb") as file:
            return secret in file.read()
    except OSError:
        return False
"""


def test_without_isolation_a_handler_reads_what_the_server_can(tmp_path: Path) -> None:
    """A secret of a file of keys and of the environment, as the page says; what sandboxes keep is in tests/functions."""
    secret = "secret-of-the-server"
    store, keys = tmp_path / "redrive.db", tmp_path / "keys"
    keys.write_text(secret)
    flags = ("--functions", "on", "--functions-isolation", "none", "--clock", "simulated")
    server = new_server(f"sqlite:///{store}", *flags, directory=tmp_path)
    server.environment = {"REDRIVE_METRICS_TOKEN": secret}
    server.cold = True  # its own environment is in /proc
    server.start()
    try:
        workshop = Workshop(server)
        paths = [str(keys), f"/proc/{server.process.pid}/environ"]
        event = {"secret": secret, "paths": paths, "folder": str(tmp_path)}
        told = workshop.call(workshop.function(_SPYING), event).payload
    finally:
        server.kill()
    assert set(paths) <= set(told["found"])


def test_without_the_switch_the_refusal_says_which(tmp_path: Path) -> None:
    with (
        serving("sqlite://:memory:", "--functions", "off", directory=tmp_path) as server,
        pytest.raises(ClientError, match="lambda too if it is started with --functions on"),
    ):
        Workshop(server).function()


def test_the_command_line_invokes_with_the_tail_of_the_log(workshop: Workshop, tmp_path: Path) -> None:
    name = workshop.function()
    answer = tmp_path / "answer.json"
    aws = cli(workshop.server, tmp_path, "lambda")
    said = aws(
        "invoke", "--function-name", name, "--payload", '{"car": 1}', "--log-type", "Tail", str(answer)
    )
    assert orjson.loads(answer.read_bytes()) == {"car": 1}
    assert (said["StatusCode"], said["ExecutedVersion"]) == (200, "$LATEST")
    assert b"REPORT RequestId: " in base64.b64decode(said["LogResult"])


def test_the_command_line_makes_a_function_with_a_layer_and_a_url(workshop: Workshop, tmp_path: Path) -> None:
    aws = cli(workshop.server, tmp_path, "lambda")
    for name, files in (("layer", {"python/where.py": "said = 'shared'"}), ("code", {"index.py": _SHARED})):
        (tmp_path / f"{name}.zip").write_bytes(archive(files))
    layer = aws(
        *("publish-layer-version", "--layer-name", "shared", "--compatible-runtimes", RUNTIME),
        *("--zip-file", f"fileb://{tmp_path}/layer.zip"),
    )
    made = aws(
        *("create-function", "--function-name", "by-command", "--runtime", RUNTIME, "--role", ROLE),
        *("--handler", "index.handler", "--layers", layer["LayerVersionArn"], "--timeout", "20"),
        *("--zip-file", f"fileb://{tmp_path}/code.zip"),
    )
    assert made["Layers"] == [{"Arn": layer["LayerVersionArn"], "CodeSize": layer["Content"]["CodeSize"]}]
    aws("wait", "function-active-v2", "--function-name", "by-command")
    url = aws("create-function-url-config", "--function-name", "by-command", "--auth-type", "AWS_IAM")
    assert ".lambda-url.us-east-1.localhost:" in url["FunctionUrl"]
    assert workshop.call("by-command").payload == "shared"


def test_terraform_s_questions_have_answers(workshop: Workshop) -> None:
    name = workshop.function()
    ask = workshop.client
    assert ask.get_function_code_signing_config(FunctionName=name)["FunctionName"] == name
    assert ask.list_code_signing_configs()["CodeSigningConfigs"] == []
    ask.delete_function_code_signing_config(FunctionName=name)
    assert ask.get_function_recursion_config(FunctionName=name)["RecursiveLoop"] == "Terminate"
    assert (
        ask.put_function_recursion_config(FunctionName=name, RecursiveLoop="Terminate")["RecursiveLoop"]
        == "Terminate"
    )
    assert ask.get_runtime_management_config(FunctionName=name)["UpdateRuntimeOn"] == "Auto"
    written = ask.put_runtime_management_config(FunctionName=name, UpdateRuntimeOn="Auto")
    assert (written["UpdateRuntimeOn"], written["FunctionArn"]) == ("Auto", workshop.arn(name))


def test_settings_that_would_be_ignored_are_refused_by_name(workshop: Workshop) -> None:
    name = workshop.function()
    ask = workshop.client
    with refused(
        "InvalidParameterValueException", "Redrive does not offer the parameter RecursiveLoop Allow."
    ):
        ask.put_function_recursion_config(FunctionName=name, RecursiveLoop="Allow")
    with refused(
        "InvalidParameterValueException", "Redrive does not offer the parameter UpdateRuntimeOn Manual."
    ):
        ask.put_runtime_management_config(FunctionName=name, UpdateRuntimeOn="Manual")
    arn = "arn:aws:lambda:us-east-1:000000000000:code-signing-config:csc-0123456789abcdef0"
    with refused("CodeSigningConfigNotFoundException", status=404):
        ask.put_function_code_signing_config(FunctionName=name, CodeSigningConfigArn=arn)
