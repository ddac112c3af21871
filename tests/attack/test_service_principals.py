"""Services as callers: as a role of the own account that trusts them, as themselves, and as nobody."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from redrive.access.policy import AccessRequest, evaluate
from redrive.access.policy_document import stored_policy
from redrive.access.principals import service_acting_for
from redrive.aws.apigateway.control.records import API_PLACE, DEPLOYMENT, REST_API
from redrive.aws.wire.errors import AwsError
from redrive.model.http import Request
from tests.attack.test_service_roles import GOOD, QUEUE_URI, SERVICES, UNTRUSTING, in_form
from tests.aws.iam.test_closed_by_default import required
from tests.aws.stage import ACCOUNT, HOST, OTHER, REGION, Key, Stage, allow, on_stage, policy, signed


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_acts_as_a_role_of_the_own_account_that_trusts_it_or_as_nobody(service: str) -> None:
    """Whatever a document says: it may be older than the rule, or the role another one than it was."""

    async def play(stage: Stage) -> None:
        trusted = {"Service": f"{service}.amazonaws.com"}
        await stage.role("good", trusted, allow("*"))
        await stage.role("untrusting", {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, allow("*"))
        identities = stage.server.core.sessions.identities
        for account, role, acts in (
            (ACCOUNT, GOOD, True),
            (ACCOUNT, UNTRUSTING, False),
            (ACCOUNT, f"{GOOD}-missing", False),
            (OTHER, GOOD, False),
            (OTHER, "no role's ARN", False),
        ):
            principal = await identities.role_principal(service, account, role, REGION, "s")
            name = f"arn:aws:sts::{ACCOUNT}:assumed-role/good/s" if acts else role
            assert (principal.name, principal.account) == (name, account)
            asked = AccessRequest(principal, "sqs:SendMessage", f"arn:aws:sqs:{REGION}:{account}:q")
            assert evaluate(None, asked, account).allowed is acts
            named = {
                "Effect": "Allow",
                "Principal": {"AWS": [ACCOUNT, GOOD]},
                "Action": "sqs:*",
                "Resource": "*",
            }
            assert evaluate(stored_policy(policy(named)), asked, ACCOUNT).allowed is acts

    on_stage(play)


async def integrated(
    stage: Stage, key: Key, uri: str, asks: Mapping[str, str], role: str, authorization: str = "NONE"
) -> tuple[str, Request]:
    """The id of a new API whose root calls a service as a role, and a request to it."""
    api = await stage.call(key, "apigateway", "CreateRestApi", name="a")
    at = {"restApiId": api["id"], "resourceId": api["rootResourceId"], "httpMethod": "GET"}
    await stage.call(key, "apigateway", "PutMethod", **at, authorizationType=authorization)
    sends = {f"integration.request.querystring.{name}": f"'{value}'" for name, value in asks.items()}
    integration = {"type": "AWS", "integrationHttpMethod": "POST", "uri": uri, "requestParameters": sends}
    await stage.call(key, "apigateway", "PutIntegration", **at, **integration, credentials=role)
    for answer_of in ("PutMethodResponse", "PutIntegrationResponse"):
        await stage.call(key, "apigateway", answer_of, **at, statusCode="200")
    await stage.call(key, "apigateway", "CreateDeployment", restApiId=api["id"], stageName="s")
    return api["id"], Request("GET", f"/restapis/{api['id']}/s/_user_request_/", "", {"host": HOST}, b"")


def test_a_role_of_a_service_gets_no_credentials_of_its_account() -> None:
    """The call comes from within, so no token in the request tells that it is a session's: the principal does."""

    async def play(stage: Stage) -> None:
        role = await stage.role("weak", {"Service": "apigateway.amazonaws.com"})
        ann = await stage.user("ann", allow("apigateway:*"), allow("iam:PassRole", on=role))
        uri = f"arn:aws:apigateway:{REGION}:sts:action/GetSessionToken"
        _, request = await integrated(stage, ann, uri, {}, role)
        answer = json.loads((await stage.send(request)).body)
        assert answer["Error"]["Message"] == "Cannot call GetSessionToken with session credentials"

    on_stage(play)


