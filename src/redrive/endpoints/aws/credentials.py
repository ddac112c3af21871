"""Credentials for calls to AWS: botocore's usual chain, asked without blocking the loop."""

import asyncio
from collections.abc import Callable
from typing import Final

import botocore.session
from botocore.credentials import Credentials, ReadOnlyCredentials, RefreshableCredentials

# Where there are none, the last place to be asked is a host that does not answer: a second each time.
_ABSENT_MS: Final = 60_000


class CredentialsUnavailable(Exception):  # noqa: N818 - the state of things
    """There should be credentials, and they cannot be had; the message says why."""


class AwsCredentials:
    """The credentials of `AWS_ACCESS_KEY_ID`, the shared files, a container or an instance.

    Keys that expire are renewed while they still hold. All of this asks files and hosts, and so has threads.

    Args:
        now: Milliseconds, for how long their absence is remembered.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._found: Credentials | None = None
        self._looking = asyncio.Lock()
        self._looked_at: int | None = None

    async def current(self) -> ReadOnlyCredentials | None:
        """The keys to sign with now; None where there are none.

        Raises:
            CredentialsUnavailable: They are said to be somewhere, and cannot be had from there.
        """
        try:
            found = self._found or await self._look()
            if isinstance(found, RefreshableCredentials) and found.refresh_needed():
                return await asyncio.to_thread(found.get_frozen_credentials)
            return None if found is None else found.get_frozen_credentials()
        except Exception as error:  # botocore lets through whatever its sources raise
            raise CredentialsUnavailable(str(error)) from error

    async def _look(self) -> Credentials | None:
        async with self._looking:
            if self._found is None and not self._known_absent():
                self._found = await asyncio.to_thread(_look)
                self._looked_at = self._now()
            return self._found

    def _known_absent(self) -> bool:
        return self._looked_at is not None and self._now() - self._looked_at < _ABSENT_MS


def _look() -> Credentials | None:
    return botocore.session.Session().get_credentials()
