"""Invariants of every run, whatever goes wrong."""

import enum


class Rule(enum.StrEnum):
    """A rule, as it is said when it is broken."""

    LOST = "nothing accepted is lost"
    BACK = "what was deleted does not come back"
    STALE = "no settlement by a stale token is accepted"
    HOLDS = "while a claim holds its token is accepted"
    EARLY = "nothing is handed out before its time"
    COUNTED = "each claim counts as one attempt"
    EXHAUSTED = "attempts never exceed the maximum"
    ORDER = "a group comes in its order"
    TOGETHER = "of a group no two claims hold at a time, unless a holder changed the time of one"
    BURIED = "each dead letter is in its queue exactly once"
    EXPIRED = "only what is out of its retention period expires"
    PURGED = "a purge takes what was there, and only where it was asked for"
    MOVED = "what is redriven leaves one queue and enters one other"
    WANTED = "who subscribed gets what is published from then on"
    FILTERED = "what a filter refuses never arrives"
    BATCHED = "what goes together keeps to its batch's limits"
    PACED = "no more is tried in a second than the rate allows, whoever tries"
    OVERDUE = "what is past its time is not tried, and what is not is not given up for it"
    RESTED = "an endpoint that rests is left alone"
    PROBED = "of an endpoint whose rest is over one thing is asked at a time, whoever asks"
    TAKEN = "what an endpoint took counts as taken, also when it answered late"
    SETTLED = (
        "what an endpoint took is not tried again when its node lives and the store was away for a moment"
    )
    LED = "what an end leads to arrives once, with that end"
    DEDUPLICATED = "a deduplicated message is one message"
    HONEST = "what a client is told, the store did"
    WHOLE = "whatever a call configures is there whole or not at all"
    FINAL = "a move task that ended stays as it ended"
    WOKEN = "what arrives wakes somebody who waits"
    RESTS = "when the faults stop everything comes to rest"
    AGREES = "what is in the store is what the books say"
    STANDS = "no part of a node dies alone"
    ANSWERS = "a client gets its answer, a refusal that is documented, or hears that the store is away"


class Violation(AssertionError):  # noqa: N818 - what happened, as it is said
    """A rule was broken."""

    def __init__(self, rule: Rule, details: object = "") -> None:
        super().__init__(f"{rule}: {details}")
        self.rule = rule


def require(holds: object, rule: Rule, *details: object) -> None:
    """Complain unless it holds."""
    if not holds:
        raise Violation(rule, " ".join(map(str, details)))
