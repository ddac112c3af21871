"""Lambda's recorded answers."""

import io
import zipfile
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson
import pytest

from tests.aws.stage import ACCOUNT, REGION, Refused, Stage, on_stage, signed

FUNCTION: Final = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function"
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/functions"


def played(play: Callable[[Stage], Awaitable[None]], **settings: Any) -> None:
    """Play on a stage that has functions."""
    on_stage(play, auth="off", functions="on", **settings)


def package(comment: str = "") -> bytes:
    """A deployment package of one handler."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", f"def handler(event, context):\n    return event  # {comment}\n")
    return packed.getvalue()


async def new_function(stage: Stage, name: str = "f", **more: Any) -> dict[str, Any]:
    """The answer to a function's creation."""
    params = {
        "Runtime": "python3.11",
        "Handler": "index.handler",
        "Role": ROLE,
        "Code": {"ZipFile": package()},
    }
    return await stage.call(stage.root, "lambda", "CreateFunction", FunctionName=name, **(params | more))


@pytest.mark.parametrize(
    "operation",
    ["GetFunction", "DeleteFunction", "GetFunctionConfiguration", "Invoke", "ListVersionsByFunction"],
)
def test_an_arn_that_ends_before_the_name_names_a_function_called_function(operation: str) -> None:
    async def play(stage: Stage) -> None:
        refusal = await stage.refusal(stage.root, "lambda", operation, FunctionName=FUNCTION)
        arn = f"{FUNCTION}:function{':$LATEST' if operation == 'Invoke' else ''}"
        assert refusal == f"ResourceNotFoundException: Function not found: {arn}"

    played(play)


@pytest.mark.parametrize(
    "name", ["arn:aws:lambda:f", f"arn:aws:lambda:{REGION}:f", f"{ACCOUNT}:f", "function:f"]
)
def test_any_part_before_the_name_may_be_left_out(name: str) -> None:
    async def play(stage: Stage) -> None:
        await new_function(stage)
        shown = await stage.call(stage.root, "lambda", "GetFunctionConfiguration", FunctionName=name)
        assert shown["FunctionArn"] == f"{FUNCTION}:f"

    played(play)


def test_only_a_new_function_needs_a_short_name() -> None:
    async def play(stage: Stage) -> None:
        name = "a" * 65
        for operation in ("GetFunction", "DeleteFunction"):
            refusal = await stage.refusal(stage.root, "lambda", operation, FunctionName=name)
            assert refusal == f"ResourceNotFoundException: Function not found: {FUNCTION}:{name}"
        with pytest.raises(Exception, match="Member must have length less than or equal to 64"):
            await new_function(stage, name)

    played(play)


@pytest.mark.parametrize(
    "runtime", ["python3.7", "java8", "go1.x", "provided", "ruby2.7", "nodejs14.x", "dotnetcore3.1"]
)
def test_a_runtime_that_has_ended_is_refused(runtime: str) -> None:
    async def play(stage: Stage) -> None:
        with pytest.raises(Refused) as refusal:
            await new_function(stage, Runtime=runtime)
        assert refusal.value.code == "InvalidParameterValueException"
        assert refusal.value.message == (
            f"The runtime parameter of {runtime} is no longer supported for creating or updating AWS Lambda functions. We"
            " recommend you use a supported runtime while creating or updating functions."
        )

    played(play)


def test_a_setting_runs_runtimes_that_have_ended() -> None:
    async def play(stage: Stage) -> None:
        assert (await new_function(stage, Runtime="python3.7"))["Runtime"] == "python3.7"

    played(play, functions_ended_runtimes="run")


@pytest.mark.parametrize("runtime", ["python3.99", "PYTHON3.11"])
def test_an_unknown_runtime_is_told_the_known_ones(runtime: str) -> None:
    async def play(stage: Stage) -> None:
        with pytest.raises(Refused) as refusal:
            await new_function(stage, Runtime=runtime)
        assert refusal.value.message == (
            f"Value {runtime} at 'runtime' failed to satisfy constraint: Member must satisfy enum value set: [nodejs20.x,"
            " python3.14, provided.al2023, python3.12, python3.13, nodejs24.x, nodejs22.x, java25, python3.10,"
            " python3.11, java21, ruby3.3, ruby3.4, ruby3.2, python3.8, python3.9, java17, nodejs16.x, dotnet10, dotnet8,"
            " java11, dotnet6, nodejs18.x, provided.al2, java8.al2] or be a valid ARN"
        )

    played(play)


