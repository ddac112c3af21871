"""The rate of publications through an API, beside that of SNS's own Publish, each to four queues of one server."""

from collections.abc import Iterator

import boto3  # type: ignore[import-untyped]  # boto3 ships no types

from benchmarks.bench import Bench
from benchmarks.figures import Figure, at_least
from benchmarks.load import put_load
from benchmarks.publish import CREDENTIALS, new_topic
from benchmarks.rounds import Runs, compared
from benchmarks.servers import Redrive, redrive

#: The part of the plain rate that is left: parsing, a template, and a second form.
_LEFT_MIN = 0.5


def counters(bench: Bench) -> Iterator[Figure]:
    """One figure for each number of connections; what counts is publications."""
    with redrive(bench) as ours:
        for connections in bench.scale.connections:
            runs: Runs = {"api": [], "sns": []}
            for _ in range(bench.scale.rounds):
                for name, load in (("api", "post"), ("sns", "publish")):
                    topic = new_topic(ours)
                    place = _new_api(ours, topic) if name == "api" else topic
                    run = put_load(ours, load, place, connections, bench.scale.seconds)
                    runs[name].append(run)
            what = f"API, to SNS, to 4 queues, {connections} connections"
            yield compared(what, runs, at_least(_LEFT_MIN))


def _new_api(server: Redrive, topic: str) -> str:
    """The path of a method that publishes to a topic, of an API made now."""
    gateway = boto3.client("apigateway", endpoint_url=server.url, **CREDENTIALS)
    made = gateway.create_rest_api(name="orders")
    resource = gateway.create_resource(
        restApiId=made["id"], parentId=made["rootResourceId"], pathPart="orders"
    )
    at = {"restApiId": made["id"], "resourceId": resource["id"], "httpMethod": "POST"}
    gateway.put_method(**at, authorizationType="NONE")
    gateway.put_method_response(**at, statusCode="200")
    gateway.put_integration(
        **at,
        type="AWS",
        integrationHttpMethod="POST",
        uri="arn:aws:apigateway:us-east-1:sns:path//",
        credentials="arn:aws:iam::000000000000:role/orders",
        requestParameters={"integration.request.header.Content-Type": "'application/x-www-form-urlencoded'"},
        requestTemplates={
            "application/json": f"Action=Publish&TopicArn={topic}&Message=$util.urlEncode($input.body)"
        },
        passthroughBehavior="NEVER",
    )
    gateway.put_integration_response(**at, statusCode="200")
    gateway.create_deployment(restApiId=made["id"], stageName="prod")
    return f"/_aws/execute-api/{made['id']}/prod/orders"
