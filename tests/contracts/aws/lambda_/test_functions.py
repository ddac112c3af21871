"""Functions come, are shown, change and go."""

import base64
import hashlib
import urllib.error
import urllib.request

import pytest

from tests.contracts.aws.lambda_.workshop import ECHO, ROLE, RUNTIME, Workshop, archive
from tests.contracts.aws.sqs.client import ACCOUNT, REGION, refused


def _missing(workshop: Workshop, name: str) -> str:
    return f"Function not found: {workshop.arn(name)}"


class TestCreate:
    def test_a_function_is_answered_as_recorded_and_active_at_the_next_look(self, workshop: Workshop) -> None:
        code = archive({"index.py": ECHO})
        made = dict(workshop.create("billing", code, "index.handler", Timeout=3))
        assert made.pop("ResponseMetadata")["HTTPStatusCode"] == 201
        revision, modified = made.pop("RevisionId"), made.pop("LastModified")
        runtime_arn = made.pop("RuntimeVersionConfig")["RuntimeVersionArn"]
        assert runtime_arn.startswith(f"arn:aws:lambda:{REGION}::runtime:")
        assert (len(revision), len(modified), modified[-5:]) == (36, 28, "+0000")
        assert made == {
            "Architectures": ["x86_64"],
            "CodeSha256": base64.b64encode(hashlib.sha256(code).digest()).decode(),
            "CodeSize": len(code),
            "Description": "",
            "EphemeralStorage": {"Size": 512},
            "FunctionArn": workshop.arn("billing"),
            "FunctionName": "billing",
            "Handler": "index.handler",
            "LoggingConfig": {"LogFormat": "Text", "LogGroup": "/aws/lambda/billing"},
            "MemorySize": 128,
            "PackageType": "Zip",
            "Role": ROLE,
            "Runtime": RUNTIME,
            "SnapStart": {"ApplyOn": "None", "OptimizationStatus": "Off"},
            "State": "Pending",
            "StateReason": "The function is being created.",
            "StateReasonCode": "Creating",
            "Timeout": 3,
            "TracingConfig": {"Mode": "PassThrough"},
            "Version": "$LATEST",
        }
        workshop.client.get_waiter("function_active_v2").wait(FunctionName="billing")
        shown = workshop.client.get_function_configuration(FunctionName="billing")
        assert (shown["State"], shown["LastUpdateStatus"]) == ("Active", "Successful")
        assert "StateReason" not in shown

    def test_a_name_is_taken_once_in_a_region_of_an_account(self, workshop: Workshop) -> None:
        name = workshop.function()
        with refused("ResourceConflictException", f"Function already exist: {name}", 409):
            workshop.create(name, archive({"a.py": ""}), "a.b")
        Workshop(workshop.server, account="123456789012").create(name, archive({"a.py": ""}), "a.b")

    def test_archives_that_cannot_be_unpacked_are_refused(self, workshop: Workshop) -> None:
        text = "Could not unzip uploaded file. Please check your file, then try to upload again."
        for code in (b"no archive", archive({"../outside.py": "x"}), archive({"/etc/passwd": "x"})):
            with refused("InvalidParameterValueException", text):
                workshop.create("bad", code, "a.b")
        with refused("ResourceNotFoundException", _missing(workshop, "bad"), 404):
            workshop.client.get_function(FunctionName="bad")

    @pytest.mark.parametrize(
        ("given", "text"),
        [
            ({"Runtime": "cobol85"}, "Value cobol85 at 'runtime' failed to satisfy constraint:"),
            (
                {"Runtime": "ruby3.4"},
                "Value ruby3.4 at 'runtime' failed to satisfy constraint: Redrive runs python3.x",
            ),
            ({"Timeout": 901}, "'timeout' value failed to satisfy constraint:"),
            ({"MemorySize": 10_241}, "'memorySize' value failed to satisfy constraint:"),
            (
                {"Layers": ["arn:aws:lambda:us-east-1:000000000000:layer:l:1"]},
                "Layer version arn:aws:lambda:us-east-1:000000000000:layer:l:1 does not exist.",
            ),
            ({"PackageType": "Image"}, "Redrive does not offer the parameter PackageType."),
            (
                {"ImageConfig": {"Command": ["run"]}},
                "Redrive does not offer the parameter ImageConfig.",
            ),
            (
                {"DeadLetterConfig": {"TargetArn": "arn:aws:s3:::bucket"}},
                "The provided dead letter target is invalid:",
            ),
            (
                {"Environment": {"Variables": {"AWS_REGION": "x"}}},
                "Lambda was unable to configure your environment",
            ),
            (
                {"Environment": {"Variables": {"LONG": "x" * 4096}}},
                "Lambda was unable to configure your environment",
            ),
        ],
    )
    def test_impossible_configurations_are_refused_with_their_reason(
        self, workshop: Workshop, given: dict[str, object], text: str
    ) -> None:
        with refused("InvalidParameterValueException") as error:
            workshop.function(**given)  # type: ignore[arg-type]  # of any kind
        assert str(error["Message"]).startswith(text)

    def test_code_comes_from_a_bucket_of_this_server(self, workshop: Workshop) -> None:
        buckets, name = workshop.of("s3"), "code-of-functions"
        buckets.create_bucket(Bucket=name)
        buckets.put_object(Bucket=name, Key="v1/code.zip", Body=archive({"index.py": ECHO}))
        given = {"Role": ROLE, "Runtime": RUNTIME, "Handler": "index.handler"}
        there = {"S3Bucket": name, "S3Key": "v1/code.zip"}
        workshop.client.create_function(FunctionName="from-bucket", Code=there, **given)
        assert workshop.call("from-bucket", 1).payload == 1
        text = (
            "Error occurred while GetObject. S3 Error Code: NoSuchKey. S3 Error Message: The specified key does not"
            " exist."
        )
        with refused("InvalidParameterValueException", text):
            workshop.client.update_function_code(FunctionName="from-bucket", S3Bucket=name, S3Key="v2")
        with refused("InvalidParameterValueException") as error:
            workshop.client.update_function_code(FunctionName="from-bucket", S3Bucket="nowhere", S3Key="v2")
        assert "S3 Error Code: NoSuchBucket." in error["Message"]
        stranger = Workshop(workshop.server, account="210987654321")
        with refused("InvalidParameterValueException") as error:
            stranger.client.create_function(FunctionName="stolen", Code=there, **given)
        assert "S3 Error Code: AccessDenied." in error["Message"]

    def test_a_role_has_the_form_of_a_role(self, workshop: Workshop) -> None:
        with refused("ValidationException") as error:
            workshop.function(Role="nobody")
        assert "'role' failed to satisfy constraint" in error["Message"]


