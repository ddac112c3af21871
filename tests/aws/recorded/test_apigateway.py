"""API Gateway's recorded answers."""

from collections.abc import Awaitable, Callable
from typing import Final

import orjson
import pytest

from tests.aws.iam.stage import Stage, on_stage

Play = Callable[[Stage, str, str], Awaitable[None]]
_INTEGRATION: Final = "x-amazon-apigateway-integration"


def played(play: Play) -> None:
    """Play with an API and a resource of it."""

    async def prepared(stage: Stage) -> None:
        api = await stage.call(stage.root, "apigateway", "CreateRestApi", name="Rental")
        resource = await stage.call(
            stage.root,
            "apigateway",
            "CreateResource",
            restApiId=api["id"],
            parentId=api["rootResourceId"],
            pathPart="cars",
        )
        await play(stage, api["id"], resource["id"])

    on_stage(prepared, auth="off")


@pytest.mark.parametrize(
    ("op", "path", "value", "text"),
    [
        (
            "remove",
            "/pathPart",
            None,
            "Invalid patch path  '/pathPart' specified for op 'remove'. Please choose supported operations",
        ),
        (
            "add",
            "/pathPart",
            "b",
            "Invalid patch path  '/pathPart' specified for op 'add'. Please choose supported operations",
        ),
        (
            "replace",
            "/invalid",
            "b",
            "Invalid patch path  '/invalid' specified for op 'replace'. Must be one of: [/parentId, /pathPart]",
        ),
        ("replace", "/parentId", "unknown", "Invalid Resource identifier specified"),
    ],
)
def test_a_resource_is_moved_and_renamed_alone(op: str, path: str, value: str | None, text: str) -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        operation = {"op": op, "path": path, **({} if value is None else {"value": value})}
        params = {"restApiId": api, "resourceId": resource, "patchOperations": [operation]}
        refusal = await stage.refusal(stage.root, "apigateway", "UpdateResource", **params)
        assert refusal.partition(": ")[2] == text

    played(play)


def test_a_resource_is_not_below_itself() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        operation = {"op": "replace", "path": "/parentId", "value": resource}
        params = {"restApiId": api, "resourceId": resource, "patchOperations": [operation]}
        refusal = await stage.refusal(stage.root, "apigateway", "UpdateResource", **params)
        assert refusal == "BadRequestException: Resources cannot be cyclical."

    played(play)


def test_a_definition_whose_mappings_are_no_texts_is_refused() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        integration = {"type": "MOCK", "requestParameters": {"integration.request.header.x": True}}
        paths = {"/cars": {"get": {"responses": {}, _INTEGRATION: integration}}}
        document = {"swagger": "2.0", "info": {"title": "Rental"}, "paths": paths}
        body = orjson.dumps(document)
        refusal = await stage.refusal(stage.root, "apigateway", "ImportRestApi", body=body)
        assert refusal == "BadRequestException: Invalid OpenAPI input."

    played(play)
