"""Carrying out a topic's data-protection policy on what is published to it.

What comes in is looked at before it is anybody's: audited, denied, or published without what was found. Of what goes
out each subscriber gets what the statements about whoever subscribed it leave, decided when it is published: queues
take it in that transaction, and what waits for an endpoint waits as it will be pushed.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import orjson

from redrive.aws.kit.call import Call
from redrive.aws.kit.messages import Entry
from redrive.aws.sns.devices import platform
from redrive.aws.sns.documents import names, subscription_state
from redrive.aws.sns.documents.errors import error
from redrive.aws.sns.protection.audit import AuditLog, Sample
from redrive.aws.sns.protection.identifiers.custom import CustomFinder
from redrive.aws.sns.protection.operations import policy_of
from redrive.aws.sns.protection.policy import (
    INBOUND,
    OUTBOUND,
    Audit,
    Deidentify,
    Deny,
    ProtectionPolicy,
    ProtectionStatement,
)
from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.names import id_text
from redrive.model.protection import Cut, Finder, Found, Text
from redrive.model.topic import Publication, Subscription, Topic

# Characters times identifiers: 0.4 ms as a rule. What takes longer is looked at beside the loop, which goes on; so is all
# that a custom identifier is looked for in, since its expression may take seconds for a text of any length.
_CHARS_AT_ONCE: Final = 64 * 1024
# Of their own: who makes them wait makes nobody wait but publishers of topics with a policy.
_THREADS: Final = 2
_SINGLE_TEXT: Final = ""  # the name of the text of a message without MessageStructure=json
_DEFAULT_TEXT: Final = "default"

Make = Callable[[Entry, bytes], Publication]
"""Makes a publication of an entry and the message's id."""


class Screening:
    """Looks at publications."""

    def __init__(self, engine: Engine, audit_log: AuditLog) -> None:
        self._engine = engine
        self._audit_log = audit_log
        self._threads = ThreadPoolExecutor(_THREADS, "redrive-screening")

    async def publication(self, call: Call, topic: Topic, entry: Entry, make: Make) -> Publication:
        """The publication of an entry to a topic that has a policy; its `screen` makes the versions for subscribers.

        Raises:
            AwsError: `AuthorizationError`: the policy denies it, or leaves nothing of it.
        """
        policy = policy_of(topic)
        message_id = self._engine.runtime.message_id()
        admitted_entry = await self._admit(call, topic, policy, entry, message_id)
        publication = make(admitted_entry, message_id)
        if admitted_entry is not entry and not publication.body:
            raise _prohibited(topic)
        outbound = policy.towards(OUTBOUND)
        if outbound:
            inspected_texts = await self._inspect_entry(admitted_entry, policy.finders_of(outbound))
            publication.screen = Screen(
                topic, policy, admitted_entry, inspected_texts, publication, make
            ).version_for
        return publication

    async def _admit(
        self, call: Call, topic: Topic, policy: ProtectionPolicy, entry: Entry, message_id: bytes
    ) -> Entry:
        """Audit what an entry has, refuse it, or return it after masking, as the inbound statements say."""
        statements = policy.about(INBOUND, call.principal.name)
        if not statements:
            return entry
        inspected_texts = await self._inspect_entry(entry, policy.finders_of(statements))
        for statement in statements:
            if isinstance(statement.operation, Audit):
                sample = Sample(
                    topic,
                    id_text(message_id),
                    call.principal.name,
                    call.now,
                    statement.identifiers,
                    list(inspected_texts.each.values()),
                )
                self._audit_log.write(statement.operation, sample)
        if _has_finds(Deny, statements, inspected_texts.each.values()):
            raise _prohibited(topic)
        return inspected_texts.without(entry, statements)

    async def _inspect_entry(self, entry: Entry, finders: Mapping[str, Finder]) -> "_InspectedTexts":
        """The findings in the texts of an entry; long texts are searched in a thread."""
        message: str = entry["Message"]
        structured = entry.get("MessageStructure") == "json"
        texts = {_SINGLE_TEXT: message}
        if structured:
            texts = {name: text for name, text in orjson.loads(message).items() if isinstance(text, str)}
        if _is_quick(message, finders):
            return _InspectedTexts(_inspect(texts, finders), structured)
        loop = asyncio.get_running_loop()
        return _InspectedTexts(
            await loop.run_in_executor(self._threads, _inspect, texts, finders), structured
        )


def _prohibited(topic: Topic) -> AwsError:
    return error(
        "AuthorizationError",
        "The topic's data protection policy prohibits this message from being published to"  # chosen, after outbound's
        f" {names.arn_of(topic.name)}",
    )


# ---- the texts of one message ------------------------------------------------------------------------------------


Inspection = tuple[Text, Found]
Inspections = Mapping[str, Inspection]


