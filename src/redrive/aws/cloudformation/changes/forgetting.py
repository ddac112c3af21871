"""Forgetting: a deleted stack is shown for 90 days, with its resources and events, and is gone then."""

from typing import Any, Final

from redrive.aws.cloudformation.documents.history import CHANGE_SET, EVENT, SIGNAL
from redrive.aws.cloudformation.documents.records import OPERATION, RESOURCE, STACK, TEMPLATE, Stack
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.queue import DAY_MS

KEPT_MS: Final = 90 * DAY_MS
_PAGE: Final = 500  # documents read in one turn
_BEHIND: Final[tuple[DocumentKind[Any], ...]] = (EVENT, RESOURCE, CHANGE_SET, SIGNAL, TEMPLATE)


async def forget_deleted(engine: Engine, now: int) -> int:
    """Remove all that is kept of stacks which were deleted longer ago than `KEPT_MS`; how many there were.

    The stack itself goes last, so that a node which dies in between leaves nothing that nobody finds.
    """
    documents = engine.resources.documents
    forgotten = 0
    for stack in await documents.find(STACK, ""):
        if stack.status != "DELETE_COMPLETE" or stack.deleted_at is None:
            continue
        if stack.deleted_at + KEPT_MS <= now:
            for kind in _BEHIND:
                await _remove_all(engine, kind, stack)
            await documents.remove(OPERATION, stack.key)
            forgotten += await documents.remove(STACK, stack.key)
    return forgotten


async def _remove_all(engine: Engine, kind: DocumentKind[Any], stack: Stack) -> None:
    documents = engine.resources.documents
    while stored_documents := await documents.stored(kind, f"{stack.key}/", limit=_PAGE):
        for key, _, _ in stored_documents:
            await documents.remove(kind, key)