class TestLook:
    def test_a_missing_function_is_told_of_as_recorded(self, workshop: Workshop) -> None:
        client, arn = workshop.client, workshop.arn("nobody")
        with refused("ResourceNotFoundException", f"Function not found: {arn}:$LATEST", 404):
            client.put_function_concurrency(FunctionName="nobody", ReservedConcurrentExecutions=1)
        with refused("ResourceNotFoundException", f"No policy found for: {arn}", 404):
            client.remove_permission(FunctionName="nobody", StatementId="s")
        with refused("AccessDeniedException", status=403):
            client.get_function(FunctionName=arn.replace(ACCOUNT, "210987654321"))
        text = "Please don't provide ImageUri when updating a function with packageType Zip."
        with refused("InvalidParameterValueException", text):
            image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/car:1"
            client.update_function_code(FunctionName=workshop.function(), ImageUri=image)

    def test_the_code_can_be_fetched_by_its_link_alone(self, workshop: Workshop) -> None:
        name = workshop.function(Tags={"team": "billing"})
        found = workshop.client.get_function(FunctionName=name)
        assert (found["Code"]["RepositoryType"], found["Tags"]) == ("S3", {"team": "billing"})
        location: str = found["Code"]["Location"]
        with urllib.request.urlopen(location) as answer:
            assert answer.read() == archive({"index.py": ECHO})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(location[:-1] + ("0" if location[-1] != "0" else "1"))

    def test_every_form_of_a_name_means_the_function(self, workshop: Workshop) -> None:
        name = workshop.function()
        arn = workshop.arn(name)
        for form in (name, f"{ACCOUNT}:function:{name}", arn, f"{name}:$LATEST"):
            shown = workshop.client.get_function_configuration(FunctionName=form)
            assert shown["FunctionArn"] == (f"{arn}:$LATEST" if "$" in form else arn)
        qualified = workshop.client.get_function_configuration(FunctionName=name, Qualifier="$LATEST")
        assert qualified["FunctionArn"] == f"{arn}:$LATEST"

    def test_names_that_contradict_themselves_or_lead_elsewhere_are_refused(self, workshop: Workshop) -> None:
        name = workshop.function()
        text = "The derived qualifier from the function name does not match the specified qualifier."
        with refused("InvalidParameterValueException", text):
            workshop.client.get_function(FunctionName=f"{name}:1", Qualifier="2")
        elsewhere = workshop.arn(name).replace(REGION, "eu-west-1")
        text = f"Functions from 'eu-west-1' are not reachable in this region ('{REGION}')"
        with refused("ResourceNotFoundException", text, 404):
            workshop.client.get_function(FunctionName=elsewhere)
        with refused("ResourceNotFoundException", f"{_missing(workshop, name)}:7", 404):
            workshop.client.get_function(FunctionName=name, Qualifier="7")

    def test_lists_come_in_pages_and_tell_no_states(self, workshop: Workshop) -> None:
        made = sorted(workshop.function() for _ in range(3))
        workshop.client.publish_version(FunctionName=made[1])
        first = workshop.client.list_functions(MaxItems=2)
        second = workshop.client.list_functions(MaxItems=2, Marker=first["NextMarker"])
        assert [each["FunctionName"] for each in first["Functions"] + second["Functions"]] == made
        assert "NextMarker" not in second
        assert "State" not in first["Functions"][0]
        pages = workshop.client.get_paginator("list_functions").paginate(FunctionVersion="ALL", MaxItems=1)
        listed = [each["FunctionArn"] for page in pages for each in page["Functions"]]
        latest = [f"{workshop.arn(name)}:$LATEST" for name in made]
        assert sorted(listed) == sorted([*latest, f"{workshop.arn(made[1])}:1"])


