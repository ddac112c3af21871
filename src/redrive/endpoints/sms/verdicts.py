"""Verdicts on a message centre's statuses (SMPP 3.4, 5.1.3).

Each has the HTTP status nearest to it. What asks for a slower pace, says that the centre is in trouble, or is a status of
the centre's own, may pass; what is wrong with the message will be wrong again.
"""

from collections.abc import Sequence
from typing import Final

from redrive.endpoints import verdicts
from redrive.endpoints.sms.pdu import OK, Said
from redrive.endpoints.verdicts import FULL, IN_TROUBLE, INVALID, NOT_AUTHENTICATED, THROTTLED, Verdict
from redrive.model.attempt import AttemptResult


class BindRefused(ConnectionError):  # noqa: N818 - said of a bind
    """The message centre refused the login: an error of settings, which can be mended in time."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(_text(status, words))
        self.status = status


_NAMES: Final = {
    0x01: "ESME_RINVMSGLEN",
    0x02: "ESME_RINVCMDLEN",
    0x03: "ESME_RINVCMDID",
    0x04: "ESME_RINVBNDSTS",
    0x05: "ESME_RALYBND",
    0x06: "ESME_RINVPRTFLG",
    0x07: "ESME_RINVREGDLVFLG",
    0x08: "ESME_RSYSERR",
    0x0A: "ESME_RINVSRCADR",
    0x0B: "ESME_RINVDSTADR",
    0x0C: "ESME_RINVMSGID",
    0x0D: "ESME_RBINDFAIL",
    0x0E: "ESME_RINVPASWD",
    0x0F: "ESME_RINVSYSID",
    0x14: "ESME_RMSGQFUL",
    0x15: "ESME_RINVSERTYP",
    0x43: "ESME_RINVESMCLASS",
    0x45: "ESME_RSUBMITFAIL",
    0x48: "ESME_RINVSRCTON",
    0x49: "ESME_RINVSRCNPI",
    0x50: "ESME_RINVDSTTON",
    0x51: "ESME_RINVDSTNPI",
    0x53: "ESME_RINVSYSTYP",
    0x54: "ESME_RINVREPFLAG",
    0x58: "ESME_RTHROTTLED",
    0x61: "ESME_RINVSCHED",
    0x62: "ESME_RINVEXPIRY",
    0x63: "ESME_RINVDFTMSGID",
    0x64: "ESME_RX_T_APPN",
    0x65: "ESME_RX_P_APPN",
    0x66: "ESME_RX_R_APPN",
    0xC0: "ESME_RINVOPTPARSTREAM",
    0xC1: "ESME_ROPTPARNOTALLWD",
    0xC2: "ESME_RINVPARLEN",
    0xC3: "ESME_RMISSINGOPTPARAM",
    0xC4: "ESME_RINVOPTPARAMVAL",
    0xFE: "ESME_RDELIVERYFAILURE",
    0xFF: "ESME_RUNKNOWNERR",
}
_TROUBLE: Final = (IN_TROUBLE, 500)
_INVALID: Final = (INVALID, 400)
_TOO_LARGE: Final = (verdicts.TOO_LARGE, 413)
_BY_STATUS: Final = {
    **dict.fromkeys((0x02, 0x03, 0x06, 0x07, 0x0A, 0x0B, 0x0C, 0x15, 0x43, 0x48, 0x49, 0x50, 0x51), _INVALID),
    **dict.fromkeys((0x53, 0x54, 0x61, 0x62, 0x63, 0x65, 0x66, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4), _INVALID),
    0x01: _TOO_LARGE,
    0x14: (FULL, 507),
    0x58: (THROTTLED, 429),
}
_BIND_DENIED: Final = frozenset({0x0D, 0x0E, 0x0F, 0x53})


def of_status(status: int, answer: Said) -> Verdict:
    """The verdict on a submission's status."""
    if status == OK:
        return _accepted(answer.name)
    meaning, nearest = _BY_STATUS.get(status, _TROUBLE)
    return meaning.verdict(nearest, _text(status, answer.words))


def of_all(parts: Sequence[Verdict]) -> Verdict:
    """The verdict on a text of several parts: a refused part ends it, a failed part is sent again."""
    for result in (AttemptResult.REFUSED, AttemptResult.FAILED):
        for verdict in parts:
            if verdict.result is result:
                return verdict
    names = ",".join(name for verdict in parts for _, name in verdict.identifiers)
    return _accepted(names)


def of_failure(error: BaseException) -> Verdict:
    """The verdict on a missing answer; only a text that cannot be sent is not tried again."""
    if not isinstance(error, BindRefused):
        return verdicts.of_failure(error)
    meaning, nearest = (NOT_AUTHENTICATED, 401) if error.status in _BIND_DENIED else _TROUBLE
    return meaning.verdict(nearest, f"bind: {str(error) or type(error).__name__}")


def too_long(parts: int, parts_max: int) -> Verdict:
    """A text of more parts than their numbers have room for."""
    meaning, nearest = _TOO_LARGE
    return meaning.verdict(nearest, f"{parts} parts; there are at most {parts_max}")


def _accepted(names: str) -> Verdict:
    return verdicts.ACCEPTED.verdict(200, identifiers=(("message_id", names),))


def _text(status: int, words: str) -> str:
    name = _NAMES.get(status, f"0x{status:08X}")
    return f"{name}: {words}" if words else name
