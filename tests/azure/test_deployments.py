"""Deployments of ARM templates: in memory, through the resource manager's own routes."""

import tempfile
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson
import pytest

from redrive.azure.arm.template_language import TemplateBudget, TemplateError, TemplateEvaluator
from redrive.model.http import Request, Response
from tests.aws.stage import Stage, on_stage

SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"
GROUP: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"
DEPLOYMENTS: Final = f"{GROUP}/providers/Microsoft.Resources/deployments"
TOPICS: Final = f"{GROUP}/providers/Microsoft.EventGrid/topics"
STORAGE: Final = f"{GROUP}/providers/Microsoft.Storage/storageAccounts"
QUEUE: Final = "arn:aws:sqs:us-east-1:000000000000:orders"
Answers = Callable[..., Awaitable[tuple[int, Any]]]

#: What Event Grid is deployed as: a topic, an account with a container for dead letters, and who subscribes.
SHOP: Final[dict[str, Any]] = {
    "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
    "contentVersion": "1.0.0.0",
    "parameters": {
        "prefix": {"type": "string", "defaultValue": "shop", "minLength": 3},
        "regions": {"type": "array", "defaultValue": ["north", "south"]},
        "secret": {"type": "securestring", "defaultValue": "s3cret"},
    },
    "variables": {
        "south": "[concat(parameters('prefix'), '-south')]",
        "account": "[concat(parameters('prefix'), 'letters')]",
        "types": {
            "copy": [{"name": "all", "count": 2, "input": "[concat('Order.', string(copyIndex('all', 1)))]"}]
        },
    },
    "resources": [
        {
            "type": "Microsoft.EventGrid/eventSubscriptions",
            "apiVersion": "2022-06-15",
            "name": "billing",
            "scope": "[format('Microsoft.EventGrid/topics/{0}', concat(parameters('prefix'), '-north'))]",
            "dependsOn": [
                "topics",
                "[resourceId('Microsoft.Storage/storageAccounts', variables('account'))]",
                "dead",
            ],
            "properties": {
                "destination": {
                    "endpointType": "WebHook",
                    "properties": {"endpointUrl": "[variables('hook')]"},
                },
                "filter": {"includedEventTypes": "[variables('types').all]"},
                "deadLetterDestination": {
                    "endpointType": "StorageBlob",
                    "properties": {
                        "resourceId": "[resourceId('Microsoft.Storage/storageAccounts', variables('account'))]",
                        "blobContainerName": "dead",
                    },
                },
            },
        },
        {
            "type": "Microsoft.EventGrid/topics",
            "apiVersion": "2022-06-15",
            "name": "[concat(parameters('prefix'), '-', parameters('regions')[copyIndex()])]",
            "location": "[resourceGroup().location]",
            "copy": {"name": "topics", "count": "[length(parameters('regions'))]"},
            "tags": {"number": "[string(copyIndex(1))]"},
        },
        {
            "type": "Microsoft.Storage/storageAccounts",
            "apiVersion": "2023-05-01",
            "name": "[variables('account')]",
            "location": "local",
            "sku": {"name": "Standard_LRS"},
            "kind": "StorageV2",
            "resources": [
                {
                    "type": "blobServices/containers",
                    "apiVersion": "2023-05-01",
                    "name": "default/dead",
                    "dependsOn": ["[resourceId('Microsoft.Storage/storageAccounts', variables('account'))]"],
                }
            ],
        },
    ],
    "outputs": {
        "endpoint": {
            "type": "string",
            "value": "[reference(resourceId('Microsoft.EventGrid/topics', variables('south'))).endpoint]",
        },
        "key": {
            "type": "bool",
            "value": "[not(empty(listKeys(resourceId('Microsoft.EventGrid/topics', 'shop-north'), '1').key1))]",
        },
    },
}


def played(play: Callable[[Answers], Awaitable[None]]) -> None:
    """Play with somebody who asks the resource manager."""

    async def prepared(stage: Stage) -> None:
        async def ask(method: str, path: str, document: Any = None) -> tuple[int, Any]:
            body = b"" if document is None else orjson.dumps(document)
            headers = {"host": "localhost:4566", "content-type": "application/json"}
            answer: Response = await stage.send(
                Request(method, path, "api-version=2024-03-01", headers, body)
            )
            return answer.status, orjson.loads(answer.body or b"null")

        await play(ask)

    with tempfile.TemporaryDirectory() as blobs:
        on_stage(prepared, auth="off", blob_store=blobs)


