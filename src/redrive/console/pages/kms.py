"""Encryption keys of KMS: their states, what is encrypted with them, rotation and scheduled deletion."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.aws.kms.records import ALIAS, KEY, KmsKey
from redrive.aws.wire.errors import AwsError
from redrive.console.visit import PAGE_ROWS, REFUSED, Missing, Page, Redirect, Unusable, Visit

LOOKED_AT: Final = 1000  # queues, and topics, that may be encrypted with a key
_MASTER: Final = "KmsMasterKeyId"
#: What a form asks for: the operation, and what is told.
_CHANGES: Final[Mapping[str, tuple[str, str]]] = {
    "enable": ("EnableKey", "The key is enabled"),
    "disable": ("DisableKey", "The key is disabled: nothing can be decrypted with it"),
    "rotate": ("EnableKeyRotation", "The key is rotated automatically from now on"),
    "keep": ("DisableKeyRotation", "The key is no longer rotated automatically"),
    "cancel": ("CancelKeyDeletion", "The key is not deleted; enable it to use it"),
}
#: What a form asks for, to take back what another did. To cancel a deletion leaves the key disabled, as it became.
_OPPOSITES: Final = {"enable": "disable", "disable": "enable", "rotate": "keep", "keep": "rotate"}


async def listing(visit: Visit) -> Page:
    """The keys of an account's region, with their aliases."""
    beginning = f"{visit.scope.account}/{visit.scope.region}/"
    documents = visit.engine.resources.documents
    after = visit.parameter("after")
    keys = await documents.find(KEY, beginning, f"{beginning}{after}" if after else "", PAGE_ROWS + 1)
    page = keys[:PAGE_ROWS]
    aliases = await _aliases(visit)
    values = {
        "rows": [
            {
                "key": key,
                "state": key.state(visit.now),
                "aliases": aliases.get(key.id, []),
                "link": visit.link("kms", key.id),
            }
            for key in page
        ],
        "first": visit.link("kms") if after else "",
        "next": visit.link("kms", after=page[-1].id) if len(keys) > PAGE_ROWS else "",
    }
    return Page("kms_keys.html", values, live_seconds=10)


async def one(visit: Visit) -> Page:
    """A key: its state, and the queues and topics that are encrypted with it."""
    key = await _key(visit)
    values = {**await _values(visit, key), "change": visit.link("kms", key.id)}
    return Page("kms_key.html", values, live_seconds=10)


async def change(visit: Visit) -> Redirect:
    """Switch a key or its rotation, or take back its deletion."""
    choice = _CHANGES.get(visit.parameter("do"))
    if choice is None:
        raise Unusable("The form names no change of a key.")
    operation, sentence = choice
    await visit.call("kms", operation, {"KeyId": visit.args["key"]})
    opposite = _OPPOSITES.get(visit.parameter("do"))
    undo = None if opposite is None else _change_form(visit, opposite)
    return Redirect(visit.link("kms", visit.args["key"]), sentence=sentence, undo=undo)


def _change_form(visit: Visit, do: str) -> tuple[str, Mapping[str, Sequence[str]]]:
    """The form of a key's page that does something else with it, as what undoes a change."""
    return visit.link("kms", visit.args["key"]).removeprefix(visit.base), {"do": [do]}


async def delete_form(visit: Visit) -> Page:
    """The queues and topics that lose their messages with a key: asked before it is done."""
    return await _delete_page(visit, "")


async def schedule_deletion(visit: Visit) -> Page | Redirect:
    """Schedule the deletion of a key, whose id was typed."""
    key = await _key(visit)
    if visit.parameter("typed").strip() != key.id:
        return await _delete_page(visit, "Type the key's id: nothing was done.", REFUSED)
    params = {"KeyId": key.id, "PendingWindowInDays": visit.number("days", 30)}
    try:
        await visit.call("kms", "ScheduleKeyDeletion", params)
    except AwsError as error:
        return await _delete_page(visit, error.message, REFUSED)
    sentence = f"The key is deleted in {params['PendingWindowInDays']} days; until then Cancel undoes it"
    return Redirect(visit.link("kms", key.id), sentence=sentence, undo=_change_form(visit, "cancel"))


async def _delete_page(visit: Visit, notice: str, status: int = 200) -> Page:
    key = await _key(visit)
    values = {**await _values(visit, key), "notice": notice, "back": visit.link("kms", key.id)}
    return Page("kms_delete.html", values, status)


async def _key(visit: Visit) -> KmsKey:
    """The KMS key that the address names; raises Missing if there is none."""
    name = visit.scope._replace(name=visit.args["key"])
    key = await visit.engine.resources.documents.get(KEY, name.key)
    if key is None:
        raise Missing(f"There is no key {name.name[:100]} in {name.account} {name.region}.")
    return key


async def _values(visit: Visit, key: KmsKey) -> dict[str, Any]:
    """The values that the page of a key and the form for its deletion share."""
    aliases = (await _aliases(visit)).get(key.id, [])
    return {
        "key": key,
        "state": key.state(visit.now),
        "aliases": aliases,
        "encrypted": await _encrypted(visit, key, aliases),
        "looked_at": LOOKED_AT,
        "delete": visit.link("kms", key.id, "delete"),
        "list": visit.link("kms"),
    }


async def _aliases(visit: Visit) -> dict[str, list[str]]:
    """The aliases of the scope by the ids of their keys."""
    by_key: dict[str, list[str]] = {}
    beginning = f"{visit.scope.account}/{visit.scope.region}/"
    for alias in await visit.engine.resources.documents.find(ALIAS, beginning):
        by_key.setdefault(alias.key_id, []).append(alias.name.name)
    return by_key


async def _encrypted(visit: Visit, key: KmsKey, aliases: Sequence[str]) -> list[dict[str, str]]:
    """The queues and topics of the scope that are encrypted with a key, among the first so many."""
    region = f"arn:aws:kms:{key.name.region}:{key.name.account}"
    names = {key.id, key.arn, *aliases, *(f"{region}:{alias}" for alias in aliases)}
    queues = await visit.engine.resources.queues.find(visit.scope, "", LOOKED_AT)
    topics = await visit.engine.resources.topics.find(visit.scope, "", LOOKED_AT)
    resources = [
        {"kind": "queue", "name": queue.name.name, "link": visit.link("queues", queue.name.name)}
        for queue in queues
        if queue.attributes.get(_MASTER) in names
    ]
    return resources + [
        {"kind": "topic", "name": topic.name.name, "link": visit.link("topics", topic.name.name)}
        for topic in topics
        if topic.attributes.get(_MASTER) in names
    ]
