"""Deployments in the mode Complete: the group has nothing afterwards that the template does not name."""

from typing import Any, Final

from tests.azure.test_deployments import DEPLOYMENTS, GROUP, STORAGE, TOPICS, Answers, deployment, played

_PROVIDERS: Final = f"{GROUP}/providers"
_DOMAINS: Final = f"{_PROVIDERS}/Microsoft.EventGrid/domains"
_NAMES: Final = f"{_PROVIDERS}/Microsoft.EventGrid/systemTopics"


def topic(name: str, **more: Any) -> dict[str, Any]:
    """A topic of a template."""
    return {"type": "Microsoft.EventGrid/topics", "name": name, "location": "local", **more}


def complete(template: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    """The document of a deployment in that mode."""
    document = deployment(template, **parameters)
    document["properties"]["mode"] = "complete"
    return document


async def crowded(ask: Answers) -> None:
    """Make a topic, a domain with a topic, and an account with a system topic, and a topic elsewhere."""
    for name in ("Kept", "old"):
        await ask("PUT", f"{TOPICS}/{name}", {"location": "local"})
    await ask("PUT", f"{_DOMAINS}/dom", {"location": "local"})
    await ask("PUT", f"{_DOMAINS}/dom/topics/top", {})
    account = {"location": "local", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}
    await ask("PUT", f"{STORAGE}/letters", account)
    source = {"source": f"{STORAGE}/letters", "topicType": "Microsoft.Storage.StorageAccounts"}
    status, _ = await ask("PUT", f"{_NAMES}/names", {"location": "local", "properties": source})
    assert status in (200, 201)
    await ask("PUT", f"{TOPICS}/old".replace("/rg/", "/other/"), {"location": "local"})


async def names_in(ask: Answers, group: str = GROUP) -> list[str]:
    """The names of a group's resources."""
    return [each["name"] for each in (await ask("GET", f"{group}/resources"))[1]["value"]]


def test_a_complete_deployment_deletes_resources_that_its_template_lacks() -> None:
    async def play(ask: Answers) -> None:
        await crowded(ask)
        inner = {
            "type": "Microsoft.Resources/deployments",
            "name": "inner",
            "properties": {
                "mode": "Incremental",
                "expressionEvaluationOptions": {"scope": "inner"},
                "parameters": {"name": {"value": "[parameters('name')]"}},
                "template": {
                    "parameters": {"name": {"type": "string"}},
                    "resources": [topic("[parameters('name')]")],
                },
            },
        }
        never = topic("old", condition=False)  # which is as if it were not there
        template = {
            "parameters": {"name": {"type": "string"}},
            "resources": [topic("kept"), never, topic("new"), inner],
        }
        document = complete(template, name="nested")
        _, answer = await ask("POST", f"{DEPLOYMENTS}/first/whatIf", document)
        changes = {each["resourceId"]: each for each in answer["properties"]["changes"]}
        deleted = [each for each, change in changes.items() if change["changeType"] == "Delete"]
        gone = [f"{_NAMES}/names", f"{_DOMAINS}/dom", f"{TOPICS}/old"]  # accounts keep their dead letters
        assert deleted == gone
        assert changes[f"{TOPICS}/old"]["before"]["type"] == "Microsoft.EventGrid/topics"
        assert len(await names_in(ask)) == 5
        status, begun = await ask("PUT", f"{DEPLOYMENTS}/first", document)
        assert (status, begun["properties"]["mode"]) == (201, "Complete")
        assert await names_in(ask) == ["Kept", "nested", "new", "letters"]
        assert await names_in(ask, GROUP.replace("/rg", "/other")) == ["old"]
        assert (await ask("GET", f"{_DOMAINS}/dom/topics/top"))[0] == 404
        _, steps = await ask("GET", f"{DEPLOYMENTS}/first/operations")
        told = [each["properties"] for each in steps["value"]]
        assert [
            each["targetResource"]["id"] for each in told if each["provisioningOperation"] == "Delete"
        ] == gone
        assert told[-1]["provisioningState"] == "Succeeded"

    played(play)


def test_a_deployment_that_fails_deletes_nothing() -> None:
    async def play(ask: Answers) -> None:
        await crowded(ask)
        before = await names_in(ask)
        wrong = topic("wrong", properties={"inputSchema": "none"})
        status, _ = await ask("PUT", f"{DEPLOYMENTS}/first", complete({"resources": [wrong]}))
        assert status == 201
        _, ended = await ask("GET", f"{DEPLOYMENTS}/first")
        assert ended["properties"]["provisioningState"] == "Failed"
        assert await names_in(ask) == before

    played(play)


def test_existing_resources_stay_and_incremental_deployments_delete_nothing() -> None:
    async def play(ask: Answers) -> None:
        await crowded(ask)
        existing = {"languageVersion": "2.0", "resources": {"old": topic("old", existing=True)}}
        _, answer = await ask("POST", f"{DEPLOYMENTS}/first/whatIf", deployment(existing))
        assert answer["properties"]["changes"] == []
        await ask("PUT", f"{DEPLOYMENTS}/first", deployment(existing))
        assert len(await names_in(ask)) == 5
        await ask("PUT", f"{DEPLOYMENTS}/first", complete(existing))
        assert await names_in(ask) == ["old", "letters"]
        await ask("PUT", f"{DEPLOYMENTS}/first", complete({"resources": []}))
        assert await names_in(ask) == ["letters"]

    played(play)


def test_only_the_outermost_deployment_is_complete() -> None:
    async def play(ask: Answers) -> None:
        await crowded(ask)
        before = await names_in(ask)
        inner = {
            "type": "Microsoft.Resources/deployments",
            "name": "inner",
            "properties": {"mode": "Complete", "template": {"resources": []}},
        }
        for template, mode, text in (
            ({"resources": [inner]}, "Incremental", "A nested deployment has the mode 'Incremental'."),
            ({"resources": []}, "Whole", "The mode 'Whole' is neither 'Incremental' nor 'Complete'."),
        ):
            document = deployment(template)
            document["properties"]["mode"] = mode
            status, error = await ask("PUT", f"{DEPLOYMENTS}/first", document)
            assert (status, error["error"]["code"]) == (400, "InvalidTemplate")
            assert error["error"]["message"] == f"Deployment template validation failed: '{text}'."
        assert await names_in(ask) == before

    played(play)
