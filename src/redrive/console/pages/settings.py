"""Settings: those in effect and where each comes from, and the access keys."""

from dataclasses import fields, replace
from typing import Any, Final

from redrive.access.keys import AccessKey, KeyUse, is_account, new_access_key
from redrive.access.principals import account_root
from redrive.aws.wire.errors import AwsError
from redrive.console.nodes import Node
from redrive.console.visit import REFUSED, Missing, Page, Redirect, Visit
from redrive.model.queue import DAY_MS
from redrive.settings import Settings, row_of

_SHOWN_MAX: Final = 100
_IDLE_DAYS: Final = 30  # from when on a key looks forgotten
_DEFAULT: Final = "default"
_HELP: Final = {field.name: row_of(field).help for field in fields(Settings)}
_ANY_REGION: Final = "us-east-1"  # IAM has none


async def page(visit: Visit) -> Page:
    """The nodes, and of one of them, this one unless another is asked for, every setting in effect."""
    nodes = await visit.installation.nodes.all()
    own, name = nodes[0], visit.parameter("node")
    node = next((node for node in nodes if node.name == name), None) if name else own
    if node is None:
        raise Missing(f"There is no node {name[:100]} (any more).")
    text = visit.parameter("filter").strip()
    rows = [_setting_row(*setting) for setting in sorted(node.settings)]
    matches = [row for row in rows if text.lower() in f"{row['name']} {row['value']} {row['help']}".lower()]
    values = {
        "node": node,
        "is_own": node is own,
        "nodes": [_node_row(visit, each, own) for each in nodes],
        "changed": [row for row in matches if row["source"] != _DEFAULT],
        "others": [row for row in matches if row["source"] == _DEFAULT],
        "number": len(rows),
        "filter": text,
        "form": visit.link_anywhere("settings"),
        "kept": {"node": name, "at": visit.parameter("at")},
        "store": node.setting("store"),
    }
    return Page("settings.html", values)


def _setting_row(name: str, value: str, source: str) -> dict[str, str]:
    """A setting with what it does, where this version knows it."""
    return {"name": name, "value": value, "source": source, "help": _HELP.get(name, "")}


def _node_row(visit: Visit, node: Node, own: Node) -> dict[str, Any]:
    """A node with the settings in which it differs from this one; each has its own port where they share a host."""
    own_values = {name: value for name, value, _ in own.settings}
    differences = [name for name, value, _ in node.settings if own_values.get(name) != value]
    return {
        "node": node,
        "is_own": node is own,
        "silent": node is not own and node.is_silent(visit.installation.nodes.now()),
        "differing": differences,
        "link": visit.link_anywhere("settings", node=node.name),
    }


async def keys(visit: Visit) -> Page:
    """The access keys of the accounts that the visitor sees, without their secrets."""
    return await _keys_page(visit)


async def make_key(visit: Visit) -> Page:
    """Make a key; its secret is on this page and never again."""
    account = visit.session.account or visit.parameter("account").strip()
    user = visit.parameter("user").strip()
    if not is_account(account) or not visit.session.sees(account):
        return await _keys_page(visit, notice="An account is 12 digits.", status=REFUSED)
    if not user:
        new_key = new_access_key(account, visit.now, visit.engine.runtime.rng)
        await visit.installation.keyring.add(new_key)
        return await _keys_page(visit, new_key=(new_key.access_key_id, new_key.secret))
    try:
        answer = await visit.installation.services.call(
            "iam", "CreateAccessKey", {"UserName": user}, account_root(account), _ANY_REGION
        )
    except AwsError as error:
        return await _keys_page(visit, notice=error.message, status=REFUSED)
    key = answer["AccessKey"]
    return await _keys_page(visit, new_key=(key["AccessKeyId"], key["SecretAccessKey"]))


async def key_form(visit: Visit) -> Page:
    """A key that would be deleted: asked before it is done."""
    key = await _key(visit)
    values = {"key": key, "own": _is_own(visit, key), "back": _back(visit)}
    return Page("key_delete.html", values)


async def change_key(visit: Visit) -> Page | Redirect:
    """Disable, enable or delete a key, but never the one that the visitor signed in with."""
    key, verb = await _key(visit), visit.parameter("do")
    if _is_own(visit, key):
        notice = "You are signed in with that key: sign in with another to change it."
        return await _keys_page(visit, notice=notice, status=REFUSED)
    keyring = visit.installation.keyring
    if verb == "delete":
        await keyring.remove(key.access_key_id)
        return Redirect(_back(visit), sentence=f"{key.access_key_id} is deleted")
    if verb not in ("enable", "disable"):
        return await _keys_page(visit, notice="The form names no change of a key.", status=REFUSED)
    await keyring.put(replace(key, active=verb == "enable"))
    undo = visit.here.removeprefix(visit.base), {"do": ["disable" if verb == "enable" else "enable"]}
    return Redirect(_back(visit), sentence=f"{key.access_key_id} is {verb}d", undo=undo)


async def _key(visit: Visit) -> AccessKey:
    """The access key that the address names, if the visitor may see it; raises Missing otherwise."""
    key_id = visit.args["key"]
    for key in await visit.installation.keyring.all():
        if key.access_key_id == key_id and visit.session.sees(key.account):
            return key
    raise Missing(f"There is no access key {key_id[:100]}.")


def _key_row(visit: Visit, key: AccessKey, use: KeyUse | None) -> dict[str, Any]:
    """A key with its last use, and the days that it has lain idle where they are many."""
    idle_days = max(0, visit.now - (key.created_at if use is None else use.at)) // DAY_MS
    return {
        "key": key,
        "own": _is_own(visit, key),
        "change": visit.link_anywhere("settings", "keys", key.access_key_id),
        "use": use,
        "idle_days": idle_days if idle_days >= _IDLE_DAYS else 0,
    }


def _is_own(visit: Visit, key: AccessKey) -> bool:
    return visit.session.key_id == key.access_key_id


def _back(visit: Visit) -> str:
    return visit.link_anywhere("settings", "keys")


async def _keys_page(
    visit: Visit, *, notice: str = "", new_key: tuple[str, str] | None = None, status: int = 200
) -> Page:
    """The access keys that the visitor may see, and the id and secret of one just made (`new_key`)."""
    keyring = visit.installation.keyring
    keys = [key for key in await keyring.all() if visit.session.sees(key.account)]
    uses = await keyring.uses.of([key.access_key_id for key in keys[:_SHOWN_MAX]])
    rows = [_key_row(visit, key, uses.get(key.access_key_id)) for key in keys[:_SHOWN_MAX]]
    values = {
        "rows": rows,
        "more": max(0, len(keys) - _SHOWN_MAX),
        "notice": notice,
        "new_key": new_key,
        "fixed_account": visit.session.account,
        "typed_account": visit.parameter("account"),
        "user": visit.parameter("user"),
        "action": _back(visit),
        "back": visit.link_anywhere("settings"),
    }
    did = "" if new_key is None else f"{new_key[0]} is created"
    return Page("access_keys.html", values, status, did=did)
