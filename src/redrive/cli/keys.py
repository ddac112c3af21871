"""`redrive keys`: make, list and remove the access keys that `--auth required` accepts."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from redrive.access.identities import USER_KEYS_MAX, stored_user
from redrive.access.keys import (
    SECRET_CHARS_MIN,
    AccessKey,
    Keyring,
    KeyUse,
    chosen_access_key,
    new_access_key,
)
from redrive.cli.settings import add_settings, settings_of
from redrive.cli.terminal import CommandFailed, add_json, moment, note, print_json
from redrive.engine.ports import Runtime, Store
from redrive.model.errors import Conflict
from redrive.runtime.machine import SystemClock, real_runtime

_STORE = frozenset({"store", "store_key_file"})


def register(command: argparse.ArgumentParser) -> None:
    """Add its own commands."""
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="create a key and print it; the secret is shown only once")
    create.add_argument("--account", required=True, help="account of the key, 12 digits")
    create.add_argument(
        "--user", help="the user it belongs to, whose policies apply (default: the account itself)"
    )
    create.add_argument("--id", help="choose the key id, with --secret; for development")
    create.add_argument(
        "--secret", help="choose the secret; other users of this machine may see the command line"
    )
    create.set_defaults(run=_create)
    listing = actions.add_parser("list", help="list keys, without their secrets")
    add_json(listing)
    listing.set_defaults(run=_list)
    remove = actions.add_parser("remove", help="delete a key; running servers refuse it within 5 seconds")
    remove.add_argument("access_key_id")
    remove.set_defaults(run=_remove)
    for action in (create, listing, remove):
        add_settings(action, _STORE)


def _create(parsed: argparse.Namespace) -> int:
    """Make a key and print it once, with its secret; returns the exit status."""

    async def create(keyring: Keyring, store: Store, runtime: Runtime) -> int:
        try:
            key = _key(parsed, runtime)
        except ValueError as error:
            note(str(error))
            return 2
        if parsed.user is not None:
            key = await _as_key_of_user(key, parsed.user, keyring, store)
        try:
            await keyring.add(key)
        except Conflict:
            raise CommandFailed(f"there is a key {key.access_key_id} already; remove it first") from None
        print(f"AWS_ACCESS_KEY_ID={key.access_key_id}\nAWS_SECRET_ACCESS_KEY={key.secret}")
        return 0

    return _with_keyring(parsed, create)


async def _as_key_of_user(key: AccessKey, name: str, keyring: Keyring, store: Store) -> AccessKey:
    """The key as one of a user who exists and has room for another."""
    user = await stored_user(store, key.account, name)
    if user is None:
        raise CommandFailed(f"account {key.account} has no user {name}; make it with iam CreateUser")
    stored_keys = [
        each for each in await keyring.all() if (each.account, each.user) == (key.account, user.name)
    ]
    if len(stored_keys) >= USER_KEYS_MAX:
        raise CommandFailed(f"user {user.name} has {USER_KEYS_MAX} keys already; remove one first")
    return replace(key, user=user.name)


def _key(parsed: argparse.Namespace, runtime: Runtime) -> AccessKey:
    """A key that cannot be guessed, or the one that the command line names."""
    now = runtime.clock.now()
    if parsed.id is None and parsed.secret is None:
        return new_access_key(parsed.account, now, runtime.rng)
    if parsed.id is None or parsed.secret is None:
        raise ValueError("--id needs --secret, and --secret needs --id")
    if len(parsed.secret) < SECRET_CHARS_MIN:
        note(
            f"a secret of fewer than {SECRET_CHARS_MIN} characters can be guessed: use it for development only"
        )
    return chosen_access_key(parsed.account, parsed.id, parsed.secret, now)


def _list(parsed: argparse.Namespace) -> int:
    async def show(keyring: Keyring, _: Store, __: Runtime) -> int:
        keys = await keyring.all()
        uses = await keyring.uses.of([key.access_key_id for key in keys])
        if parsed.json:
            print_json({"keys": [_row(key, uses.get(key.access_key_id)) for key in keys]})
            return 0
        if not keys:
            note("there are no access keys")
        for key in keys:
            user = f"  {key.user}" if key.user else ""
            use = uses.get(key.access_key_id)
            usage = "" if use is None else f"  last used {moment(use.at)} by {use.service}"
            print(
                f"{key.access_key_id}  {key.account}  {'active' if key.active else 'inactive'}{user}{usage}"
            )
        return 0

    return _with_keyring(parsed, show)


def _row(key: AccessKey, use: KeyUse | None) -> dict[str, object]:
    document: dict[str, object] = {"id": key.access_key_id, "account": key.account, "active": key.active}
    if key.user:
        document["user"] = key.user
    if use is not None:
        document["last_used"] = use.to_document()
    return document


def _remove(parsed: argparse.Namespace) -> int:
    async def remove(keyring: Keyring, _: Store, __: Runtime) -> int:
        if await keyring.remove(parsed.access_key_id):
            return 0
        raise CommandFailed(f"there is no key {parsed.access_key_id}")

    return _with_keyring(parsed, remove)


def _with_keyring(
    parsed: argparse.Namespace, use: Callable[[Keyring, Store, Runtime], Awaitable[int]]
) -> int:
    """Run something with the access keys of the store that the settings name."""
    from redrive.composition.store import open_store  # noqa: PLC0415 - 60 ms of imports that other commands do not need

    settings, _ = settings_of(parsed)

    async def run() -> int:
        runtime = real_runtime(SystemClock())
        store = open_store(settings, runtime)
        await store.open()
        try:
            return await use(Keyring(store, runtime.clock), store, runtime)
        finally:
            await store.close()

    return asyncio.run(run())
