"""Functions that feed each other without end: they are stopped, and the log says so."""

from tests.contracts.aws.lambda_.test_events import Counting
from tests.contracts.aws.lambda_.workshop import Workshop

_RUNS = 17  # the first, and one for each of 16 rounds


def test_two_functions_that_are_each_others_destination_come_to_an_end(workshop: Workshop) -> None:
    functions = [Counting(workshop) for _ in range(2)]
    for function, other in (functions, functions[::-1]):
        _lead_to(workshop, function, workshop.arn(other.name))
    _run_and_wait(workshop, functions[0])
    assert [len(function.calls) for function in functions] == [9, 8]
    assert (
        f"lambda.loop function=000000000000/us-east-1/{functions[1].name}" in workshop.server.log.read_text()
    )


def test_a_function_whose_destination_is_the_topic_that_invokes_it_comes_to_an_end(
    workshop: Workshop,
) -> None:
    function, topic = Counting(workshop), workshop.sns.topic()
    topic.subscribe("lambda", workshop.arn(function.name))
    _lead_to(workshop, function, topic.arn)
    _run_and_wait(workshop, function)
    assert len(function.calls) == _RUNS


def _lead_to(workshop: Workshop, function: Counting, arn: str) -> None:
    workshop.client.put_function_event_invoke_config(
        FunctionName=function.name, DestinationConfig={"OnSuccess": {"Destination": arn}}
    )


def _run_and_wait(workshop: Workshop, function: Counting) -> None:
    workshop.send(function.name, {})
    for _ in range(2 * _RUNS):
        workshop.server.advance(1)