def test_an_api_does_not_act_as_callers_of_other_accounts() -> None:
    """Whoever signs a request to an API of another account lends it nothing; to one of its own account, what it may."""

    async def play(stage: Stage) -> None:
        uri = f"arn:aws:apigateway:{REGION}:sqs:action/CreateQueue"
        own = "arn:aws:iam::*:user/*"
        lets_in = {"Effect": "Allow", "Principal": "*", "Action": "execute-api:Invoke", "Resource": "*"}
        for owner, status, queues in ((stage.stranger, 500, 0), (stage.root, 200, 1)):
            api, request = await integrated(stage, owner, uri, {"QueueName": "q"}, own, "AWS_IAM")
            patches = [{"op": "replace", "path": "/policy", "value": policy(lets_in)}]
            await stage.call(owner, "apigateway", "UpdateRestApi", restApiId=api, patchOperations=patches)
            await stage.call(owner, "apigateway", "CreateDeployment", restApiId=api, stageName="s")
            answer = await stage.send(signed(request, "execute-api", stage.root))
            assert answer.status == status
            listed = await stage.call(stage.root, "sqs", "ListQueues")
            assert len(listed.get("QueueUrls") or ()) == queues

    on_stage(play)


@pytest.mark.parametrize("wrong", ["of another account", "without trust"])
def test_an_integration_s_role_is_asked_at_each_request(wrong: str) -> None:
    async def play(stage: Stage) -> None:
        trust = {"Service": "apigateway.amazonaws.com"}
        await stage.role("good", trust, allow("sqs:*"))
        await stage.call(stage.root, "sqs", "CreateQueue", QueueName="q")
        asks = {"Action": "SendMessage", "MessageBody": "m"}
        api, request = await integrated(stage, stage.root, QUEUE_URI, asks, GOOD)

        async def status() -> int:
            return (await stage.send(request)).status

        assert await status() == 200
        if wrong == "without trust":
            distrusts = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}
            document = {"RoleName": "good", "PolicyDocument": policy(distrusts)}
            await stage.call(stage.root, "iam", "UpdateAssumeRolePolicy", **document)
        else:  # as a release without the rule left it: the API is another account's now
            documents = stage.server.core.engine.resources.documents
            held = await documents.get(REST_API, f"{ACCOUNT}/{REGION}/{api}")
            assert held is not None
            await documents.create(REST_API, f"{OTHER}/{REGION}/{api}", replace(held, account=OTHER))
            (deployed,) = await documents.find(DEPLOYMENT, f"{ACCOUNT}/")
            key = f"{OTHER}/{REGION}/{api}/{deployed.id}"
            await documents.create(DEPLOYMENT, key, deployed)
            await documents.update(API_PLACE, api, lambda place: replace(place, account=OTHER))
        assert await status() == 500

    on_stage(play)


def test_a_service_without_a_role_may_only_what_the_policy_of_a_resource_allows() -> None:
    """An integration without credentials calls as API Gateway itself, which has no account to make anything in."""

    async def play(stage: Stage) -> None:
        arn = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:api/s/GET/"
        caller = service_acting_for("apigateway", REGION, arn, ACCOUNT, for_owner=False)
        told: dict[str, str] = {}
        await stage.server.parts.open_all()
        for service, facade in stage.server.core.services.items():
            for operation in facade.operations:
                shape = stage.client(service).service.operation(operation).input
                params = in_form(required(shape)) | ({"Body": b""} if "Body" in shape.members else {})
                name = f"{service} {operation}"
                try:
                    await stage.server.core.calls.call(service, operation, params, caller, REGION)
                    told[name] = "carried out"
                except AwsError as refused:
                    told[name] = refused.code
        assert len(told) > 400, len(told)
        carried_out = {name for name, answer in told.items() if answer == "carried out"}
        assert carried_out <= {
            "sts GetCallerIdentity",
            "sns DeleteTopic",
        }  # a topic that is not there is deleted
        assert "InternalFailure" not in told.values()

    on_stage(play, functions="on")