@dataclass(frozen=True, slots=True)
class _InspectedTexts:
    """The texts of a message and what was found in them: one, or with MessageStructure=json several, by name."""

    each: Inspections
    structured: bool

    def of(self, subscription: Subscription) -> list[Inspection]:
        """The inspections of the texts that a subscriber gets."""
        default = self.each.get(_DEFAULT_TEXT if self.structured else _SINGLE_TEXT)
        protocols = {subscription.protocol}
        if subscription.protocol == "application":
            protocols = set(platform.PLATFORMS)
        inspections = [inspection for name, inspection in self.each.items() if name in protocols]
        if default is not None and (not inspections or subscription.protocol == "application"):
            inspections.append(default)
        return inspections

    def without(self, entry: Entry, statements: Sequence[ProtectionStatement]) -> Entry:
        """The entry after masking and cutting; a protocol whose own text becomes empty gets the default text."""
        masked_texts = {name: _masked_text(inspection, statements) for name, inspection in self.each.items()}
        changed_texts = {name: text for name, text in masked_texts.items() if text is not None}
        if not changed_texts:
            return entry
        if not self.structured:
            return {**entry, "Message": changed_texts[_SINGLE_TEXT]}
        document = orjson.loads(entry["Message"]) | changed_texts
        for name, text in changed_texts.items():
            if not text and name != _DEFAULT_TEXT:
                del document[name]
        return {**entry, "Message": orjson.dumps(document).decode()}


def _is_quick(message: str, finders: Mapping[str, Finder]) -> bool:
    if any(isinstance(value, CustomFinder) for value in finders.values()):
        return False
    return len(message) * len(finders) <= _CHARS_AT_ONCE


def _inspect(texts: Mapping[str, str], finders: Mapping[str, Finder]) -> Inspections:
    searchable = {name: Text(text) for name, text in texts.items()}
    return {name: (text, text.search(finders)) for name, text in searchable.items()}


def _has_finds(
    kind: type[Deidentify] | type[Deny],
    statements: Iterable[ProtectionStatement],
    inspected: Iterable[Inspection],
) -> bool:
    """True if something was found that statements with this kind of operation look for."""
    names = {name for _, finds in inspected for name in finds}
    return any(
        isinstance(each.operation, kind) and not names.isdisjoint(each.identifiers) for each in statements
    )


def _masked_text(inspection: Inspection, statements: Iterable[ProtectionStatement]) -> str | None:
    """The text after masking and cutting by these statements, the first one first; None: they find nothing in it."""
    text, matches = inspection
    cuts = [
        Cut(start, end, each.operation.character)
        for each in statements
        if isinstance(each.operation, Deidentify)
        for name in each.identifiers
        for start, end in matches.get(name, ())
    ]
    return text.without(cuts) if cuts else None


# ---- what goes out -----------------------------------------------------------------------------------------------


class Screen:
    """One publication as its subscribers may see it."""

    def __init__(
        self,
        topic: Topic,
        policy: ProtectionPolicy,
        entry: Entry,
        texts: _InspectedTexts,
        publication: Publication,
        make: Make,
    ) -> None:
        """Show versions of this publication, which `make` made of an entry whose texts were inspected."""
        self._topic = topic
        self._policy = policy
        self._entry = entry
        self._texts = texts
        self._publication = publication
        self._make = make
        self._versions: dict[tuple[ProtectionStatement, ...], Publication] = {}

    def version_for(self, subscription: Subscription) -> Publication | Attempt:
        """The publication for one subscriber, or the reason for none; see `Publication.screen`."""
        statements = self._policy.about(OUTBOUND, _subscriber(subscription))
        inspections = self._texts.of(subscription)
        if _has_finds(Deny, statements, inspections):
            return self._refusal(subscription)
        if not _has_finds(Deidentify, statements, inspections):
            return self._publication
        version = self._masked_version(statements)
        return version if version.body_for(subscription.protocol) else self._refusal(subscription)

    def _masked_version(self, statements: tuple[ProtectionStatement, ...]) -> Publication:
        """The publication as these statements mask it, made once."""
        version = self._versions.get(statements)
        if version is None:
            entry = self._texts.without(self._entry, statements)
            version = self._versions[statements] = self._make(entry, self._publication.id)
        return version

    def _refusal(self, subscription: Subscription) -> Attempt:
        """The refusal, as the developer guide's delivery log shows it."""
        text = (
            "The topic's data protection policy prohibits this message from being delivered to"
            f" {names.subscription_arn(subscription)}"
        )
        return Attempt(AttemptResult.REFUSED, Reason.WITHHELD, 403, text)


def _subscriber(subscription: Subscription) -> str:
    """The principal that subscribed, or else the subscription's owner."""
    owner = f"arn:aws:iam::{subscription.owner}:root"
    return subscription.attributes.get(subscription_state.PRINCIPAL, owner)