def test_events_of_a_function_that_is_deleted_are_dropped_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play(stage: Stage) -> None:
        await new_function(stage)
        await stage.call(
            stage.root, "lambda", "PutFunctionConcurrency", FunctionName="f", ReservedConcurrentExecutions=0
        )
        await stage.call(
            stage.root, "lambda", "Invoke", FunctionName="f", InvocationType="Event", Payload=b"{}"
        )
        await stage.call(stage.root, "lambda", "DeleteFunction", FunctionName="f")

    played(play)
    (line,) = [record.getMessage() for record in caplog.records if "events_dropped" in record.getMessage()]
    assert line == f"function.events_dropped function={FUNCTION}:f events=1: it was deleted while they waited"


@pytest.mark.parametrize(
    ("operation", "params", "has_type"),
    [
        ("PutFunctionConcurrency", {"ReservedConcurrentExecutions": 950}, False),
        (
            "CreateAlias",
            {
                "Name": "x",
                "FunctionVersion": "$LATEST",
                "RoutingConfig": {"AdditionalVersionWeights": {"1": 0.5}},
            },
            False,
        ),
        ("CreateAlias", {"Name": "x", "FunctionVersion": "1", "RoutingConfig": {}}, True),
    ],
)
def test_some_refusals_have_no_type(operation: str, params: dict[str, Any], has_type: bool) -> None:
    async def play(stage: Stage) -> None:
        await new_function(stage)
        asked = stage.client("lambda").request(operation, {"FunctionName": "f", **params})
        answer = await stage.send(signed(asked, "lambda", stage.root))
        assert answer.status >= 400
        assert ("Type" in orjson.loads(answer.body)) is has_type

    played(play)


def test_a_version_that_is_absent_is_deleted_as_one_that_stands() -> None:
    async def play(stage: Stage) -> None:
        await new_function(stage)
        answer = await stage.call(stage.root, "lambda", "DeleteFunction", FunctionName="f", Qualifier="7")
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204
        named = {"FunctionName": f"{FUNCTION}:f:$LATEST"}
        refusal = await stage.refusal(stage.root, "lambda", "DeleteFunction", **named)
        assert refusal.endswith("$LATEST version cannot be deleted without deleting the function.")
        recursion = await stage.call(stage.root, "lambda", "GetFunctionRecursionConfig", FunctionName="f")
        assert recursion["RecursiveLoop"] == "Terminate"

    played(play)


def test_a_revision_changes_with_the_state_of_its_function() -> None:
    async def play(stage: Stage) -> None:
        async def ask(operation: str, **params: Any) -> dict[str, Any]:
            return await stage.call(stage.root, "lambda", operation, **params)

        async def revision(**qualifier: str) -> str:
            shown = await ask("GetFunctionConfiguration", FunctionName="f", **qualifier)
            return str(shown["RevisionId"])

        revisions = [(await new_function(stage))["RevisionId"], await revision()]
        changed = await ask("UpdateFunctionConfiguration", FunctionName="f", Description="cars")
        revisions += [changed["RevisionId"], await revision()]
        published = await ask("PublishVersion", FunctionName="f")
        assert (published["Version"], published["Description"]) == ("1", "cars")
        revisions += [published["RevisionId"], await revision()]
        for operation, labels in (
            ("TagResource", {"Tags": {"a": "1"}}),
            ("UntagResource", {"TagKeys": ["a"]}),
        ):
            await ask(operation, Resource=f"{FUNCTION}:f", **labels)
            revisions.append(await revision())
        assert len(set(revisions)) == len(revisions)
        assert await revision(Qualifier="1") == published["RevisionId"]
        again = await ask("PublishVersion", FunctionName="f")  # there is nothing to publish
        assert (again["Version"], again["RevisionId"]) == ("1", published["RevisionId"])
        assert await revision() == revisions[-1]
        await ask("UpdateFunctionConfiguration", FunctionName="f", Description="cars")
        assert (await ask("PublishVersion", FunctionName="f"))["Version"] == "2"
        code = await ask("UpdateFunctionCode", FunctionName="f", ZipFile=package("b"), Publish=True)
        assert (code["Version"], code["State"], code["StateReasonCode"]) == ("3", "Pending", "Creating")
        assert "LastUpdateStatus" not in code
        latest, third = await revision(), await revision(Qualifier="3")
        assert len({code["RevisionId"], latest, third}) == 3
        alias = await ask("CreateAlias", FunctionName="f", Name="live", FunctionVersion="3")
        moved = await ask("UpdateAlias", FunctionName="f", Name="live", Description="cars")
        assert len({alias["RevisionId"], moved["RevisionId"], latest, third}) == 4
        assert (await revision(), await revision(Qualifier="3")) == (latest, third)
        whole = await new_function(stage, "g", Publish=True)
        shown = [
            (await ask("GetFunctionConfiguration", FunctionName="g", **qualifier))["RevisionId"]
            for qualifier in ({}, {"Qualifier": "1"}, {"Qualifier": "1"})
        ]
        assert len({whole["RevisionId"], *shown}) == 3
        assert shown[1] == shown[2]

    played(play)


