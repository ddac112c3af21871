"""One server with everything on, and the clients of its services."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from tests.contracts.aws.clients import client
from tests.services.clients import Client
from tests.services.server import Server, serving

_FLAGS: Final = ("--clock", "simulated", "--allow-reset", "--functions", "on")
ROLE: Final = "arn:aws:iam::000000000000:role/functions"


@dataclass(frozen=True)
class Published:
    """A server, by what botocore publishes of its services."""

    server: Server

    def of(self, service: str) -> Client:
        return client(self.server.url, service, "json")

    def offers(self, service: str, operation: str) -> bool:
        """Ask with the least that the model takes, so that only an operation that is not there is refused as such."""
        api = self.of(service)
        model = api.meta.service_model.operation_model(operation)
        shape = model.input_shape
        try:
            self.call(service, operation, **({} if shape is None else least(shape)))
        except ClientError as refusal:
            error: Any = refusal.response["Error"]
            return not (
                f"does not offer the operation {service} {operation}" in error.get("Message", "")
                or (error["Code"] == "404" and model.http["method"] != "HEAD")  # a path that no operation has
            )
        return True

    def call(self, service: str, operation: str, **params: Any) -> Any:
        api = self.of(service)
        methods = {name: method for method, name in api.meta.method_to_api_mapping.items()}
        return getattr(api, methods[operation])(**params)


def least(shape: Any) -> Any:
    """The least value that a model takes: required members, a user, one item, the first word of an enumeration."""
    kind = shape.type_name
    if kind == "structure":
        return {
            name: least(member)
            for name, member in shape.members.items()
            if name in (*shape.required_members, "UserName")
        }
    if kind == "list":
        return [least(shape.member)]
    if kind == "string":
        return shape.enum[0] if shape.enum else "x" * max(1, shape.metadata.get("min", 1))
    return {"map": {}, "blob": b"x", "boolean": True, "timestamp": 1_700_000_000}.get(kind, 1)


@pytest.fixture(scope="package")
def published() -> Iterator[Published]:
    with serving("sqlite://:memory:", *_FLAGS) as server:
        yield Published(server)
        log = server.log.read_text()
        assert not [line for line in log.splitlines() if " ERROR " in line or "Traceback" in line], log[
            -5000:
        ]
