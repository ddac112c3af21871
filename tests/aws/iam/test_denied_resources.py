"""Every operation of every service, asked by a user who may everything but what is about one resource.

The resource is named in each way that the published models allow: by name, by ARN, by an id or an alias that leads to it,
encoded in a path, by a prefix, within a list. An operation that names no resource is denied as well. A twin of the
resource, which no policy speaks of, shows that the Deny is no wider than that.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

import pytest

from redrive.aws.services import FOLDERS
from redrive.aws.wire.shapes import Shape, Structure
from tests.aws.iam.denied_cases import CASES, Case
from tests.aws.iam.test_closed_by_default import required
from tests.aws.stage import OTHER, Key, Stage, allow, deny, on_stage, signed

#: The published model refuses the value, or something has the name already.
NO_VALUE: Final = ("validation error", "EntityAlreadyExists")
#: By policies; or an operation on whole functions refuses a name with a version.
REFUSED: Final = (
    *("is not authorized to perform", "Access Denied", "Aliases and versions do not support"),
    *("do not support adding policies for $LATEST", "does not match the specified qualifier"),
    "$LATEST version cannot be deleted without deleting the function",
)


@dataclass(frozen=True)
class Question:
    """A request that is about a denied resource, or about its twin."""

    service: str
    operation: str
    params: Structure
    spelling: str
    value: str = "\n"
    encoded: str = ""

    @property
    def name(self) -> str:
        return f"{self.service} {self.operation} by {self.spelling}"


async def is_denied(stage: Stage, key: Key, question: Question) -> bool:
    """True if the caller's policies refuse it, or the published model refuses the spelling."""
    client = stage.client(question.service)
    request = client.request(question.operation, question.params)
    path = request.path
    if question.encoded:
        hidden = "".join(f"%{byte:02x}" for byte in question.encoded.encode())
        path = path.replace(quote(question.encoded, safe=""), hidden).replace(question.encoded, hidden)
    if question.service == "s3":  # which signs paths decoded
        request = replace(signed(request, "s3", key), path=path)
    else:
        request = signed(replace(request, path=path), question.service, key)
    response = await stage.send(request)
    told = response.body.decode(errors="replace")
    if any(text in told for text in REFUSED):
        return True  # `DeleteObjects` says so of each object, in an answer of 200
    member = question.spelling.partition("=")[0]
    names_value = question.value in told or f"at '{member[0].lower()}{member[1:]}'" in told
    return response.status >= 400 and names_value and any(text in told for text in NO_VALUE)


def filled(shape: Shape, case: Case, operation: str) -> Structure:
    """All that an operation requires, about the twin where the case has no other value."""
    values = {**case.values.get("*", {}), **case.values.get(operation, {})}
    params: Structure = required(shape)
    params |= {name: value for name, value in values.items() if name in shape.members}
    for name, twin in case.twins.items():
        if name in params and name not in values:
            params[name] = [twin] if shape.members[name].shape.type == "list" else twin
    return params


def questions(service: str, case: Case, operation: str, shape: Shape) -> Iterator[Question]:
    """Everything that an operation can be asked about a denied resource."""
    plain = filled(shape, case, operation)
    naming = [name for name in case.spellings if name in shape.members]
    for name in naming:
        member = shape.members[name]
        for value in case.spellings[name]:
            if member.shape.type == "list":
                yield Question(service, operation, {**plain, name: [value]}, f"{name}=[{value}]", value)
                yield Question(
                    service,
                    operation,
                    {**plain, name: [case.twins[name], value]},
                    f"{name}=[…, {value}]",
                    value,
                )
                continue
            yield Question(service, operation, {**plain, name: value}, f"{name}={value}", value)
            if member.location == "uri" and value == case.spellings[name][0]:
                params = {**plain, name: value}
                yield Question(service, operation, params, f"{name}={value}, encoded", value, value)
    if not naming:
        yield Question(service, operation, plain, "nothing")


async def passed(stage: Stage, key: Key, service: str, case: Case, shapes: Mapping[str, Shape]) -> list[str]:
    """The questions about a denied resource that policies do not refuse."""
    asked = (
        question
        for operation in sorted(shapes.keys() - case.open)
        for question in questions(service, case, operation, shapes[operation])
    )
    return [question.name for question in asked if not await is_denied(stage, key, question)]


async def refused(stage: Stage, key: Key, service: str, case: Case, shapes: Mapping[str, Shape]) -> list[str]:
    """The operations on a twin that policies refuse; what deletes it comes last."""
    told = []
    for operation in sorted(shapes, key=lambda name: (name.startswith("Delete"), name)):
        params = filled(shapes[operation], case, operation)
        twins = {name: twin for name, twin in case.twins.items() if isinstance(params.get(name), str | bytes)}
        question = Question(service, operation, params | twins, "its twin")
        if case.twins.keys() & params.keys() and await is_denied(stage, key, question):
            told.append(operation)
    return told


@pytest.mark.parametrize("service", sorted(FOLDERS))
def test_a_deny_of_one_resource_holds_however_it_is_named(service: str) -> None:
    async def play(stage: Stage) -> None:
        await stage.server.parts.open_all()
        facades = stage.server.core.services
        assert facades.keys() == FOLDERS.keys()
        case, model = await CASES[service](stage), stage.client(service).service
        shapes = {name: model.operation(name).input for name in facades[service].operations}
        prefix = "apigateway" if service == "apigatewayv2" else service
        for number, arns in enumerate(case.arns):
            ann = await stage.user(f"ann{number}", allow("*"), deny(f"{prefix}:*", on=list(arns)))
            assert await passed(stage, ann, service, case, shapes) == []
        assert await refused(stage, ann, service, case, shapes) == []

    on_stage(play, functions="on")


def test_a_deny_of_one_object_holds_within_a_list_of_objects() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "s3", "CreateBucket", Bucket="bucket")
        for name in ("secret/x", "open"):
            await stage.call(stage.root, "s3", "PutObject", Bucket="bucket", Key=name, Body=b"x")
        listed = {"Delete": {"Objects": [{"Key": "open"}, {"Key": "secret/x"}]}}
        against = deny("s3:DeleteObject", on="arn:aws:s3:::bucket/secret/*")
        for ann, allowed in (
            ("ann", allow("s3:*")),
            ("bob", allow("s3:DeleteObject", on="arn:aws:s3:::bucket/*")),
        ):
            key = await stage.user(ann, allowed, against)
            answer = await stage.call(key, "s3", "DeleteObjects", Bucket="bucket", **listed)
            assert [each["Key"] for each in answer["Deleted"]] == ["open"]
            assert [(each["Key"], each["Code"]) for each in answer["Errors"]] == [
                ("secret/x", "AccessDenied")
            ]
        left = await stage.call(stage.root, "s3", "ListObjectsV2", Bucket="bucket")
        assert [each["Key"] for each in left["Contents"]] == ["secret/x"]
        for code, params in (
            ("NoSuchBucket", {"Bucket": "nobodys"}),
            ("AccessDenied", {"ExpectedBucketOwner": OTHER}),
        ):
            refusal = await stage.refusal(
                stage.root, "s3", "DeleteObjects", **{"Bucket": "bucket", **listed, **params}
            )
            assert refusal.startswith(code)

    on_stage(play)
