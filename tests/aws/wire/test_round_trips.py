"""Every operation of every service, both ways, against botocore's own serialisers and parsers."""

import pytest

from redrive.aws.gateway.recognise import recognise
from redrive.aws.services import FOLDERS
from redrive.aws.wire.profiles import profile_of, profiles
from redrive.aws.wire.service import Codec, Service
from redrive.model.http import Request
from tests.aws.wire.clients import Client, sample

SERVICES = [
    (name, protocol)
    for name, profile in profiles().items()
    for protocol in sorted(
        profile.protocols - {"smithy-rpc-v2-cbor", "rest-xml"}
    )  # S3's are in test_rest_xml
]


def codec_of(client: Client, request: Request) -> Codec:
    """Return the codec the request is recognised with, which must be as its client's service."""
    request.headers["authorization"] = (
        f"Credential=AKID/20260101/x/{client.service.profile.endpoint_prefix}/aws4"
    )
    recognised = recognise(request)
    assert recognised is not None
    assert recognised.service == client.service.profile.name
    assert recognised.codec is not None
    return recognised.codec


@pytest.fixture(params=SERVICES, ids="-".join)
def client(request: pytest.FixtureRequest) -> Client:
    return Client(*request.param)


def test_requests_are_read_as_they_were_meant(client: Client) -> None:
    for name in client.operations:
        operation = client.service.operation(name)
        said, meant = sample(operation.input, sdk=True), sample(operation.input, sdk=False)
        if name == "Unsubscribe":  # no SDK has the token of a link
            del said["Token"], meant["Token"]
        request = client.request(name, said)
        assert codec_of(client, request).parse(operation, request) == meant, name


def test_answers_are_read_as_they_were_meant(client: Client) -> None:
    for name in client.operations:
        operation = client.service.operation(name)
        if operation.output is None:
            expected, result = {}, {}
        else:
            expected, result = sample(operation.output, sdk=True), sample(operation.output, sdk=False)
        codec = codec_of(client, client.request(name, {}))
        answer = client.answer(name, codec.render(operation, result, "an-id"))
        metadata = answer.pop("ResponseMetadata")
        assert answer == expected, name
        located = {} if operation.output is None else operation.output.members
        chosen = any(member.location == "statusCode" for member in located.values())
        status = 200 if chosen else operation.status
        assert metadata == {"RequestId": "an-id", "HTTPStatusCode": status}


def test_absent_members_stay_absent(client: Client) -> None:
    for name in client.operations:
        operation = client.service.operation(name)
        result = {} if operation.output is None else dict.fromkeys(operation.output.members)
        codec = codec_of(client, client.request(name, {}))
        answer = client.answer(name, codec.render(operation, result, "an-id"))
        answer.pop("ResponseMetadata")
        located = {} if operation.output is None else operation.output.members
        answer = {name: value for name, value in answer.items() if located[name].location != "statusCode"}
        assert not any(answer.values()), name


def test_a_result_with_a_member_the_model_has_not_is_a_fault(client: Client) -> None:
    name = min(n for n in client.service.operation_names if client.service.operation(n).output is not None)
    codec = codec_of(client, client.request(name, {}))
    with pytest.raises(KeyError):
        codec.render(client.service.operation(name), {"NoSuchMember": 1}, "an-id")


@pytest.mark.parametrize("name", FOLDERS)
def test_profiles_agree_with_the_published_models(name: str) -> None:
    service, profile = Service.load(name), profile_of(name)
    metadata = service.model["metadata"]
    assert profile.endpoint_prefix == metadata["endpointPrefix"]
    assert profile.api_version == metadata["apiVersion"]
    assert profile.target_prefix == metadata.get("targetPrefix", "")
    assert profile.protocols - {"query"} == set(metadata.get("protocols", [metadata["protocol"]])) - {"query"}
    assert not profile.json_namespace or service.json_version == "1.0"
