"""The users that keep the processes of functions apart."""

import zlib
from dataclasses import replace

from redrive.functions.isolation import Folders, command, user_of
from redrive.model.function import FunctionVersion, Isolation
from redrive.model.names import ResourceName

_KEY = b"one installation's"
_ORDERS = FunctionVersion(
    ResourceName("123456789012", "us-east-1", "orders"), "$LATEST", "r1", "python3.11", "app.handler", "/code"
)
_FOLDERS = Folders("/code", "/layers", "/runtime", "/temporary")


def _other(name: str) -> FunctionVersion:
    return replace(_ORDERS, name=_ORDERS.name._replace(name=name))


def test_all_versions_of_a_function_have_the_same_user() -> None:
    later = replace(_ORDERS, version="7", revision="r9")
    assert user_of(later, _KEY) == user_of(_ORDERS, _KEY) >= 200_000


def test_a_name_chosen_for_its_checksum_has_a_user_of_its_own() -> None:
    """Users were checksums of names, and a second name with the checksum of another is found in a moment."""

    def checksum(function: FunctionVersion) -> int:
        return zlib.crc32(function.name.key.encode()) % 65_536

    chosen = next(
        other for number in range(10_000_000) if checksum(other := _other(f"f{number}")) == checksum(_ORDERS)
    )
    assert user_of(chosen, _KEY) != user_of(_ORDERS, _KEY)


def test_users_cannot_be_told_without_the_installations_key() -> None:
    assert user_of(_ORDERS, _KEY) != user_of(_ORDERS, b"another installation's")


def test_a_process_with_a_user_of_its_own_begins_as_that_user() -> None:
    begun = command(Isolation.USER, 200_123, _FOLDERS, [])
    assert {"--reuid=200123", "--regid=200123", "--clear-groups", "--no-new-privs"} <= set(begun)