def test_policies_have_the_revisions_of_what_they_are_for() -> None:
    async def play(stage: Stage) -> None:
        async def ask(operation: str, **params: Any) -> dict[str, Any]:
            return await stage.call(stage.root, "lambda", operation, FunctionName="f", **params)

        async def policy(**qualifier: str) -> str:
            return str((await ask("GetPolicy", **qualifier))["RevisionId"])

        await new_function(stage, Publish=True)
        alias = await ask("CreateAlias", Name="live", FunctionVersion="1")
        statement = {"StatementId": "s", "Action": "lambda:InvokeFunction", "Principal": "*"}
        await ask("AddPermission", **statement)
        first = await policy()
        assert first == (await ask("GetFunctionConfiguration"))["RevisionId"]
        await ask("AddPermission", **statement, Qualifier="live", RevisionId=alias["RevisionId"])
        assert await policy() == first != await policy(Qualifier="live")
        await ask("UpdateFunctionConfiguration", Description="d")
        await ask("PublishVersion")
        assert await policy() == first != (await ask("GetFunctionConfiguration"))["RevisionId"]
        await ask("AddPermission", **{**statement, "StatementId": "t"})
        assert await policy() != first

    played(play)


@pytest.mark.parametrize(
    ("operation", "params", "text"),
    [
        ("GetPolicy", {}, "The resource you requested does not exist."),
        ("GetPolicy", {"Qualifier": "7"}, "The resource you requested does not exist."),
        (
            "GetFunctionEventInvokeConfig",
            {},
            f"The function {FUNCTION}:absent:$LATEST doesn't have an EventInvokeConfig",
        ),
        (
            "GetFunctionEventInvokeConfig",
            {"Qualifier": "7"},
            f"The function {FUNCTION}:absent:7 doesn't have an EventInvokeConfig",
        ),
        (
            "DeleteFunction",
            {"Qualifier": "$LATEST"},
            "$LATEST version cannot be deleted without deleting the function.",
        ),
    ],
)
def test_an_absent_function_is_refused_in_words_of_each_operation(
    operation: str, params: dict[str, str], text: str
) -> None:
    async def play(stage: Stage) -> None:
        refusal = await stage.refusal(stage.root, "lambda", operation, FunctionName="absent", **params)
        assert refusal.partition(": ")[2] == text

    played(play)


def test_the_mode_of_a_url_is_answered_to_who_gave_it() -> None:
    async def play(stage: Stage) -> None:
        await new_function(stage)
        url = {"FunctionName": "f", "AuthType": "NONE"}
        made = await stage.call(stage.root, "lambda", "CreateFunctionUrlConfig", **url)
        assert "InvokeMode" not in made
        shown = await stage.call(stage.root, "lambda", "GetFunctionUrlConfig", FunctionName="f")
        assert shown["InvokeMode"] == "BUFFERED"
        changed = await stage.call(
            stage.root, "lambda", "UpdateFunctionUrlConfig", **url, InvokeMode="RESPONSE_STREAM"
        )
        assert changed["InvokeMode"] == "RESPONSE_STREAM"

    played(play)


def test_a_trace_names_files_where_amazon_has_them() -> None:
    async def play(stage: Stage) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("index.py", "def handler(event, context):\n    raise ValueError('no')\n")
        await new_function(stage, Code={"ZipFile": packed.getvalue()})
        answer = await stage.call(stage.root, "lambda", "Invoke", FunctionName="f")
        (line,) = orjson.loads(answer["Payload"])["stackTrace"]
        assert line.startswith('  File "/var/task/index.py", line 2, in handler\n')

    played(play)
