"""Functions of a server that lets nobody in without a signature."""

from pathlib import Path

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.aws.sqs.client import REGION
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


def test_urls_let_in_everybody_or_signers_alone(tmp_path: Path) -> None:
    flags = ("--auth", "required", "--insecure-test-keys", "--functions", "on")
    with serving("sqlite://:memory:", *flags, directory=tmp_path) as server:
        workshop = Workshop(server, account="test")
        source = "def handler(event, context):\n    return event['requestContext']['accountId']\n"
        name = workshop.function(source)
        url_id = workshop.opened(name).partition("://")[2].partition(".")[0]
        path = f"/_redrive/function-url/{url_id}/"
        assert server.ask("GET", path) == (200, b"anonymous")
        workshop.client.update_function_url_config(FunctionName=name, AuthType="AWS_IAM")
        assert server.ask("GET", path)[0] == 403
        for secret, expected in (("test", (200, b"000000000000")), ("wrong", (403, None))):
            request = AWSRequest("GET", server.url + path)
            SigV4Auth(Credentials("test", secret), "lambda", REGION).add_auth(request)
            status, body = server.ask("GET", path, headers=dict(request.headers.items()))
            assert (status, body if status == 200 else None) == expected
