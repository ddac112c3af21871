"""Messages that keys of Amazon KMS encrypt, and the upkeep of those keys, whose material the root key wraps."""

from typing import Final

from redrive.aws.encryption.data_keys import QueueKey
from redrive.aws.encryption.encryption import Encryption
from redrive.aws.kms.inside import key_parts
from redrive.aws.kms.service import SERVICE
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Lifecycle
from redrive.engine.upkeep import Upkeep

#: Keys are looked at so often for what fell due: a deleted key is of no use from its moment on, and destroyed by a look.
_ROUND_MS: Final = 6 * 60 * 60 * 1000


def extension(core: Core) -> Extension:
    """Encryption by KMS's keys; when the server starts, those that an older root key wrapped are wrapped anew."""
    parts = key_parts(core.engine, core.root_key)
    queue_key = QueueKey(core.store, core.root_key, core.seal_by, core.runtime)
    encryption = Encryption(
        core.calls,
        parts.inside,
        queue_key,
        core.runtime,
        by_default=bool(core.settings.kms_root_key),
        store=core.store,
    )
    kinds = {kind.name for kind in SERVICE.documents}

    def forget_rights(kind: str) -> None:
        """Rights depend on KMS's documents; without a kind, any may have changed."""
        if not kind or kind in kinds:
            encryption.forget_rights()

    core.engine.resources.documents.on_write(lambda kind, _key, _value: forget_rights(kind))
    core.engine.resources.documents.on_change_elsewhere(lambda kind, _key: forget_rights(kind))
    clock = core.runtime.clock
    upkeep = Upkeep(lambda: parts.keyring.tidy(clock.now()), clock, _ROUND_MS, "kms.unread")
    return Extension(
        delivery=DeliveryParts(encryption=encryption),
        lifecycle=Lifecycle(
            prepare=(queue_key.open, parts.keyring.wrap_anew), start=(upkeep.start,), stop=(upkeep.close,)
        ),
    )
