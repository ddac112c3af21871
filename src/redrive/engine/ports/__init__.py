"""The engine's ports: a store, a clock and chance.

A store speaks in the engine's verbs, in batches, and never asks the time: every verb that depends on it takes
`now` (milliseconds since the epoch, UTC). Three promises hold for each verb that changes something:

* it is one transaction: all of it or nothing;
* when its awaitable is done, the change is on disk;
* a delivery that was claimed is only touched by the claim's own token.
"""

from redrive.engine.ports.documents import (
    Change,
    Creation,
    DocumentKind,
    Put,
    Removal,
    Remove,
    Require,
    RequireNone,
    Resource,
    Unremembered,
    refuse_repeated,
)
from redrive.engine.ports.inspection import (
    COUNTED_AT_ONCE,
    COUNTED_TOGETHER_MAX,
    CauseCount,
    LookRequest,
    fair_share,
)
from redrive.engine.ports.limits import (
    BACK_AMONG,
    GROUP_CALLS_MAX,
    NOTES_FIRST,
    NOTES_KEPT_MS,
    NOTES_LAST,
    OLDEST_AMONG,
    REMOVALS_MAX,
)
from redrive.engine.ports.profile import (
    DeathRecord,
    DeliveryProfile,
    FollowUp,
    SubscriptionContext,
    whole_envelope,
)
from redrive.engine.ports.pushing import (
    ONE_EACH,
    Batch,
    Endpoint,
    NeedsSetUp,
    Plan,
    PushRequest,
)
from redrive.engine.ports.requests import (
    AttemptNote,
    Cause,
    Claim,
    ClaimRequest,
    Counts,
    Enqueued,
    Moved,
    MovedTo,
    MoveRequest,
    NewDelivery,
    Occupied,
    OrderedPublication,
    Settled,
    Settlement,
    Swept,
    Target,
    merge_occupied,
)
from redrive.engine.ports.runtime import (
    Clock,
    Runtime,
    Timer,
)
from redrive.engine.ports.sealing import (
    SEAL_MARK,
    DocumentSealing,
    MessageSealing,
    OpenedDelivery,
    Sealer,
    is_sealed,
)
from redrive.engine.ports.store import DocumentStore, MessageStore, QueueStore, Store
from redrive.engine.ports.telemetry import (
    UNMEASURED,
    CommitMeter,
    LogSink,
    NodeStore,
    TelemetryStore,
)
from redrive.model.claiming import Claimed

__all__ = [
    "BACK_AMONG",
    "COUNTED_AT_ONCE",
    "COUNTED_TOGETHER_MAX",
    "GROUP_CALLS_MAX",
    "NOTES_FIRST",
    "NOTES_KEPT_MS",
    "NOTES_LAST",
    "OLDEST_AMONG",
    "ONE_EACH",
    "REMOVALS_MAX",
    "SEAL_MARK",
    "UNMEASURED",
    "AttemptNote",
    "Batch",
    "Cause",
    "CauseCount",
    "Change",
    "Claim",
    "ClaimRequest",
    "Claimed",
    "Clock",
    "CommitMeter",
    "Counts",
    "Creation",
    "DeathRecord",
    "DeliveryProfile",
    "DocumentKind",
    "DocumentSealing",
    "DocumentStore",
    "Endpoint",
    "Enqueued",
    "FollowUp",
    "LogSink",
    "LookRequest",
    "MessageSealing",
    "MessageStore",
    "MoveRequest",
    "Moved",
    "MovedTo",
    "NeedsSetUp",
    "NewDelivery",
    "NodeStore",
    "Occupied",
    "OpenedDelivery",
    "OrderedPublication",
    "Plan",
    "PushRequest",
    "Put",
    "QueueStore",
    "Removal",
    "Remove",
    "Require",
    "RequireNone",
    "Resource",
    "Runtime",
    "Sealer",
    "Settled",
    "Settlement",
    "Store",
    "SubscriptionContext",
    "Swept",
    "Target",
    "TelemetryStore",
    "Timer",
    "Unremembered",
    "fair_share",
    "is_sealed",
    "merge_occupied",
    "refuse_repeated",
    "whole_envelope",
]
