"""Situations in `situations.txt`: the policies in force, a request, and the answer that each of eight callers gets."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Document = dict[str, Any]

#: Words of the notation that stand for longer texts.
WORDS: Final = {
    "A": "111111111111",
    "X": "222222222222",
    "ann": "arn:aws:iam::111111111111:user/ann",
    "worker": "arn:aws:iam::111111111111:role/worker",
    "run": "arn:aws:sts::111111111111:assumed-role/worker/run",
    "other-run": "arn:aws:sts::111111111111:assumed-role/worker/other-run",
    "root": "arn:aws:iam::111111111111:root",
    "xann": "arn:aws:iam::222222222222:user/ann",
    "xworker": "arn:aws:iam::222222222222:role/worker",
    "xrun": "arn:aws:sts::222222222222:assumed-role/worker/run",
    "xroot": "arn:aws:iam::222222222222:root",
    "orders": "arn:aws:sqs:us-east-1:111111111111:orders",
    "invoices": "arn:aws:sqs:us-east-1:111111111111:invoices",
    "rentals": "arn:aws:sns:us-east-1:111111111111:rentals",
    "foreign": "arn:aws:sns:us-east-1:222222222222:rentals",
    "sns": "sns.amazonaws.com",
    "s3": "s3.amazonaws.com",
    "annid": "AIDAANNANNANNANNANNA",
    "workerid": "AROAWORKERWORKERWORK",
}
_KIND_OF: Final = {"sns": "Service", "s3": "Service"}
_PARTS: Final = re.compile(r" (to|on|if) ")
CALLERS: Final = ("root", "ann", "worker", "xroot", "xann", "xworker", "sns", "nobody")


@dataclass
class Situation:
    """One situation.

    Attributes:
        title: What is special about it.
        policies: By `resource`, `identity`, `boundary`, `session`: statements as JSON has them.
        action: What is asked.
        resource: Of which resource.
        keys: The condition keys of the request.
        policy_decides: Whether the resource's policy has to allow it, as those of keys and roles do.
        answers: By caller: `yes`, `-` and the kind of policy that does not allow it, `!` and the one that denies it.
    """

    title: str
    policies: dict[str, list[Document]] = field(default_factory=dict)
    action: str = "sqs:SendMessage"
    resource: str = WORDS["orders"]
    keys: dict[str, list[str]] = field(default_factory=dict)
    policy_decides: bool = False
    answers: dict[str, str] = field(default_factory=dict)

    def text(self, kind: str) -> str | None:
        """A policy as IAM has it; None where there is none."""
        statements = self.policies.get(kind)
        return None if statements is None else json.dumps({"Version": "2012-10-17", "Statement": statements})


def read(path: Path) -> Iterator[Situation]:
    """The situations of a file: paragraphs of a title and of lines `name: text`."""
    for paragraph in path.read_text().split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line.strip() and not line.startswith("#")]
        if lines:
            yield _situation(lines)


def _situation(lines: list[str]) -> Situation:
    situation = Situation(lines[0])
    for line in lines[1:]:
        name, _, text = line.strip().partition(":")
        text = text.strip()
        if name == "asks":
            action, _, resource = text.partition(" on ")
            situation.action, situation.resource = action, WORDS.get(resource, resource) or WORDS["orders"]
        elif name == "with":
            situation.keys |= {key: [_meant(each) for each in values] for key, values in _pairs(text)}
        elif name == "decides":
            situation.policy_decides = text == "resource"
        elif name == "answers":
            situation.answers = dict(pair.split("=") for pair in text.split())
            assert set(situation.answers) <= set(CALLERS), lines
        else:
            assert name in ("resource", "identity", "boundary", "session"), lines
            statements = [] if text == "nothing" else [statement(each, name) for each in text.split(" & ")]
            situation.policies[name] = situation.policies.get(name, []) + statements
    return situation


def statement(text: str, kind: str) -> Document:
    """A statement: `allow [not] actions [to [not] principals] [on [not] resources] [if operator key=values …]`."""
    head, *rest = _PARTS.split(f"{text} ")
    effect, _, actions = head.strip().partition(" ")
    whole: Document = {"Effect": effect.capitalize(), **_element("Action", actions)}
    parts = dict(zip(rest[::2], (part.strip() for part in rest[1::2]), strict=True))
    whole |= _element("Resource", parts.get("on", "orders" if kind == "resource" else "*"))
    if kind == "resource":
        whole |= _principal(parts.get("to", "*"))
    conditions: Document = {}
    for condition in filter(None, parts.get("if", "").split(" and ")):
        operator, _, comparison = condition.partition(" ")
        for key, values in _pairs(comparison):
            conditions.setdefault(operator, {})[key] = [_meant(value) for value in values]
    return whole | ({"Condition": conditions} if conditions else {})


def _element(name: str, text: str) -> Document:
    negated = text.startswith("not ")
    values = [_meant(value) for value in text.removeprefix("not ").split(",")]
    return {f"Not{name}" if negated else name: values}


def _principal(text: str) -> Document:
    negated = text.startswith("not ")
    names = text.removeprefix("not ").split(",")
    element: Any = "*"
    if names != ["*"]:
        element = {}
        for name in names:
            element.setdefault(_KIND_OF.get(name, "AWS"), []).append(_meant(name))
    return {"NotPrincipal" if negated else "Principal": element}


def _pairs(text: str) -> Iterator[tuple[str, list[str]]]:
    for pair in text.split():
        key, _, values = pair.partition("=")
        yield key, values.split(",") if values else []


def _meant(word: str) -> str:
    return WORDS.get(word, word)
