"""Blobs of dead letters: Event Grid copies them to a container some minutes after their last attempt."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.settings import delivery_settings
from redrive.azure.wire.arm_id import ArmId
from redrive.console.visit import Visit
from redrive.model.topic import Subscription

BLOBS_MAX: Final = 20
_PART: Final = re.compile(r"(?!\.{1,2}$)[\w.$ -]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class BlobFolder:
    """The folder of a container that the dead letters of an event subscription are copied to."""

    account: str  # Storage account
    container: str  # Name of the container
    folder: str  # The beginning of its blobs' names

    @property
    def text(self) -> str:
        """The folder in one line: `letters/dead/BILLING`."""
        return f"{self.account}/{self.container}/{self.folder}"

    @property
    def command(self) -> str:
        """The command that lists its blobs."""
        return (
            f"az storage blob list --account-name {shlex.quote(self.account)}"
            f" --container-name {shlex.quote(self.container)} --prefix {shlex.quote(self.folder)}/"
        )


def folder_of(subscription: Subscription | None) -> BlobFolder | None:
    """The folder of a subscription's dead letters; None: they are not copied."""
    if subscription is None or not names.is_event_topic(subscription.topic):
        return None
    settings = delivery_settings(subscription)
    resource = None if settings.dead_letter_container is None else ArmId.parse(settings.dead_letter_container)
    if resource is None:
        return None
    return BlobFolder(resource.parts[1], resource.parts[-1], _folder(subscription, ArmId.parse(settings.id)))


def _folder(subscription: Subscription, resource: ArmId | None) -> str:
    if names.is_namespace_topic(subscription.topic) and resource is not None:
        return "/".join(resource.names)
    return subscription.id.upper()


async def newest_in(visit: Visit, folder: BlobFolder) -> Sequence[tuple[str, int]] | None:
    """The names and sizes (bytes) of the newest blobs; None: they are not in a folder of this server."""
    if not all(_PART.fullmatch(part) for part in folder.text.split("/")):
        return None
    containers = visit.installation.containers
    return await containers.newest(folder.account, folder.container, folder.folder, BLOBS_MAX)


async def copies_of(
    visit: Visit, sources: Iterable[object]
) -> list[tuple[BlobFolder, Sequence[tuple[str, int]] | None]]:
    """The folders that the dead letters of a queue's sources are copied to, each with its newest blobs."""
    folders = [folder_of(each) for each in sources if isinstance(each, Subscription)]
    return [(folder, await newest_in(visit, folder)) for folder in folders if folder is not None]
