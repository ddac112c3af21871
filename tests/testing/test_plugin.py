import boto3
import pytest

from redrive.testing import RedriveClock, RedriveServer

pytest_plugins = ["redrive.testing.plugin", "pytester"]


def test_a_server_of_its_own_with_a_clock_to_be_moved(
    redrive_server: RedriveServer, redrive_clock: RedriveClock
) -> None:
    sqs = boto3.client("sqs", **redrive_server.connection)
    queue = sqs.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "30"})["QueueUrl"]
    assert queue.startswith(f"{redrive_server.url}/")
    sqs.send_message(QueueUrl=queue, MessageBody="one car", DelaySeconds=900)
    began = redrive_clock.now()
    for seconds, number in ((0, 0), (900, 1), (29, 0), (1, 1)):
        redrive_clock.advance(seconds)
        received = sqs.receive_message(QueueUrl=queue)
        assert len(received.get("Messages", [])) == number
    assert redrive_clock.now() == began + 930
    sqs.close()


def test_each_test_begins_with_nothing(redrive_server: RedriveServer) -> None:
    sqs = boto3.client("sqs", **redrive_server.connection)
    assert "QueueUrls" not in sqs.list_queues()
    sqs.create_queue(QueueName="left-behind")
    redrive_server.reset()
    assert "QueueUrls" not in sqs.list_queues()
    sqs.close()


def test_an_endpoint_is_made_to_fail_and_retried_on_the_servers_time(redrive_server: RedriveServer) -> None:
    sns, sqs = (boto3.client(service, **redrive_server.connection) for service in ("sns", "sqs"))
    topic = sns.create_topic(Name="orders")["TopicArn"]
    queue = sqs.create_queue(QueueName="billing")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    redrive_server.fail(arn, 503)
    sns.publish(TopicArn=topic, Message="one car")
    assert redrive_server.clock.advance(5) > 1
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    redrive_server.fail(arn, None)
    assert redrive_server.clock.advance(60) >= 1
    assert len(sqs.receive_message(QueueUrl=queue)["Messages"]) == 1
    for client in (sns, sqs):
        client.close()


def test_the_server_is_stopped_with_the_run(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["redrive.testing.plugin"]')
    pytester.makepyfile(
        """
        import pathlib

        def test_one(redrive_server):
            pathlib.Path("url").write_text(redrive_server.url)

        def test_another_has_the_same(redrive_server, redrive_clock):
            assert pathlib.Path("url").read_text() == redrive_server.url
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio")
    result.assert_outcomes(passed=2)
    result.stderr.no_fnmatch_line("*")


def test_a_server_that_cannot_start_raises_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRIVE_TLS", "perhaps")
    with pytest.raises(RuntimeError, match="the server did not start"):
        RedriveServer.start()
