"""Refused requests: counted by reason, and logged once a minute for each address."""

import logging
from dataclasses import dataclass

import pytest

from redrive.access.refusals import ADDRESSES_MAX, QUIET_MS, Refusals
from redrive.testing import SimulatedClock


@dataclass
class Guesser:
    """Somebody at an address, who tries one key after the other."""

    refusals: Refusals
    address: str = "192.0.2.1"

    def tries(self, times: int = 1, *, identity: str = "AKIAGUESS") -> None:
        for _ in range(times):
            self.refusals.add("SignatureDoesNotMatch", address=self.address, identity=identity)


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(0)


@pytest.fixture
def refusals(clock: SimulatedClock, caplog: pytest.LogCaptureFixture) -> Refusals:
    caplog.set_level(logging.WARNING, "redrive.access.refusals")
    return Refusals(clock)


def test_each_is_counted_and_the_first_of_a_minute_is_logged(
    refusals: Refusals, clock: SimulatedClock, caplog: pytest.LogCaptureFixture
) -> None:
    guesser = Guesser(refusals)
    guesser.tries(100)
    assert len(caplog.messages) == 1
    clock.take_up(QUIET_MS)
    guesser.tries()
    assert refusals.totals == {"SignatureDoesNotMatch": 101}
    assert caplog.messages == [
        "authentication.refused address=192.0.2.1 identity='AKIAGUESS' reason=SignatureDoesNotMatch unlogged=0",
        "authentication.refused address=192.0.2.1 identity='AKIAGUESS' reason=SignatureDoesNotMatch unlogged=99",
    ]


def test_addresses_are_logged_apart(refusals: Refusals, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        Guesser(refusals, f"192.0.2.{number}").tries(10)
    assert len(caplog.messages) == 3


def test_a_made_up_identity_breaks_no_line_and_fills_no_log(
    refusals: Refusals, caplog: pytest.LogCaptureFixture
) -> None:
    Guesser(refusals).tries(identity="x\nserver.ready" + "y" * 10_000)
    (line,) = caplog.messages
    assert "\n" not in line
    assert len(line) < 200


def test_more_addresses_than_are_kept_apart_are_counted_and_not_logged(
    refusals: Refusals, clock: SimulatedClock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(2 * ADDRESSES_MAX):
        Guesser(refusals, f"2001:db8::{number:x}").tries(2)
    assert len(caplog.messages) == ADDRESSES_MAX
    clock.take_up(QUIET_MS)
    Guesser(refusals, "2001:db8:1::").tries()
    assert caplog.messages[-1].endswith(f"unlogged={3 * ADDRESSES_MAX}")
    assert refusals.totals == {"SignatureDoesNotMatch": 4 * ADDRESSES_MAX + 1}