def deployment(template: Any, **parameters: Any) -> dict[str, Any]:
    """The document of a deployment."""
    values = {name: {"value": value} for name, value in parameters.items()}
    return {"properties": {"mode": "Incremental", "template": template, "parameters": values}}


def shop() -> dict[str, Any]:
    """The template without its subscriber, which wants an endpoint."""
    return {**SHOP, "resources": SHOP["resources"][1:]}


def test_a_template_is_deployed_in_order_and_shown_with_its_outputs() -> None:
    async def play(ask: Answers) -> None:
        status, begun = await ask("PUT", f"{DEPLOYMENTS}/first", deployment(shop()))
        assert (status, begun["properties"]["provisioningState"]) == (201, "Accepted")
        _, ended = await ask("GET", f"{DEPLOYMENTS}/first/operationStatuses/first")
        assert ended == {"status": "Succeeded"}
        _, shown = await ask("GET", f"{DEPLOYMENTS}/first")
        properties = shown["properties"]
        assert properties["outputs"]["key"] == {"type": "Bool", "value": True}
        assert "/eventgrid/" in properties["outputs"]["endpoint"]["value"]
        assert properties["parameters"]["secret"] == {"type": "SecureString"}
        assert [each["id"] for each in properties["outputResources"]] == [
            f"{TOPICS}/shop-north",
            f"{TOPICS}/shop-south",
            f"{STORAGE}/shopletters",
            f"{STORAGE}/shopletters/blobServices/default/containers/dead",
        ]
        _, topic = await ask("GET", f"{TOPICS}/shop-south")
        assert (topic["location"], topic["tags"]) == ("local", {"number": "2"})
        _, steps = await ask("GET", f"{DEPLOYMENTS}/first/operations")
        assert {each["properties"]["provisioningState"] for each in steps["value"]} == {"Succeeded"}

    played(play)


def test_changes_of_a_deployment_are_told_and_not_made() -> None:
    async def play(ask: Answers) -> None:
        _, told = await ask("POST", f"{DEPLOYMENTS}/first/whatIf", deployment(shop()))
        changes = {each["resourceId"]: each["changeType"] for each in told["properties"]["changes"]}
        assert (
            changes.pop(f"{STORAGE}/shopletters") == "NoChange"
        )  # an account of the server's own needs no making
        assert set(changes.values()) == {"Create"}
        assert (await ask("GET", f"{TOPICS}/shop-north"))[0] == 404
        await ask("PUT", f"{DEPLOYMENTS}/first", deployment(shop()))
        changed = shop()
        changed["resources"][0] = {**changed["resources"][0], "tags": {"number": "9"}}
        _, told = await ask("POST", f"{DEPLOYMENTS}/first/whatIf", deployment(changed))
        changes = {each["resourceId"]: each for each in told["properties"]["changes"]}
        (delta,) = changes[f"{TOPICS}/shop-north"]["delta"]
        assert delta == {"path": "tags.number", "propertyChangeType": "Modify", "before": "1", "after": "9"}
        assert changes[f"{STORAGE}/shopletters"]["changeType"] == "NoChange"

    played(play)


def test_a_nested_deployment_has_its_own_scope_or_the_outer_one() -> None:
    def nested(name: str, template: Any, **more: Any) -> dict[str, Any]:
        properties = {"mode": "Incremental", "template": template, **more}
        return {
            "type": "Microsoft.Resources/deployments",
            "apiVersion": "1",
            "name": name,
            "properties": properties,
        }

    topic = {"type": "Microsoft.EventGrid/topics", "apiVersion": "2022-06-15", "location": "local"}
    inner = {
        "parameters": {"name": {"type": "string"}},
        "resources": [{**topic, "name": "[parameters('name')]"}],
        "outputs": {
            "id": {
                "type": "string",
                "value": "[resourceId('Microsoft.EventGrid/topics', parameters('name'))]",
            }
        },
    }
    template = {
        "parameters": {"name": {"type": "string", "defaultValue": "outer"}},
        "resources": [
            nested("one", {"resources": [{**topic, "name": "[parameters('name')]"}]}),
            nested(
                "two",
                inner,
                expressionEvaluationOptions={"scope": "inner"},
                parameters={"name": {"value": "[concat(parameters('name'), '-inner')]"}},
            ),
        ],
        "outputs": {"id": {"type": "string", "value": "[reference('two').outputs.id.value]"}},
    }

    async def play(ask: Answers) -> None:
        await ask("PUT", f"{DEPLOYMENTS}/first", deployment(template))
        _, shown = await ask("GET", f"{DEPLOYMENTS}/first")
        assert shown["properties"]["outputs"]["id"]["value"] == f"{TOPICS}/outer-inner"
        for name in ("outer", "outer-inner"):
            assert (await ask("GET", f"{TOPICS}/{name}"))[0] == 200

    played(play)


