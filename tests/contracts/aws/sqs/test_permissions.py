"""Access to a queue: its owner's, and that of the accounts its policy admits."""

from typing import Any

import orjson
import pytest

from tests.contracts.aws.sqs.client import ACCOUNT, REGION, Queue, Sqs, entries, refused

FRIEND, STRANGER = "200000000000", "300000000000"

GRANTED: dict[str, list[tuple[str, dict[str, Any]]]] = {  # action: the calls that it stands for
    "SendMessage": [
        ("send_message", {"MessageBody": "b"}),
        ("send_message_batch", {"Entries": list(entries("b"))}),
    ],
    "ReceiveMessage": [("receive_message", {})],
    "DeleteMessage": [
        ("delete_message", {"ReceiptHandle": "h"}),
        ("delete_message_batch", {"Entries": [{"Id": "1", "ReceiptHandle": "h"}]}),
    ],
    "ChangeMessageVisibility": [
        ("change_message_visibility", {"ReceiptHandle": "h", "VisibilityTimeout": 1}),
        ("change_message_visibility_batch", {"Entries": [{"Id": "1", "ReceiptHandle": "h"}]}),
    ],
    "GetQueueAttributes": [("get_queue_attributes", {"AttributeNames": ["QueueArn"]})],
    "ListDeadLetterSourceQueues": [("list_dead_letter_source_queues", {})],
    "PurgeQueue": [("purge_queue", {})],
}
OWNERS_ALONE: dict[str, tuple[str, dict[str, Any]]] = {
    "AddPermission": (
        "add_permission",
        {"Label": "l", "AWSAccountIds": [FRIEND], "Actions": ["SendMessage"]},
    ),
    "RemovePermission": ("remove_permission", {"Label": "l"}),
    "DeleteQueue": ("delete_queue", {}),
    "ListQueueTags": ("list_queue_tags", {}),
    "SetQueueAttributes": ("set_queue_attributes", {"Attributes": {"DelaySeconds": "1"}}),
    "TagQueue": ("tag_queue", {"Tags": {"a": "b"}}),
    "UntagQueue": ("untag_queue", {"TagKeys": ["a"]}),
}


def policy(*statements: dict[str, Any]) -> str:
    return orjson.dumps({"Version": "2012-10-17", "Statement": statements}).decode()


def statement(effect: str, principal: Any, action: str, **more: Any) -> dict[str, Any]:
    return {"Effect": effect, "Principal": principal, "Action": action, "Resource": "*", **more}


def seen_by(queue: Queue, account: str) -> Queue:
    return queue.seen_by(queue.sqs.elsewhere(account=account))


def denied(queue: Queue, account: str, action: str) -> Any:
    """Expect the refusal that `account` gets for an action it may not do."""
    action = f"sqs:{action.lower()}"
    message = (
        f"User: arn:aws:iam::{account}:root is not authorized to perform: {action} on resource: {queue.arn}"
        f" because no resource-based policy allows the {action} action"
    )
    return refused("AccessDenied", message, status=403)


def allowed(queue: Queue, operation: str, params: dict[str, Any]) -> None:
    """The call may be refused for what it says, but not for who makes it."""
    refusals = queue.sqs.client.exceptions.ClientError
    if params.get("ReceiptHandle"):
        with pytest.raises(refusals, match="ReceiptHandleIsInvalid"):
            queue.call(operation, **params)
    else:
        queue.call(operation, **params)


# ---- without a policy --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [*GRANTED, *OWNERS_ALONE])
def test_a_queue_is_its_owners(sqs: Sqs, action: str) -> None:
    queue = sqs.queue()
    for operation, params in GRANTED.get(action) or [OWNERS_ALONE[action]]:
        with denied(queue, STRANGER, action):
            seen_by(queue, STRANGER).call(operation, **params)
    assert queue.counts() == (0, 0, 0)


# ---- AddPermission -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", GRANTED)
def test_a_permission_is_for_its_action_and_its_account(sqs: Sqs, action: str) -> None:
    queue = sqs.queue()
    queue.call("add_permission", Label="l", AWSAccountIds=[FRIEND], Actions=[action])
    for granted, calls in GRANTED.items():
        for operation, params in calls:
            if granted == action:
                allowed(seen_by(queue, FRIEND), operation, params)
            else:
                with denied(queue, FRIEND, granted):
                    seen_by(queue, FRIEND).call(operation, **params)
        with denied(queue, STRANGER, granted):
            seen_by(queue, STRANGER).call(calls[0][0], **calls[0][1])