class TestChange:
    def test_new_code_runs_at_the_next_invocation(self, workshop: Workshop) -> None:
        name = workshop.function()
        assert workshop.call(name, "before").payload == "before"
        new = archive({"index.py": "def handler(event, context):\n    return 'new'\n"})
        answer = workshop.client.update_function_code(FunctionName=name, ZipFile=new)
        assert (answer["State"], answer["LastUpdateStatus"]) == ("Active", "InProgress")
        assert answer["LastUpdateStatusReason"] == "The function is being created."
        workshop.client.get_waiter("function_updated_v2").wait(FunctionName=name)
        assert workshop.call(name, "after").payload == "new"

    def test_a_dry_run_changes_nothing(self, workshop: Workshop) -> None:
        name = workshop.function()
        before = workshop.client.get_function_configuration(FunctionName=name)
        workshop.client.update_function_code(FunctionName=name, ZipFile=archive({"a.py": ""}), DryRun=True)
        after = workshop.client.get_function_configuration(FunctionName=name)
        assert (after["CodeSha256"], after["RevisionId"]) == (before["CodeSha256"], before["RevisionId"])
        assert workshop.call(name, 1).payload == 1

    def test_a_configuration_changes_where_it_is_given(self, workshop: Workshop) -> None:
        name = workshop.function(Description="of old", Environment={"Variables": {"OLD": "1"}})
        workshop.client.update_function_configuration(
            FunctionName=name, Handler="index.look", Timeout=9, Environment={"Variables": {"NEW": "2"}}
        )
        shown = workshop.client.get_function_configuration(FunctionName=name)
        assert (shown["Description"], shown["Timeout"], shown["Environment"]) == (
            "of old",
            9,
            {"Variables": {"NEW": "2"}},
        )
        variables = workshop.call(name).payload["variables"]
        assert (variables["NEW"], variables.get("OLD")) == ("2", None)

    def test_an_update_with_an_old_revision_id_is_refused(self, workshop: Workshop) -> None:
        name = workshop.function()
        old = workshop.client.get_function_configuration(FunctionName=name)["RevisionId"]
        workshop.client.update_function_configuration(FunctionName=name, Timeout=9, RevisionId=old)
        text = (
            "The Revision Id provided does not match the latest Revision Id. Call the GetFunction/GetAlias API to"
            " retrieve the latest Revision Id"
        )
        with refused("PreconditionFailedException", text, 412):
            workshop.client.update_function_configuration(FunctionName=name, Timeout=10, RevisionId=old)


class TestDelete:
    def test_a_function_goes_with_all_that_is_its_own(self, workshop: Workshop) -> None:
        name = workshop.function(Publish=True)
        workshop.client.create_alias(FunctionName=name, Name="live", FunctionVersion="1")
        answer = workshop.client.delete_function(FunctionName=name)
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204
        for call in (workshop.client.get_function, workshop.client.delete_function):
            with refused("ResourceNotFoundException", _missing(workshop, name), 404):
                call(FunctionName=name)
        with refused("ResourceNotFoundException", f"{_missing(workshop, name)}:$LATEST", 404):
            workshop.client.invoke(FunctionName=name)
        workshop.create(name, archive({"index.py": ECHO}), "index.handler")
        with refused("ResourceNotFoundException", f"{_missing(workshop, name)}:1", 404):
            workshop.client.get_function(FunctionName=name, Qualifier="1")

    def test_a_version_goes_alone_unless_an_alias_needs_it(self, workshop: Workshop) -> None:
        name = workshop.function(Publish=True)
        workshop.client.create_alias(FunctionName=name, Name="live", FunctionVersion="1")
        with refused("ResourceConflictException", status=409):
            workshop.client.delete_function(FunctionName=name, Qualifier="1")
        workshop.client.delete_alias(FunctionName=name, Name="live")
        workshop.client.delete_function(FunctionName=name, Qualifier="1")
        assert workshop.call(name, 5).payload == 5
        text = "$LATEST version cannot be deleted without deleting the function."
        with refused("InvalidParameterValueException", text):
            workshop.client.delete_function(FunctionName=name, Qualifier="$LATEST")