def test_a_deployment_that_fails_says_which_resource_was_refused_and_why() -> None:
    async def play(ask: Answers) -> None:
        unknown = {
            "type": "Microsoft.Compute/virtualMachines",
            "apiVersion": "1",
            "name": "vm",
            "location": "local",
        }
        status, _ = await ask("PUT", f"{DEPLOYMENTS}/first", deployment({"resources": [unknown]}))
        assert status == 201
        _, ended = await ask("GET", f"{DEPLOYMENTS}/first/operationStatuses/first")
        assert (ended["status"], ended["error"]["code"]) == ("Failed", "DeploymentFailed")
        (detail,) = ended["error"]["details"]
        assert (detail["code"], detail["target"]) == (
            "InvalidResourceType",
            f"{GROUP}/providers/Microsoft.Compute/virtualMachines/vm",
        )

    played(play)


def test_a_deployment_is_found_listed_and_forgotten() -> None:
    async def play(ask: Answers) -> None:
        assert (await ask("HEAD", f"{DEPLOYMENTS}/first"))[0] == 404
        await ask("PUT", f"{DEPLOYMENTS}/first", deployment({"resources": []}))
        assert (await ask("HEAD", f"{DEPLOYMENTS}/first"))[0] == 204
        _, listed = await ask("GET", DEPLOYMENTS)
        assert [each["name"] for each in listed["value"]] == ["first"]
        await ask("DELETE", f"{DEPLOYMENTS}/first")
        status, error = await ask("GET", f"{DEPLOYMENTS}/first")
        assert (status, error["error"]["code"]) == (404, "DeploymentNotFound")

    played(play)


_TOPIC: Final = {"type": "Microsoft.EventGrid/topics", "apiVersion": "1", "location": "local"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (
            {"parameters": {"a": {"type": "string"}}},
            "The value for the template parameter 'a' is not provided.",
        ),
        (
            {"resources": [{**_TOPIC, "name": "[unknown('a')]"}]},
            "The template function 'unknown' is not valid.",
        ),
        ({"resources": [{**_TOPIC, "name": "[variables('a')]"}]}, "The template variable 'a' is not found."),
        ({"resources": [{**_TOPIC, "name": "a/b"}]}, "have different numbers of segments."),
        ({"resources": [{**_TOPIC, "name": "one"}] * 2}, "is defined multiple times in a template."),
        ({"resources": [{**_TOPIC, "name": "[concat('a'"}]}, ""),
        ({"resources": [{"type": "x"}]}, "A resource of a template has a type and a name."),
        (
            {"resources": [{**_TOPIC, "name": "n", "copy": {"name": "c", "count": 801}}]},
            "up to 800 iterations",
        ),
        ({"outputs": ["id"]}, "The template's 'outputs' must be an object of definitions."),
        ({"outputs": {"id": "text"}}, "The template's 'outputs' must be an object of definitions."),
        ({"parameters": [1]}, "The template's 'parameters' must be an object of definitions."),
        ({"variables": "text"}, "The template's 'variables' must be an object of definitions."),
    ],
)
def test_a_template_that_cannot_be_carried_out_is_refused(template: Any, text: str) -> None:
    async def play(ask: Answers) -> None:
        for method, path in (("POST", f"{DEPLOYMENTS}/first/validate"), ("PUT", f"{DEPLOYMENTS}/first")):
            status, error = await ask(method, path, deployment(template))
            if text:
                assert (status, error["error"]["code"]) == (400, "InvalidTemplate")
                assert text in error["error"]["message"]

    played(play)


@pytest.mark.parametrize("parameters", [[{"a": 1}], {"prefix": ["value"]}, "text"])
def test_parameters_are_an_object_of_objects(parameters: Any) -> None:
    async def play(ask: Answers) -> None:
        template = {"parameters": {"prefix": {"type": "string"}}, "resources": []}
        properties = {"mode": "Incremental", "template": template, "parameters": parameters}
        status, error = await ask("PUT", f"{DEPLOYMENTS}/first", {"properties": properties})
        assert (status, error["error"]["code"]) == (400, "InvalidTemplate")
        assert "must be an object of objects with a 'value'" in error["error"]["message"]

    played(play)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("\u0660", "has these invalid characters: '\u0660'. The name can only be a letter, digit"),
        ("Web Site", "has these invalid characters: ' '."),
        ("a" * 65, "has a length of '65' which exceeds the maximum length of '64'."),
    ],
)
def test_a_deployment_has_a_name_of_plain_characters(name: str, text: str) -> None:
    async def play(ask: Answers) -> None:
        status, error = await ask("PUT", f"{DEPLOYMENTS}/{name}", deployment({"resources": []}))
        assert (status, error["error"]["code"]) == (400, "InvalidDeployment")
        assert text in error["error"]["message"]

    played(play)


