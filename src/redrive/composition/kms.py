"""Messages that keys of Amazon KMS encrypt, and the upkeep of those keys, whose material the root key wraps."""

import asyncio
import contextlib
from typing import Final

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.encryption.queue_key import QueueKey
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.parts import key_parts
from redrive.aws.kms.service import SERVICE
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Lifecycle
from redrive.engine.ports import Clock
from redrive.model.errors import StoreUnavailable

#: Keys are looked at so often for what fell due: a deleted key is of no use from its moment on, and destroyed by a look.
_ROUND_MS: Final = 6 * 60 * 60 * 1000


def extension(core: Core) -> Extension:
    """Keys that an older root key wrapped are wrapped anew when the server starts."""
    parts = key_parts(core.engine, core.root_key)
    queue_key = QueueKey(core.store, core.root_key, core.seal_by, core.runtime)
    encryption = Encryption(
        core.calls,
        parts.inside,
        queue_key,
        core.runtime,
        by_default=bool(core.settings.kms_root_key),
    )
    kinds = {kind.name for kind in SERVICE.documents}

    def changed(kind: str) -> None:
        if not kind or kind in kinds:
            encryption.forget_rights()

    core.engine.resources.documents.on_write(lambda kind, _key, _value: changed(kind))
    core.engine.resources.documents.on_forget(lambda kind, _key: changed(kind))
    upkeep = _Upkeep(parts.keyring, core.runtime.clock)
    return Extension(
        delivery=DeliveryParts(
            encryption=encryption,
        ),
        lifecycle=Lifecycle(
            prepare=(queue_key.open, parts.keyring.wrap_anew),
            start=(upkeep.start,),
            stop=(upkeep.stop,),
        ),
    )


class _Upkeep:
    """Destroys and rotates keys that nobody uses."""

    def __init__(self, keyring: KeyRing, clock: Clock) -> None:
        self._keyring = keyring
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run(), name="redrive-kms")

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            now = self._clock.now()
            with contextlib.suppress(StoreUnavailable):  # the next round does it
                await self._keyring.tidy(now)
            await self._clock.sleep_until(now + _ROUND_MS)
