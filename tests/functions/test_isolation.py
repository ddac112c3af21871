"""The users that keep the processes of functions apart, and the machines that cannot."""

import itertools
import os
import zlib
from pathlib import Path

import pytest

from redrive.functions.isolation import Folders, Owner, Tools, command, find_tools, owner_of
from redrive.model.errors import Refused
from redrive.model.function import Isolation
from redrive.model.names import ResourceName

_KEY = b"one installation's"
_ORDERS = ResourceName("123456789012", "us-east-1", "orders")
_FOLDERS = Folders("/code", "/layers", "/runtime", "/temporary")
_TOOLS = Tools("/usr/bin/prlimit", "/usr/bin/setpriv", "/usr/bin/bwrap", "/usr/bin/python3")


def test_each_environment_has_a_user_and_each_function_a_group() -> None:
    first, second = (owner_of(_ORDERS, f"/environments/{mark}", _KEY) for mark in ("a", "b"))
    assert owner_of(_ORDERS, "/elsewhere/a", _KEY) == first
    assert first.user != second.user
    assert first.group == second.group
    assert min(first) >= 200_000


def test_a_name_chosen_for_its_checksum_has_a_group_of_its_own() -> None:
    """Users were checksums of names, and a second name with the checksum of another is found in a moment."""

    def checksum(function: ResourceName) -> int:
        return zlib.crc32(function.key.encode()) % 65_536

    names = (_ORDERS._replace(name=f"f{number}") for number in range(10_000_000))
    chosen = next(name for name in names if checksum(name) == checksum(_ORDERS))
    assert owner_of(chosen, "/a", _KEY).group != owner_of(_ORDERS, "/a", _KEY).group


def test_users_cannot_be_told_without_the_installations_key() -> None:
    ours, theirs = (owner_of(_ORDERS, "/a", key) for key in (_KEY, b"another installation's"))
    assert ours.user != theirs.user
    assert ours.group != theirs.group


def test_a_process_with_a_user_of_its_own_begins_as_that_user() -> None:
    begun = command(Isolation.USER, _TOOLS, Owner(200_123, 200_456), _FOLDERS, [], 512)
    assert {"--reuid=200123", "--regid=200456", "--clear-groups", "--no-new-privs"} <= set(begun)


@pytest.mark.parametrize("isolation", list(Isolation))
def test_every_program_in_the_chain_is_an_absolute_path(isolation: Isolation) -> None:
    begun = command(isolation, _TOOLS, Owner(1, 2), _FOLDERS, [], 512)
    first = [begun[0], *(after for word, after in itertools.pairwise(begun) if word == "--")]
    assert all(Path(program).is_absolute() for program in first), first


def test_namespaces_are_refused_to_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(Refused, match="run the server as another user"):
        find_tools(Isolation.BUBBLEWRAP)


def test_users_are_refused_to_all_but_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Refused, match="only where the server runs as root"):
        find_tools(Isolation.USER)