def test_a_template_elsewhere_is_not_fetched() -> None:
    async def play(ask: Answers) -> None:
        link = {"templateLink": {"uri": "https://example.org/shop.json"}}
        status, error = await ask("PUT", f"{DEPLOYMENTS}/first", {"properties": link})
        assert (status, error["error"]["code"]) == (400, "InvalidContentLink")
        assert "content from 'https://example.org/shop.json'" in error["error"]["message"]
        kind = {"type": "Microsoft.Resources/deployments", "apiVersion": "1"}
        nested = deployment({"resources": [{**kind, "name": "inner", "properties": link}]})
        await ask("PUT", f"{DEPLOYMENTS}/second", nested)
        _, ended = await ask("GET", f"{DEPLOYMENTS}/second/operationStatuses/second")
        assert [detail["code"] for detail in ended["error"]["details"]] == ["InvalidContentLink"]

    played(play)


def test_a_template_may_be_spliced_in_with_its_comments() -> None:
    async def play(stage: Stage) -> None:
        template = '{"parameters": {"a": {"type": "string"}}, /* none */ "resources": [] // "}"\n}'
        given = '{"properties": {"mode": "Incremental", "parameters": {"a": {"value": "//"}}'
        body = f"{given}, template:{template}}}}}"
        headers = {"host": "localhost:4566", "content-type": "application/json"}
        path = f"{DEPLOYMENTS}/first/validate"
        answer = await stage.send(Request("POST", path, "", headers, body.encode()))
        assert (answer.status, orjson.loads(answer.body)["properties"]["parameters"]["a"]["value"]) == (
            200,
            "//",
        )

    on_stage(play, auth="off")


def test_a_circle_of_dependencies_is_refused() -> None:
    async def play(ask: Answers) -> None:
        circle = [
            {**_TOPIC, "name": "one", "dependsOn": ["two"]},
            {**_TOPIC, "name": "two", "dependsOn": ["one"]},
        ]
        status, error = await ask("PUT", f"{DEPLOYMENTS}/first", deployment({"resources": circle}))
        assert status == 400
        assert "Circular dependency detected on resource" in error["error"]["message"]

    played(play)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[concat('it''s ', 1)]", "it's 1"),
        ("[[a text]", "[a text]"),
        ("[if(equals(1, 2), div(1, 0), 'no')]", "no"),
        ("[toLower(substring('ABCDEF', 1, 3))]", "bcd"),
        ("[union(createArray(1, 2), createArray(2, 3))]", [1, 2, 3]),
        ("[createObject('a', createObject('b', 3)).a.b]", 3),
        ("[split('a,b', ',')[1]]", "b"),
        ("[json('{\"a\": [true]}').a[0]]", True),
        ("[join(createArray('a', 'b'), '-')]", "a-b"),
        ("[length(uniqueString('x'))]", 13),
        ("[base64ToString(base64('x'))]", "x"),
        ("[format('{0}-{1}', 'a', true())]", "a-True"),
    ],
)
def test_expressions(expression: str, value: Any) -> None:
    assert TemplateEvaluator({}, TemplateBudget()).value(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "[replace(padLeft('a', 9999, 'a'), 'a', padLeft('a', 9999, 'a'))]",
        f"[{'concat(' * 100}'a'{')' * 100}]",
        f"[concat({', '.join(['range(0, 10000)'] * 60)})]",
    ],
    ids=["a long text", "a deep one", "a long list"],
)
def test_expressions_have_a_budget(expression: str) -> None:
    with pytest.raises(TemplateError):
        TemplateEvaluator({}, TemplateBudget()).value(expression)


def test_shared_values_are_counted_as_often_as_they_stand() -> None:
    values: list[Any] = ["x"]
    for _ in range(40):
        values = [values, values]
    with pytest.raises(TemplateError):
        TemplateEvaluator({"variables": lambda _: values}, TemplateBudget()).value("[string(variables('v'))]")
