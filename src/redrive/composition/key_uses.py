"""Uses of access keys, noted in memory by each call: written to the store now and then, and at the end."""

import contextlib
from typing import Final

from redrive.composition.core import Core
from redrive.composition.extension import Extension, Lifecycle
from redrive.engine.upkeep import Upkeep
from redrive.model.errors import StoreUnavailable
from redrive.runtime.machine import SystemClock

# A key's first use is known to other nodes so soon.
ROUND_MS: Final = 60_000


def extension(core: Core) -> Extension:
    """Writes each minute when access keys were used, as far as the store is behind, and at the end all of it."""
    uses = core.keyring.uses
    upkeep = Upkeep(uses.write, SystemClock(), ROUND_MS, "key_uses.unwritten")

    async def stop() -> None:
        await upkeep.close()
        with contextlib.suppress(StoreUnavailable):
            await uses.write(behind_ms=0)

    return Extension(lifecycle=Lifecycle(start=[upkeep.start], stop=[stop]))