def test_a_queues_url_is_told_to_permitted_accounts_alone(sqs: Sqs) -> None:
    queue, friend = sqs.queue(), sqs.elsewhere(account=FRIEND)
    asked = {"QueueName": queue.name, "QueueOwnerAWSAccountId": ACCOUNT}
    with denied(queue, FRIEND, "GetQueueUrl"):
        friend.client.get_queue_url(**asked)
    queue.call("add_permission", Label="l", AWSAccountIds=[FRIEND], Actions=["GetQueueUrl"])
    assert friend.client.get_queue_url(**asked)["QueueUrl"] == queue.url


def test_the_policy_that_permissions_make(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.call("add_permission", Label="one", AWSAccountIds=[FRIEND], Actions=["ReceiveMessage"])
    queue.call(
        "add_permission",
        Label="several",
        AWSAccountIds=[FRIEND, STRANGER],
        Actions=["SendMessage", "DeleteMessage"],
    )
    queue.call("add_permission", Label="all", AWSAccountIds=[FRIEND], Actions=["*"])
    friend, stranger = (f"arn:aws:iam::{account}:root" for account in (FRIEND, STRANGER))
    made = {"Effect": "Allow", "Resource": queue.arn}
    assert orjson.loads(queue.attributes()["Policy"]) == {
        "Version": "2008-10-17",
        "Id": f"{queue.arn}/SQSDefaultPolicy",
        "Statement": [
            {"Sid": "one", "Principal": {"AWS": friend}, "Action": "SQS:ReceiveMessage", **made},
            {
                "Sid": "several",
                "Principal": {"AWS": [friend, stranger]},
                "Action": ["SQS:SendMessage", "SQS:DeleteMessage"],
                **made,
            },
            {"Sid": "all", "Principal": {"AWS": friend}, "Action": "SQS:*", **made},
        ],
    }


def test_a_label_is_used_once(sqs: Sqs) -> None:
    queue = sqs.queue()
    permission = {"Label": "twice", "AWSAccountIds": [FRIEND], "Actions": ["SendMessage"]}
    queue.call("add_permission", **permission)
    with refused(
        "InvalidParameterValue", "Value twice for parameter Label is invalid. Reason: Already exists."
    ):
        queue.call("add_permission", **permission)


def test_a_permission_is_taken_back(sqs: Sqs) -> None:
    queue = sqs.queue()
    for label, action in (("send", "SendMessage"), ("receive", "ReceiveMessage")):
        queue.call("add_permission", Label=label, AWSAccountIds=[FRIEND], Actions=[action])
    queue.call("remove_permission", Label="send")
    with denied(queue, FRIEND, "SendMessage"):
        seen_by(queue, FRIEND).send()
    seen_by(queue, FRIEND).receive()
    queue.call("remove_permission", Label="receive")
    assert "Policy" not in queue.attributes()
    with refused(
        "InvalidParameterValue", "Value receive for parameter Label is invalid. Reason: can't find label."
    ):
        queue.call("remove_permission", Label="receive")


def test_permissions_join_the_policy_that_is_there(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.set(Policy=policy(statement("Deny", "*", "sqs:SendMessage", Sid="mine")))
    queue.call("add_permission", Label="l", AWSAccountIds=[FRIEND], Actions=["*"])
    assert [one["Sid"] for one in orjson.loads(queue.attributes()["Policy"])["Statement"]] == ["mine", "l"]
    queue.call("remove_permission", Label="mine")
    seen_by(queue, FRIEND).send()


@pytest.mark.parametrize("action", [*OWNERS_ALONE, "CreateQueue", "ListQueues", "Nonsense", ""])
def test_an_action_of_the_owner_alone_cannot_be_permitted(sqs: Sqs, action: str) -> None:
    with refused(
        "InvalidParameterValue",
        f"Value SQS:{action} for parameter ActionName is invalid."
        " Reason: Only the queue owner is allowed to invoke this action.",
    ):
        sqs.queue().call("add_permission", Label="l", AWSAccountIds=[FRIEND], Actions=[action])


@pytest.mark.parametrize("account", ["", "12345678901", "friend", "*"])
def test_permissions_for_invalid_accounts_are_refused(sqs: Sqs, account: str) -> None:
    with refused("InvalidParameterValue"):
        sqs.queue().call("add_permission", Label="l", AWSAccountIds=[account], Actions=["SendMessage"])


@pytest.mark.parametrize("missing", ["Label", "AWSAccountIds", "Actions"])
def test_a_permission_needs_a_label_accounts_and_actions(sqs: Sqs, missing: str) -> None:
    queue = sqs.queue()
    permission = {"Label": "l", "AWSAccountIds": [FRIEND], "Actions": ["SendMessage"]}
    del permission[missing]
    with refused("MissingParameter"):
        queue.call("add_permission", **permission)


@pytest.mark.parametrize("empty", ["AWSAccountIds", "Actions"])
def test_a_permission_without_accounts_or_actions_is_refused(sqs: Sqs, empty: str) -> None:
    queue = sqs.queue()
    with refused("MissingParameter"):
        queue.call(
            "add_permission",
            **{"Label": "l", "AWSAccountIds": [FRIEND], "Actions": ["SendMessage"], empty: []},
        )
    queue.send("the queue is as it was")
    assert "Policy" not in queue.attributes()


# ---- quotas ------------------------------------------------------------------------------------------------------


def test_a_permission_has_7_actions(sqs: Sqs) -> None:
    seven = [action for action in GRANTED if action != "PurgeQueue"] + ["GetQueueUrl"]
    queue = sqs.queue()
    queue.call("add_permission", Label="seven", AWSAccountIds=[FRIEND], Actions=seven)
    with refused("OverLimit", "8 Actions were found, maximum allowed is 7.", status=403):
        queue.call("add_permission", Label="eight", AWSAccountIds=[FRIEND], Actions=[*seven, "PurgeQueue"])


def test_a_policy_has_20_statements(sqs: Sqs) -> None:
    queue = sqs.queue()
    for number in range(20):
        queue.call("add_permission", Label=f"l{number}", AWSAccountIds=[FRIEND], Actions=["SendMessage"])
    with refused("OverLimit", status=403):
        queue.call("add_permission", Label="one more", AWSAccountIds=[FRIEND], Actions=["SendMessage"])
    many = [statement("Allow", "*", "sqs:SendMessage") for _ in range(21)]
    queue.set(Policy=policy(*many[:20]))
    with refused("InvalidAttributeValue", "Invalid value for the parameter Policy."):
        queue.set(Policy=policy(*many))


def test_a_policy_has_50_principals(sqs: Sqs) -> None:
    queue = sqs.queue()
    accounts = [f"{number:012}" for number in range(51)]
    queue.call("add_permission", Label="some", AWSAccountIds=accounts[:40], Actions=["SendMessage"])
    queue.call("add_permission", Label="the rest", AWSAccountIds=accounts[40:50], Actions=["SendMessage"])
    with refused("OverLimit", status=403):
        queue.call("add_permission", Label="more", AWSAccountIds=accounts[50:], Actions=["SendMessage"])
    with refused("InvalidAttributeValue"):
        queue.set(Policy=policy(statement("Allow", {"AWS": accounts}, "sqs:*")))


def test_a_policy_has_10_conditions(sqs: Sqs) -> None:
    queue = sqs.queue()
    conditions = {f"aws:RequestTag/{number}": "v" for number in range(11)}
    with refused("InvalidAttributeValue"):
        queue.set(Policy=policy(statement("Allow", "*", "sqs:*", Condition={"StringEquals": conditions})))
    del conditions["aws:RequestTag/10"]
    queue.set(Policy=policy(statement("Allow", "*", "sqs:*", Condition={"StringEquals": conditions})))


def test_a_policy_has_8192_bytes(sqs: Sqs) -> None:
    queue = sqs.queue()
    short = policy(statement("Allow", "*", "sqs:*", Sid=""))
    longest = short.replace('"Sid":""', f'"Sid":"{"x" * (8192 - len(short))}"')
    queue.set(Policy=longest)
    with refused("InvalidAttributeValue", "Invalid value for the parameter Policy."):
        queue.set(Policy=longest + " ")
    with refused("OverLimit", status=403):
        queue.call("add_permission", Label="l", AWSAccountIds=[FRIEND], Actions=["SendMessage"])


# ---- policies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("principal", "lets_in"),
    [
        ("*", {FRIEND, STRANGER}),
        ({"AWS": "*"}, {FRIEND, STRANGER}),
        ({"AWS": FRIEND}, {FRIEND}),
        ({"AWS": f"arn:aws:iam::{FRIEND}:root"}, {FRIEND}),
        ({"AWS": [FRIEND, STRANGER]}, {FRIEND, STRANGER}),
        ({"Service": "sns.amazonaws.com"}, set()),
    ],
)
def test_a_policy_admits_exactly_its_principals(sqs: Sqs, principal: Any, lets_in: set[str]) -> None:
    queue = sqs.queue(Policy=policy(statement("Allow", principal, "sqs:SendMessage")))
    for account in (FRIEND, STRANGER):
        if account in lets_in:
            seen_by(queue, account).send()
        else:
            with denied(queue, account, "SendMessage"):
                seen_by(queue, account).send()
    queue.send()


@pytest.mark.parametrize(
    "action", ["sqs:*", "SQS:SendMessage", "sqs:sendmessage", "sqs:Send*", "*", "sqs:?endMessage"]
)
def test_actions_a_policy_may_name(sqs: Sqs, action: str) -> None:
    queue = sqs.queue(Policy=policy(statement("Allow", "*", action)))
    seen_by(queue, FRIEND).send("from a friend")
    assert queue.bodies() == ["from a friend"]


def test_a_denial_is_stronger_than_a_permission_and_than_ownership(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.set(Policy=policy(statement("Allow", "*", "sqs:*"), statement("Deny", "*", "sqs:SendMessage")))
    for account in (FRIEND, ACCOUNT):
        with refused("AccessDenied", status=403):
            seen_by(queue, account).send()
        seen_by(queue, account).receive()
    queue.set(Policy="")
    queue.send()


def test_a_policy_is_for_its_resource(sqs: Sqs) -> None:
    elsewhere = f"arn:aws:sqs:{REGION}:{ACCOUNT}:another"
    queue = sqs.queue()
    queue.set(Policy=policy({**statement("Allow", "*", "sqs:*"), "Resource": elsewhere}))
    with denied(queue, FRIEND, "SendMessage"):
        seen_by(queue, FRIEND).send()
    queue.set(Policy=policy({**statement("Allow", "*", "sqs:*"), "Resource": queue.arn}))
    seen_by(queue, FRIEND).send()


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}, True),
        ({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, False),
        ({"Bool": {"aws:SecureTransport": "false"}}, True),
        ({"Bool": {"aws:SecureTransport": "true"}}, False),
        ({"DateGreaterThan": {"aws:CurrentTime": "2020-01-01T00:00:00Z"}}, True),
        ({"StringEquals": {"aws:PrincipalAccount": FRIEND}}, True),
        ({"StringEquals": {"aws:PrincipalAccount": STRANGER}}, False),
    ],
)
def test_a_policy_may_have_conditions(sqs: Sqs, condition: dict[str, Any], *, holds: bool) -> None:
    queue = sqs.queue(Policy=policy(statement("Allow", "*", "sqs:*", Condition=condition)))
    if holds:
        seen_by(queue, FRIEND).send()
    else:
        with denied(queue, FRIEND, "SendMessage"):
            seen_by(queue, FRIEND).send()


@pytest.mark.parametrize("action", OWNERS_ALONE)
def test_no_policy_gives_away_the_queue_itself(sqs: Sqs, action: str) -> None:
    queue = sqs.queue(Policy=policy(statement("Allow", "*", "*")))
    operation, params = OWNERS_ALONE[action]
    with denied(queue, FRIEND, action):
        seen_by(queue, FRIEND).call(operation, **params)


def test_a_move_needs_the_permission_to_send(sqs: Sqs) -> None:
    _, dead = sqs.with_dead_letters(1)
    theirs = sqs.elsewhere(account=FRIEND).queue()
    with denied(theirs, ACCOUNT, "SendMessage"):
        sqs.client.start_message_move_task(SourceArn=dead.arn, DestinationArn=theirs.arn)
    with denied(dead, FRIEND, "StartMessageMoveTask"):
        theirs.sqs.client.start_message_move_task(SourceArn=dead.arn)
    with denied(dead, FRIEND, "ListMessageMoveTasks"):
        theirs.sqs.client.list_message_move_tasks(SourceArn=dead.arn)
