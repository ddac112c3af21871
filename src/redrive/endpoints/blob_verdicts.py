"""Verdicts on blobs that could not be written.

The library says it in words, of which these are read: `… in 3ms - Server returned non-2xx status code: 404 Not Found:
<body>`, then, after an empty line, the chain of causes by the names of their types. The contract suite has an example
of each, so that a version which speaks otherwise is noticed.
"""

import errno
import re
from typing import Final

from obstore.exceptions import BaseError

from redrive.endpoints import verdicts
from redrive.endpoints.azure.storage_verdicts import BY_STATUS
from redrive.endpoints.verdicts import Verdict
from redrive.model.attempt import AttemptResult, Reason

# The beginning has the URL in it, which may have a signature in it.
_SAID: Final = re.compile(r"(?:.* in [\d.]+\S* - )?(?P<said>.*?)(?:\n\nDebug source:|\Z)", re.DOTALL)
_STATUS: Final = re.compile(r".*status code: (?P<status>\d{3})[^:\n]*(?:: )?(?P<body>.*)", re.DOTALL)
_ERRNO: Final = re.compile(r"os error (?P<number>\d+)")

_BY_ERRNO: Final = {
    errno.EACCES: Reason.DENIED,
    errno.EPERM: Reason.DENIED,
    errno.EROFS: Reason.DENIED,
    errno.ENOSPC: Reason.FULL,
    errno.EDQUOT: Reason.FULL,
}
_BY_WORD: Final = {
    "dns error": Reason.NAME_NOT_RESOLVED,
    "TimedOut": Reason.TIMED_OUT,
    "Elapsed": Reason.TIMED_OUT,
    "ertificate": Reason.TLS,
    "CorruptMessage": Reason.TLS,
}


def of_failure(error: Exception) -> Verdict:
    """The verdict on an attempt that raised this error.

    A container that is not there will not be there soon: the dead letters of Event Grid that want to go there are
    dropped. Keys may be mended and disks emptied, so those are tried again.
    """
    match error:
        case OSError(errno=int() as number):
            return _of_system(number, str(error))
        case BaseError() | OSError() if not isinstance(error, TimeoutError):
            return _of_words(str(error))
        case _:
            return verdicts.of_failure(error)


def _of_system(number: int, said: str) -> Verdict:
    return Verdict(AttemptResult.FAILED, _BY_ERRNO.get(number, Reason.SERVER_ERROR), response=said)


def _of_words(text: str) -> Verdict:
    read = _SAID.match(text)
    said = read["said"] if read else text
    answered = _STATUS.match(said)
    if answered:
        return verdicts.of_status(int(answered["status"]), answered["body"] or said, BY_STATUS)
    system = _ERRNO.search(said)
    if system:
        return _of_system(int(system["number"]), said)
    reason = next((reason for word, reason in _BY_WORD.items() if word in text), Reason.CONNECTION)
    return Verdict(AttemptResult.FAILED, reason, response=said)
