"""Routes of LocalStack's that tests of applications ask for."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from tests.contracts.aws.sns.client import OTHER, Sns, Webhook
from tests.services.server import Server, serving

_TEXTS = "/_aws/sns/sms-messages"
_RESET = "/_localstack/state/reset"
_SCRIPT = """\
import boto3
sqs = boto3.client("sqs")
sqs.send_message(QueueUrl=sqs.create_queue(QueueName="from-a-script")["QueueUrl"], MessageBody="ready")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("init")
    (folder / "ready.d").mkdir()
    (folder / "ready.d" / "queues.py").write_text(_SCRIPT)
    flags = (
        "--clock",
        "simulated",
        "--allow-reset",
        "--sms-gateway",
        "memory",
        "--init-scripts",
        str(folder),
        "--functions",
        "on",
    )
    with serving("sqlite://:memory:", *flags) as server:
        yield server


def _get(server: Server, path: str, method: str = "GET") -> tuple[int, Any]:
    status, body = server.ask(method, path)
    return status, orjson.loads(body) if body else None


def test_scripts_fill_the_server_and_are_listed(server: Server) -> None:
    sqs = Sns(server, account="000000000000", region="us-east-1").sqs.client
    url = sqs.create_queue(QueueName="from-a-script")["QueueUrl"]  # also before the script does it
    (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    assert message["Body"] == "ready"
    status, document = _get(server, "/_localstack/init")
    assert (status, [script["name"] for script in document["scripts"]]) == (200, ["queues.py"])
    assert _get(server, "/_localstack/init/boot") == (200, {"completed": True, "scripts": []})
    assert _get(server, "/_localstack/init/never")[0] == 404


def test_texts_are_kept_by_number_until_they_are_deleted(server: Server) -> None:
    sns = Sns(server, account=OTHER)
    where = f"?accountId={sns.account}&region={sns.region}"
    ids = {
        number: sns.client.publish(PhoneNumber=number, Message=f"to {number}")["MessageId"]
        for number in ("+4930123456", "+4930654321")
    }
    server.advance(1)
    status, document = _get(server, _TEXTS + where)
    assert status == 200
    assert document["region"] == sns.region
    assert document["sms_messages"] == {
        number: [{"PhoneNumber": number, "MessageId": ids[number], "Message": f"to {number}"}]
        for number in ids
    }
    one = f"{where}&phoneNumber={quote('+4930123456')}"
    assert list(_get(server, _TEXTS + one)[1]["sms_messages"]) == ["+4930123456"]
    assert _get(server, _TEXTS + one, "DELETE") == (204, None)
    assert list(_get(server, _TEXTS + where)[1]["sms_messages"]) == ["+4930654321"]
    assert _get(server, _TEXTS)[1]["sms_messages"] == {}


def test_the_token_of_an_endpoint_that_cannot_confirm_is_shown(server: Server) -> None:
    sns = Sns(server)
    topic = sns.topic()
    with Webhook().serving() as webhook:
        arn = topic.subscribe("http", webhook.url)
    status, document = _get(server, f"/_aws/sns/subscription-tokens/{arn}")
    assert (status, document["subscription_arn"]) == (200, arn)
    sns.client.confirm_subscription(TopicArn=topic.arn, Token=document["subscription_token"])
    attributes = sns.client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    assert attributes["PendingConfirmation"] == "false"
    assert _get(server, f"/_aws/sns/subscription-tokens/{arn}x")[0] == 404


def test_runtimes_are_those_that_functions_can_have(server: Server) -> None:
    supported = _get(server, "/_aws/lambda/runtimes")[1]["Runtimes"]
    ended = _get(server, "/_aws/lambda/runtimes?filter=deprecated")[1]["Runtimes"]
    assert ("python3.12" in supported, "go1.x" in supported) == (
        True,
        False,
    )  # go1.x is AWS's, and not run here
    assert ("python3.7" in ended, "python3.12" in ended) == (True, False)
    assert sorted(_get(server, "/_aws/lambda/runtimes?filter=all")[1]["Runtimes"]) == sorted(
        supported + ended
    )


def test_other_routes_are_refused_by_name(server: Server) -> None:
    for path in (
        "/_localstack/diagnose",
        "/_aws/sns/platform-endpoint-messages",
        "/_localstack/state/sqs/reset",
    ):
        status, document = _get(server, path)
        assert status == 404
        assert document["message"].startswith(f"no route GET {path}; of LocalStack's own routes Redrive has ")


def test_a_reset_removes_everything(server: Server) -> None:
    sns = Sns(server)
    sns.topic()
    sns.client.publish(PhoneNumber="+4930123456", Message="late")
    server.advance(1)
    assert _get(server, _RESET, "POST") == (200, {"status": "ok"})
    assert sns.client.list_topics()["Topics"] == []
    assert _get(server, f"{_TEXTS}?accountId={sns.account}&region={sns.region}")[1]["sms_messages"] == {}


def test_only_a_server_for_tests_resets_and_shows_tokens() -> None:
    with serving("sqlite://:memory:") as server:
        status, document = _get(server, _RESET, "POST")
        assert (status, "--allow-reset" in document["message"]) == (404, True)
        for path in ("/_aws/sns/subscription-tokens/arn:aws:sns:us-east-1:000000000000:a:b", _TEXTS):
            assert _get(server, path)[0] == 404
        assert _get(server, "/_localstack/init")[1]["scripts"] == []
