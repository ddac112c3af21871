"""Lambda's recorded answers."""

import io
import zipfile
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from tests.aws.iam.stage import ACCOUNT, REGION, Stage, on_stage

FUNCTION: Final = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function"
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/functions"


def played(play: Callable[[Stage], Awaitable[None]], **settings: Any) -> None:
    """Play on a stage that has functions."""
    on_stage(play, auth="off", functions="on", **settings)


def package() -> bytes:
    """A deployment package of one handler."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", "def handler(event, context):\n    return event\n")
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
        assert refusal == f"ResourceNotFoundException: Function not found: {FUNCTION}:function"

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
