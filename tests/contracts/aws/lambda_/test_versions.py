"""Versions and aliases."""

from tests.contracts.aws.lambda_.workshop import Workshop, archive
from tests.contracts.aws.sqs.client import refused

_SECOND = archive({"index.py": "def handler(event, context):\n    return 'second'\n"})


def test_a_version_stays_what_it_was(workshop: Workshop) -> None:
    name = workshop.function(Description="first")
    first = workshop.client.publish_version(FunctionName=name)
    assert (first["Version"], first["FunctionArn"]) == ("1", f"{workshop.arn(name)}:1")
    again = workshop.client.publish_version(FunctionName=name, Description="nothing changed")
    assert (again["Version"], again["Description"]) == ("1", "first")
    second = workshop.client.update_function_code(FunctionName=name, ZipFile=_SECOND, Publish=True)
    assert second["Version"] == "2"
    answers = {version: workshop.call(name, "event", Qualifier=version) for version in ("1", "2", "$LATEST")}
    assert {version: answer.payload for version, answer in answers.items()} == {
        "1": "event",
        "2": "second",
        "$LATEST": "second",
    }
    assert answers["1"].raw["ExecutedVersion"] == "1"
    listed = workshop.client.list_versions_by_function(FunctionName=name)["Versions"]
    assert [version["Version"] for version in listed] == ["$LATEST", "1", "2"]
    pages = workshop.client.get_paginator("list_versions_by_function").paginate(FunctionName=name, MaxItems=1)
    assert [each["Version"] for page in pages for each in page["Versions"]] == ["$LATEST", "1", "2"]


def test_a_version_is_published_of_the_code_that_was_meant(workshop: Workshop) -> None:
    name = workshop.function()
    current = workshop.client.get_function_configuration(FunctionName=name)["CodeSha256"]
    text = (
        f"CodeSHA256 (x) is different from current CodeSHA256 in $LATEST ({current})."
        " Please try again with the CodeSHA256 in $LATEST."
    )
    with refused("InvalidParameterValueException", text):
        workshop.client.publish_version(FunctionName=name, CodeSha256="x")


def test_numbers_are_never_used_again(workshop: Workshop) -> None:
    name = workshop.function(Publish=True)
    workshop.client.delete_function(FunctionName=name, Qualifier="1")
    assert workshop.client.publish_version(FunctionName=name)["Version"] == "2"


def test_versions_do_not_share_environments(workshop: Workshop) -> None:
    name = workshop.function(handler="index.count", Publish=True)
    assert [workshop.call(name).payload for _ in range(3)] == [1, 2, 3]
    assert [workshop.call(name, Qualifier="1").payload for _ in range(2)] == [1, 2]


class TestAliases:
    def test_an_alias_leads_to_its_version_and_can_be_moved(self, workshop: Workshop) -> None:
        name = workshop.function(Publish=True)
        workshop.client.update_function_code(FunctionName=name, ZipFile=_SECOND, Publish=True)
        made = workshop.client.create_alias(FunctionName=name, Name="live", FunctionVersion="1")
        assert made["AliasArn"] == f"{workshop.arn(name)}:live"
        answer = workshop.call(name, "event", Qualifier="live")
        assert (answer.payload, answer.raw["ExecutedVersion"]) == ("event", "1")
        moved = workshop.client.update_alias(FunctionName=name, Name="live", FunctionVersion="2")
        assert workshop.call(f"{name}:live").payload == "second"
        assert moved["RevisionId"] != made["RevisionId"]
        shown = workshop.client.get_alias(FunctionName=name, Name="live")
        assert (shown["FunctionVersion"], shown["Description"]) == ("2", "")
        listed = workshop.client.list_aliases(FunctionName=name, FunctionVersion="2")["Aliases"]
        assert [alias["Name"] for alias in listed] == ["live"]
        assert workshop.client.list_aliases(FunctionName=name, FunctionVersion="1")["Aliases"] == []

    def test_a_weight_sends_some_invocations_to_another_version(self, workshop: Workshop) -> None:
        name = workshop.function(Publish=True)
        workshop.client.update_function_code(FunctionName=name, ZipFile=_SECOND, Publish=True)
        workshop.client.create_alias(
            FunctionName=name,
            Name="live",
            FunctionVersion="1",
            RoutingConfig={"AdditionalVersionWeights": {"2": 0.5}},
        )
        ran = [workshop.call(name, Qualifier="live").raw["ExecutedVersion"] for _ in range(40)]
        assert 5 < ran.count("2") < 35

    def test_aliases_that_cannot_be_are_refused(self, workshop: Workshop) -> None:
        name = workshop.function(Publish=True)
        create, live = workshop.client.create_alias, {"FunctionName": name, "Name": "live"}

        def weighed(weights: dict[str, float]) -> dict[str, object]:
            return {"RoutingConfig": {"AdditionalVersionWeights": weights}}

        with refused("ResourceNotFoundException", f"Function not found: {workshop.arn(name)}:9", 404):
            create(**live, FunctionVersion="9")
        text = "Number of items in AdditionalVersionWeights cannot be greater than 1"
        with refused("InvalidParameterValueException", text):
            create(**live, FunctionVersion="1", **weighed({"1": 0.1, "2": 0.1}))
        with refused("InvalidParameterValueException") as error:
            create(**live, FunctionVersion="1", **weighed({"1": 0.1}))
        assert "already included in routing configuration" in error["Message"]
        text = "$LATEST is not supported for an alias pointing to more than 1 version"
        with refused("InvalidParameterValueException", text):
            create(**live, FunctionVersion="$LATEST", **weighed({"1": 0.1}))
        create(**live, FunctionVersion="1")
        with refused("ResourceConflictException", f"Alias already exists: {workshop.arn(name)}:live", 409):
            create(**live, FunctionVersion="1")
        missing = f"{workshop.arn(name)}:gone"
        with refused("ResourceNotFoundException", f"Cannot find alias arn: {missing}", 404):
            workshop.client.get_alias(FunctionName=name, Name="gone")
        with refused("ResourceNotFoundException", f"Alias not found: {missing}", 404):
            workshop.client.update_alias(FunctionName=name, Name="gone")
        workshop.client.delete_alias(FunctionName=name, Name="gone")
