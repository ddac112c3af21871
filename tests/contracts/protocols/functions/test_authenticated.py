"""Functions of a server that lets nobody in without a signature."""

from pathlib import Path

from tests.contracts.protocols.functions.workshop import Workshop
from tests.services.server import serving

_CALLS_BACK = """
import boto3

def handler(event, context):
    return boto3.client("sts").get_caller_identity()["Account"]
"""


def test_a_function_calls_the_server_for_its_account(tmp_path: Path) -> None:
    flags = ("--auth", "required", "--insecure-test-keys", "--functions", "on")
    with serving(f"sqlite:///{tmp_path}/redrive.db", *flags, directory=tmp_path) as server:
        workshop = Workshop(server, account="test")
        workshop.of("sts").get_caller_identity()
        name = workshop.function(_CALLS_BACK, MemorySize=512)
        assert workshop.call(name).payload == "000000000000"
        server.stop()
        server.start()
        assert Workshop(server, account="test").call(name).payload == "000000000000"
        server.kill()
        server.start()
        assert Workshop(server, account="test").call(name).payload == "000000000000"
