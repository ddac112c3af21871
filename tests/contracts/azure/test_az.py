"""The Azure CLI, unmodified, against `redrive serve --tls auto`: signing in, and the commands people type."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
import pytest

from tests.contracts.azure.resources import EVENT_GRID, STORAGE, Webhook
from tests.services.az import Az
from tests.services.clients import CommandFailedError
from tests.services.server import Server, new_server

SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"
TOPIC: Final = f"{EVENT_GRID}/topics/orders"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One store is enough to show what the CLI says and hears."""
    directory = tmp_path_factory.mktemp("server")
    server = new_server("sqlite://:memory:", "--tls", "auto", directory=directory)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def az(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Az:
    """The CLI, signed in at the server."""
    az = Az(tmp_path_factory.mktemp("az"), server.log.parent / "redrive-tls" / "authority.pem")
    az("config", "set", "core.instance_discovery=false", "core.collect_telemetry=no")
    az("cloud", "register", "-n", "Redrive", "--endpoint-resource-manager", server.url)
    az("cloud", "set", "-n", "Redrive")
    signed_in = az("login", "--service-principal", "-u", "any", "-p", "any", "--tenant", SUBSCRIPTION)
    assert [one["id"] for one in signed_in] == [SUBSCRIPTION]
    return az


@pytest.fixture(scope="module")
def hook() -> Iterator[Webhook]:
    with Webhook().serving() as hook:
        yield hook


def test_groups_and_topics(az: Az, server: Server) -> None:
    az("group", "create", "-n", "rg", "-l", "local")
    made = az("eventgrid", "topic", "create", "-g", "rg", "-n", "orders", "-l", "local", "--tags", "a=b")
    assert (made["id"], made["provisioningState"], made["tags"]) == (TOPIC, "Succeeded", {"a": "b"})
    assert made["endpoint"].startswith(f"{server.url}/eventgrid/")
    keys = az("eventgrid", "topic", "key", "list", "-g", "rg", "-n", "orders")
    fresh = az("eventgrid", "topic", "key", "regenerate", "-g", "rg", "-n", "orders", "--key-name", "key1")
    assert fresh["key1"] != keys["key1"]
    assert fresh["key2"] == keys["key2"]
    assert [one["name"] for one in az("eventgrid", "topic", "list", "-g", "rg")] == ["orders"]
    mapping = ("--input-schema", "customeventschema", "--input-mapping-fields", "eventType=kind")
    custom = az("eventgrid", "topic", "create", "-g", "rg", "-n", "custom", "-l", "local", *mapping)
    assert custom["inputSchemaMapping"]["inputSchemaMappingType"] == "Json"
    assert custom["inputSchemaMapping"]["eventType"]["sourceField"] == "kind"
    assert az("eventgrid", "topic", "update", "-g", "rg", "-n", "orders", "--tags", "c=d")["tags"] == {
        "c": "d"
    }
    with pytest.raises(CommandFailedError, match="ResourceNotFound"):
        az("eventgrid", "topic", "show", "-g", "rg", "-n", "others")


def test_batches_of_a_storage_accounts_events(az: Az, hook: Webhook) -> None:
    """The command of the page on delivery; today's CLI spells its `--resource-id` `--source-resource-id`."""
    made = az(
        "storage", "account", "create", "-n", "letters", "-g", "rg", "-l", "local", "--sku", "Standard_LRS"
    )
    assert (made["id"], made["provisioningState"]) == (STORAGE, "Succeeded")
    at = ("--account-name", "letters", "--blob-endpoint", made["primaryEndpoints"]["blob"])
    of_account = ("--storage-account", "letters", "-g", "rg")
    assert az("storage", "container-rm", "create", "--name", "dead", *of_account)["name"] == "dead"
    assert az("storage", "container-rm", "show", "--name", "dead", *of_account)["name"] == "dead"
    az("storage", "container-rm", "create", "--name", "other", *of_account)
    assert [one["name"] for one in az("storage", "container-rm", "list", *of_account)] == ["dead", "other"]
    az("storage", "container-rm", "delete", "--name", "other", "--yes", *of_account)
    with pytest.raises(CommandFailedError, match="does not exist"):
        az("storage", "container-rm", "show", "--name", "other", *of_account)
    keys = az("storage", "account", "keys", "list", "-n", "letters", "-g", "rg")
    assert [key["keyName"] for key in keys] == ["key1", "key2"]
    shown = az("storage", "account", "show-connection-string", "-n", "letters", "-g", "rg")
    signed = ("--connection-string", shown["connectionString"])
    for made in (True, False):
        assert az("storage", "container", "create", "--name", "more", *signed) == {"created": made}
    assert [one["name"] for one in az("storage", "container", "list", *signed)] == ["dead", "more"]
    assert az("storage", "container", "delete", "--name", "more", *signed) == {"deleted": True}
    assert az("storage", "container", "exists", "--name", "more", *signed) == {"exists": False}
    assert [one["id"] for one in az("storage", "account", "list", "-g", "rg")] == [STORAGE]
    for signed in (("--auth-mode", "login"), ("--auth-mode", "key"), ()):  # without, the key is looked up
        assert az("storage", "container", "create", "--name", "walk", *at, *signed) == {"created": True}
        assert az("storage", "container", "delete", "--name", "walk", *at, *signed) == {"deleted": True}
    storage = az("storage", "account", "show", "--name", "letters", "--resource-group", "rg", "--query", "id")
    assert storage == STORAGE
    batching = ("--max-events-per-batch", "1000", "--preferred-batch-size-in-kilobytes", "512")
    named = ("--source-resource-id", storage, "--name", "batched")
    made = az("eventgrid", "event-subscription", "create", *named, "--endpoint", hook.url, *batching)
    assert made["destination"]["maxEventsPerBatch"] == 1000
    assert made["destination"]["preferredBatchSizeInKilobytes"] == 512
    assert made["destination"]["endpointType"] == "WebHook"


def test_resources_and_metrics(az: Az) -> None:
    az("group", "create", "-n", "metered", "-l", "local")
    az("eventgrid", "topic", "create", "-g", "metered", "-n", "orders", "-l", "local", "--tags", "a=b")
    az(
        "storage",
        "account",
        "create",
        "-n",
        "meters",
        "-g",
        "metered",
        "-l",
        "local",
        "--sku",
        "Standard_LRS",
    )
    topic = TOPIC.replace("/resourceGroups/rg/", "/resourceGroups/metered/")
    listed = az("resource", "list", "-g", "metered")
    assert [one["type"] for one in listed] == [
        "Microsoft.EventGrid/topics",
        "Microsoft.Storage/storageAccounts",
    ]
    assert [
        one["id"]
        for one in az(
            "resource",
            "list",
            "--resource-type",
            "Microsoft.EventGrid/topics",
            "-n",
            "orders",
            "-g",
            "metered",
        )
    ] == [topic]
    shown = az(
        "resource", "show", "-g", "metered", "-n", "orders", "--resource-type", "Microsoft.EventGrid/topics"
    )
    assert (shown["id"], shown["tags"]) == (topic, {"a": "b"})
    assert az("resource", "show", "--ids", topic)["properties"]["provisioningState"] == "Succeeded"
    measured = az("monitor", "metrics", "list", "--resource", topic, "--metric", "PublishSuccessCount")
    (metric,) = measured["value"]
    assert (metric["name"]["value"], metric["timeseries"][0]["data"][0]["total"]) == (
        "PublishSuccessCount",
        0,
    )


def test_a_template_is_planned_deployed_shown_and_forgotten(az: Az, hook: Webhook, tmp_path: Path) -> None:
    az("group", "create", "-n", "deployed", "-l", "local")
    topic = {"type": "Microsoft.EventGrid/topics", "apiVersion": "2022-06-15", "location": "local"}
    subscription = {
        "type": "Microsoft.EventGrid/eventSubscriptions",
        "apiVersion": "2022-06-15",
        "name": "billing",
        "scope": "[format('Microsoft.EventGrid/topics/{0}', parameters('name'))]",
        "dependsOn": ["[resourceId('Microsoft.EventGrid/topics', parameters('name'))]"],
        "properties": {"destination": {"endpointType": "WebHook", "properties": {"endpointUrl": hook.url}}},
    }
    endpoint = "[reference(resourceId('Microsoft.EventGrid/topics', parameters('name'))).endpoint]"
    template = {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "parameters": {"name": {"type": "string"}},
        "resources": [subscription, {**topic, "name": "[parameters('name')]"}],
        "outputs": {"endpoint": {"type": "string", "value": endpoint}},
    }
    file = tmp_path / "shop.json"
    file.write_bytes(orjson.dumps(template))
    named = ("-g", "deployed", "-n", "first", "--template-file", str(file), "--parameters", "name=orders")
    planned = az("deployment", "group", "what-if", *named, "--no-pretty-print")
    assert sorted(change["changeType"] for change in planned["changes"]) == ["Create", "Create"]
    made = az("deployment", "group", "create", *named)
    assert made["properties"]["provisioningState"] == "Succeeded"
    assert "/eventgrid/" in made["properties"]["outputs"]["endpoint"]["value"]
    orders = TOPIC.replace("/resourceGroups/rg/", "/resourceGroups/deployed/")
    listed = az("eventgrid", "event-subscription", "list", "--source-resource-id", orders)
    assert [one["name"] for one in listed] == ["billing"]
    assert [one["name"] for one in az("deployment", "group", "list", "-g", "deployed")] == ["first"]
    az("deployment", "group", "delete", "-g", "deployed", "-n", "first")
    assert az("deployment", "group", "list", "-g", "deployed") == []
    template["resources"] = [{**topic, "type": "Microsoft.Sql/servers", "name": "db"}]
    file.write_bytes(orjson.dumps(template))
    with pytest.raises(CommandFailedError, match="InvalidResourceType"):
        az("deployment", "group", "create", *named)


def test_dead_letters_are_listed_downloaded_and_deleted(az: Az, server: Server, tmp_path: Path) -> None:
    made = az(
        "storage", "account", "create", "-n", "letters", "-g", "rg", "-l", "local", "--sku", "Standard_LRS"
    )
    az("storage", "container-rm", "create", "--name", "read", "--storage-account", "letters", "-g", "rg")
    blob = server.log.parent / "redrive-blobs/letters/read/BILLING/2026/1/2/3/letter.json"
    blob.parent.mkdir(parents=True)
    blob.write_text('[{"id":"e-1"}]')
    name = "BILLING/2026/1/2/3/letter.json"
    at = ("--account-name", "letters", "--blob-endpoint", made["primaryEndpoints"]["blob"], "-c", "read")
    (listed,) = az("storage", "blob", "list", *at)
    assert (listed["name"], listed["properties"]["contentLength"]) == (name, 14)
    az("storage", "blob", "download", *at, "-n", name, "-f", str(tmp_path / "letter.json"), "--no-progress")
    assert (tmp_path / "letter.json").read_bytes() == blob.read_bytes()
    signature = az(
        "storage", "blob", "generate-sas", *at, "-n", name, "--permissions", "r", "--expiry", "2100-01-01"
    )
    shown = az("storage", "blob", "show", *at, "-n", name, "--sas-token", signature)
    assert shown["properties"]["contentSettings"]["contentType"] == "application/json"
    az("storage", "blob", "delete", *at, "-n", name)
    assert az("storage", "blob", "list", *at) == []


def test_az_creates_and_shows_an_event_subscription(az: Az, hook: Webhook) -> None:
    az("eventgrid", "topic", "create", "-g", "rg", "-n", "orders", "-l", "local")
    named = ("--source-resource-id", TOPIC, "--name", "billing")
    made = az(
        *("eventgrid", "event-subscription", "create", *named, "--endpoint", hook.url),
        *("--deadletter-endpoint", f"{STORAGE}/blobServices/default/containers/dead"),
        *("--event-ttl", "30", "--max-delivery-attempts", "5", "--labels", "a", "b"),
        *("--advanced-filter", "data.total", "NumberGreaterThan", "100"),
        *("--advanced-filter", "data.country", "StringIn", "DE", "KR"),
        *("--delivery-attribute-mapping", "x-key", "static", "s3cret", "true"),
    )
    assert made["retryPolicy"] == {"eventTimeToLiveInMinutes": 30, "maxDeliveryAttempts": 5}
    assert made["deadLetterDestination"]["blobContainerName"] == "dead"
    assert [one["operatorType"] for one in made["filter"]["advancedFilters"]] == [
        "NumberGreaterThan",
        "StringIn",
    ]
    changed = az("eventgrid", "event-subscription", "update", *named, "--subject-begins-with", "/orders")
    assert changed["filter"]["subjectBeginsWith"] == "/orders"
    assert changed["labels"] == ["a", "b"]
    shown = az("eventgrid", "event-subscription", "show", *named, "--include-full-endpoint-url", "true")
    assert shown["destination"]["endpointUrl"] == hook.url
    listed = az("eventgrid", "event-subscription", "list", "--source-resource-id", TOPIC)
    assert [one["name"] for one in listed] == ["billing"]
    az("eventgrid", "event-subscription", "delete", *named)
    with pytest.raises(CommandFailedError, match="ResourceNotFound"):
        az("eventgrid", "event-subscription", "show", *named)


def test_system_topics_and_domains(az: Az, hook: Webhook) -> None:
    kind = ("--topic-type", "microsoft.storage.storageaccounts", "--source", STORAGE)
    az("eventgrid", "system-topic", "create", "-g", "rg", "-n", "letters", "-l", "local", *kind)
    of_system_topic = ("-g", "rg", "--system-topic-name", "letters", "-n", "letters")
    made = az(
        "eventgrid", "system-topic", "event-subscription", "create", *of_system_topic, "--endpoint", hook.url
    )
    assert made["topic"] == STORAGE
    domain = az("eventgrid", "domain", "create", "-g", "rg", "-n", "shops", "-l", "local")
    scope = ("--source-resource-id", f"{domain['id']}/topics/London", "--name", "billing")
    az("eventgrid", "event-subscription", "create", *scope, "--endpoint", hook.url)
    topics = az("eventgrid", "domain", "topic", "list", "-g", "rg", "--domain-name", "shops")
    assert [one["name"] for one in topics] == ["London"]
    assert az("rest", "--method", "get", "--url", f"{domain['id']}?api-version=2025-02-15")["name"] == "shops"


def test_a_webhook_that_does_not_agree(az: Az) -> None:
    az("eventgrid", "topic", "create", "-g", "rg", "-n", "orders", "-l", "local")
    with Webhook(answers=lambda _: (404, None)).serving() as absent:
        named = ("--source-resource-id", TOPIC, "--name", "absent", "--endpoint", absent.url)
        with pytest.raises(CommandFailedError, match="Webhook validation handshake failed"):
            az("eventgrid", "event-subscription", "create", *named)
