"""Ports of Firehose: what its operations tell the part that delivers."""

from typing import Protocol

from redrive.aws.firehose.records import DeliveryStream


class Buffers(Protocol):
    """Knows what waits in streams, and delivers it."""

    def added(self, stream: DeliveryStream, size: int, at: int) -> None:
        """Records of so many bytes are on disk since that moment (ms)."""
        ...

    def changed(self, stream: DeliveryStream) -> None:
        """A stream has other settings from now on."""
        ...
