"""Provisioned concurrency: environments that stand ready before anybody calls."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.aws.sqs.client import refused

#: Leaves a file for each process that loads it.
_LEAVES_A_FILE = """
import os

open(os.path.join(os.environ["FOLDER"], str(os.getpid())), "w").close()

def handler(event, context):
    if event == "exit":
        os._exit(1)
    return [os.getpid(), os.environ["AWS_LAMBDA_INITIALIZATION_TYPE"]]
"""
_ASKED_MAX = 5_000


class Kept:
    """A published version whose processes leave files."""

    def __init__(self, workshop: Workshop, folder: Path, source: str = _LEAVES_A_FILE) -> None:
        self.workshop = workshop
        self.folder = folder
        folder.mkdir(exist_ok=True)
        variables = {"Variables": {"FOLDER": str(folder)}}
        self.name = workshop.function(source, Environment=variables, Publish=True)

    @property
    def processes(self) -> set[int]:
        return {int(file.name) for file in self.folder.iterdir()}

    def put(self, count: int, qualifier: str = "1") -> dict[str, Any]:
        put = self.workshop.client.put_provisioned_concurrency_config
        put_config: dict[str, Any] = put(
            FunctionName=self.name, Qualifier=qualifier, ProvisionedConcurrentExecutions=count
        )
        return put_config

    def settled(self, qualifier: str = "1") -> Mapping[str, Any]:
        """The configuration, when its environments stand or could not be started."""
        for _ in range(_ASKED_MAX):
            found: Mapping[str, Any] = self.workshop.client.get_provisioned_concurrency_config(
                FunctionName=self.name, Qualifier=qualifier
            )
            if found["Status"] != "IN_PROGRESS":
                return found
        raise AssertionError(f"{self.name}:{qualifier} is still being prepared")

    def until_processes(self, count: int) -> set[int]:
        for _ in range(_ASKED_MAX):
            self.settled()
            if len(self.processes) >= count:
                break
        return self.processes


def test_environments_stand_ready_before_the_first_call(workshop: Workshop, tmp_path: Path) -> None:
    kept = Kept(workshop, tmp_path / "kept")
    put = kept.put(2)
    assert put.pop("ResponseMetadata")["HTTPStatusCode"] == 202
    assert len(put.pop("LastModified")) == 28
    assert put == {
        "RequestedProvisionedConcurrentExecutions": 2,
        "AllocatedProvisionedConcurrentExecutions": 0,
        "AvailableProvisionedConcurrentExecutions": 0,
        "Status": "IN_PROGRESS",
    }
    shown = kept.settled()
    assert (shown["Status"], shown["AllocatedProvisionedConcurrentExecutions"]) == ("READY", 2)
    ready = kept.processes
    assert len(ready) == 2
    process, kind = workshop.call(f"{kept.name}:1").payload
    assert (process in ready, kind) == (True, "provisioned-concurrency")
    assert workshop.call(kept.name).payload[1] == "on-demand"
    listed = workshop.client.list_provisioned_concurrency_configs(FunctionName=kept.name)
    (config,) = listed["ProvisionedConcurrencyConfigs"]
    assert (config["FunctionArn"], config["Status"]) == (f"{workshop.arn(kept.name)}:1", "READY")
    workshop.client.delete_provisioned_concurrency_config(FunctionName=kept.name, Qualifier="1")
    with refused(
        "ProvisionedConcurrencyConfigNotFoundException",
        "No Provisioned Concurrency Config found for this function",
        404,
    ):
        workshop.client.get_provisioned_concurrency_config(FunctionName=kept.name, Qualifier="1")


def test_an_environment_that_ends_is_replaced(workshop: Workshop, tmp_path: Path) -> None:
    kept = Kept(workshop, tmp_path / "kept")
    kept.put(1)
    assert kept.settled()["Status"] == "READY"
    assert workshop.call(f"{kept.name}:1", "exit").error == "Unhandled"
    assert len(kept.until_processes(2)) == 2
    assert workshop.call(f"{kept.name}:1").payload[0] in kept.processes


def test_code_that_cannot_be_loaded_has_failed(workshop: Workshop, tmp_path: Path) -> None:
    kept = Kept(workshop, tmp_path / "kept", "raise ValueError('no')\n")
    kept.put(1)
    shown = kept.settled()
    assert (shown["Status"], shown["AllocatedProvisionedConcurrentExecutions"]) == ("FAILED", 0)
    assert "no" in shown["StatusReason"]


def test_an_alias_takes_its_environments_along(workshop: Workshop, tmp_path: Path) -> None:
    kept = Kept(workshop, tmp_path / "kept")
    at = {"FunctionName": kept.name, "Name": "live"}
    workshop.client.create_alias(**at, FunctionVersion="1")
    kept.put(1, "live")
    assert kept.settled("live")["Status"] == "READY"
    text = "Version is pointed by a Provisioned Concurrency alias"
    with refused("ResourceConflictException", text, 409):
        kept.put(1, "1")
    workshop.client.update_function_configuration(FunctionName=kept.name, Timeout=19)
    workshop.client.publish_version(FunctionName=kept.name)
    workshop.client.update_alias(**at, FunctionVersion="2")
    first = kept.processes
    for _ in range(_ASKED_MAX):
        if kept.settled("live") and len(kept.processes) > len(first):
            break
    assert workshop.call(f"{kept.name}:live").payload[0] in kept.processes - first
    workshop.client.delete_alias(**at)
    assert not workshop.client.list_provisioned_concurrency_configs(FunctionName=kept.name)[
        "ProvisionedConcurrencyConfigs"
    ]


@pytest.mark.parametrize(
    ("qualifier", "count", "text"),
    [
        ("$LATEST", 1, "Provisioned Concurrency Configs cannot be applied to unpublished function versions."),
        (
            "1",
            901,
            (
                "Specified ConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its"
                " minimum value of [100]."
            ),
        ),
    ],
)
def test_impossible_configurations_are_refused(
    workshop: Workshop, tmp_path: Path, qualifier: str, count: int, text: str
) -> None:
    with refused("InvalidParameterValueException", text):
        Kept(workshop, tmp_path / "kept").put(count, qualifier)


def test_no_more_is_kept_than_is_reserved(workshop: Workshop, tmp_path: Path) -> None:
    kept = Kept(workshop, tmp_path / "kept")
    workshop.client.put_function_concurrency(FunctionName=kept.name, ReservedConcurrentExecutions=1)
    text = "Requested Provisioned Concurrency should not be greater than the reservedConcurrentExecution for function"
    with refused("InvalidParameterValueException", text):
        kept.put(2)
    kept.put(1)
    text = " ReservedConcurrentExecutions  0 should not be lower than function's total provisioned concurrency [1]."
    with refused("InvalidParameterValueException", text):
        workshop.client.put_function_concurrency(FunctionName=kept.name, ReservedConcurrentExecutions=0)
    with refused("ResourceNotFoundException", f"Function not found: {workshop.arn(kept.name)}:7", 404):
        kept.put(1, "7")
