import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.sns.documents.delivery_policy import (
    RetryPolicy,
    SubscriptionDeliveryPolicy,
    TopicDeliveryPolicy,
    effective_policy,
)
from redrive.aws.sns.documents.delivery_policy_reader import (
    CONTENT_TYPES,
    RAW_CONTENT_TYPES,
    DeliveryPolicyInvalid,
    read_subscription_policy,
    read_topic_policy,
)
from redrive.model.retry import Phase
from redrive.model.retry_plans import HTTP_DEFAULT
from tests.aws.sns.samples import DELIVERY_POLICY

Document = dict[str, Any]

SAMPLE: Document = {**DELIVERY_POLICY, "requestPolicy": {"headerContentType": "application/json"}}
DEFAULT_RETRY_JSON = (
    '{"minDelayTarget":20,"maxDelayTarget":20,"numRetries":3,"numMaxDelayRetries":0,'
    '"numNoDelayRetries":0,"numMinDelayRetries":0,"backoffFunction":"linear"}'
)


def subscription(document: object, *, raw: bool = False) -> SubscriptionDeliveryPolicy:
    return read_subscription_policy(json.dumps(document), raw=raw)


def topic(document: object) -> TopicDeliveryPolicy:
    return read_topic_policy(json.dumps(document))


def retry_refusal(attributes: Document) -> str:
    with pytest.raises(DeliveryPolicyInvalid) as refusal:
        subscription({"healthyRetryPolicy": attributes})
    return str(refusal.value)


def test_the_documented_policy_gives_its_schedule() -> None:
    policy = subscription(SAMPLE)
    assert policy.retry is not None
    schedule = policy.retry.schedule()
    assert [(stage.phase, stage.retries, stage.first_ms, stage.last_ms) for stage in schedule.stages] == [
        (Phase.IMMEDIATE, 3, 0, 0),
        (Phase.PRE_BACKOFF, 2, 1000, 1000),
        (Phase.BACKOFF, 10, 1000, 60_000),
        (Phase.POST_BACKOFF, 35, 60_000, 60_000),
    ]
    assert schedule.retries_max == 50
    assert (policy.receives_per_second_max, policy.content_type) == (10, "application/json")


def test_the_default_policy_is_the_default_schedule() -> None:
    assert RetryPolicy().schedule() == HTTP_DEFAULT


def test_no_retries_at_all() -> None:
    policy = subscription({"healthyRetryPolicy": {"numRetries": 0}})
    assert policy.retry is not None
    assert policy.retry.schedule().retries_max == 0


@pytest.mark.parametrize(
    ("attributes", "rule"),
    [
        ({"minDelayTarget": 0}, "minDelayTarget must be greater than or equal to 1"),
        (
            {"minDelayTarget": 30},
            "maxDelayTarget must be greater than or equal to minDelayTarget",
        ),
        (
            {"minDelayTarget": 5, "maxDelayTarget": 4},
            "maxDelayTarget must be greater than or equal to minDelayTarget",
        ),
        ({"maxDelayTarget": 3601}, "maxDelayTarget must be less than or equal to 3600"),
        ({"numRetries": -1}, "numRetries must be greater than or equal to 0"),
        ({"numRetries": 101}, "numRetries must be less than or equal to 100"),
        ({"numNoDelayRetries": -1}, "numNoDelayRetries must be greater than or equal to 0"),
        ({"numMinDelayRetries": -1}, "numMinDelayRetries must be greater than or equal to 0"),
        ({"numMaxDelayRetries": -1}, "numMaxDelayRetries must be greater than or equal to 0"),
        (
            {"numRetries": 5, "numNoDelayRetries": 2, "numMinDelayRetries": 2, "numMaxDelayRetries": 2},
            (
                "numRetries must be greater than or equal to total of numMinDelayRetries, numNoDelayRetries and "
                "numMaxDelayRetries"
            ),
        ),
        (
            {"backoffFunction": "quadratic"},
            "backoffFunction must be one of arithmetic, exponential, geometric, linear",
        ),
        (
            {"minDelayTarget": 3600, "maxDelayTarget": 3600, "numRetries": 2},
            "total retry time must be less than or equal to 3600 seconds",
        ),
        ({"numRetries": "5"}, "numRetries must be an integer"),
        ({"numRetries": True}, "numRetries must be an integer"),
        ({"numRetries": 2.5}, "numRetries must be an integer"),
        ({"backoffFunction": 1}, "backoffFunction must be a string"),
        ({"numRetry": 1}, "numRetry is not a recognized attribute"),
    ],
)
def test_a_broken_retry_rule_is_named_in_the_refusal(attributes: Document, rule: str) -> None:
    assert retry_refusal(attributes) == f"DeliveryPolicy: healthyRetryPolicy.{rule}"
    with pytest.raises(DeliveryPolicyInvalid) as refusal:
        topic({"http": {"defaultHealthyRetryPolicy": attributes}})
    assert str(refusal.value) == f"DeliveryPolicy: http.defaultHealthyRetryPolicy.{rule}"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            {"throttlePolicy": {"maxReceivesPerSecond": 0}},
            "throttlePolicy.maxReceivesPerSecond must be greater than or equal to 1",
        ),
        (
            {"requestPolicy": {"headerContentType": "text/csv"}},
            "requestPolicy.headerContentType must be one of application/json, text/plain",
        ),
        (
            {"sicklyRetryPolicy": {"numRetries": 101}},
            "sicklyRetryPolicy.numRetries must be less than or equal to 100",
        ),
        ({"guaranteed": "no"}, "guaranteed must be either true or false"),
        ({"http": {}}, "http is not a recognized attribute"),
        ({"healthyRetryPolicy": 5}, "healthyRetryPolicy must be a JSON object"),
        ([], "policy must be a JSON object"),
    ],
)
def test_other_members_rules(document: object, text: str) -> None:
    with pytest.raises(DeliveryPolicyInvalid) as refusal:
        subscription(document)
    assert str(refusal.value) == f"DeliveryPolicy: {text}"


@pytest.mark.parametrize("written", ["Exponential", "Linear", "Geometric", "Arithmetic", "EXPONENTIAL"])
def test_a_backoff_function_may_be_written_with_capitals(written: str) -> None:
    """The guide's table of attributes writes them so; its examples, and what is answered, do not."""
    text = json.dumps({"http": {"defaultHealthyRetryPolicy": {"backoffFunction": written}}})
    echoed = json.loads(read_topic_policy(text).to_json())["http"]["defaultHealthyRetryPolicy"]
    assert echoed == {"backoffFunction": written.lower()}


def test_topic_members_are_named_under_http() -> None:
    with pytest.raises(
        DeliveryPolicyInvalid, match=r"http\.defaultThrottlePolicy\.maxReceivesPerSecond must"
    ):
        topic({"http": {"defaultThrottlePolicy": {"maxReceivesPerSecond": 0}}})
    with pytest.raises(DeliveryPolicyInvalid, match=r"http\.defaultSicklyRetryPolicy\.minDelayTarget must"):
        topic({"http": {"defaultSicklyRetryPolicy": {"minDelayTarget": 0}}})


def test_text_that_is_no_json() -> None:
    with pytest.raises(DeliveryPolicyInvalid, match=r"^DeliveryPolicy: failed to parse JSON"):
        read_topic_policy("{")


def test_raw_subscriptions_may_have_more_content_types() -> None:
    assert len(CONTENT_TYPES) == 2
    assert len(RAW_CONTENT_TYPES) == 12
    for content_type in RAW_CONTENT_TYPES:
        policy = subscription({"requestPolicy": {"headerContentType": content_type}}, raw=True)
        assert policy.content_type == content_type


def test_a_content_type_may_carry_parameters() -> None:
    policy = subscription({"requestPolicy": {"headerContentType": "text/plain; charset=UTF-8"}})
    assert policy.content_type == "text/plain; charset=UTF-8"


def test_the_total_may_reach_an_hour_but_not_pass_it() -> None:
    hour = {"minDelayTarget": 36, "maxDelayTarget": 36, "numRetries": 100}
    assert subscription({"healthyRetryPolicy": hour}).retry is not None
    assert "total retry time" in retry_refusal({**hour, "minDelayTarget": 36, "maxDelayTarget": 37})
    immediate = {**hour, "maxDelayTarget": 3600, "numNoDelayRetries": 100}
    assert subscription({"healthyRetryPolicy": immediate}).retry is not None


def test_a_topic_echoes_what_it_was_given() -> None:
    policy = topic(
        {"http": {"defaultHealthyRetryPolicy": {"numRetries": 1, "maxDelayTarget": 6, "minDelayTarget": 5}}}
    )
    assert policy.to_json() == (
        '{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":5,"maxDelayTarget":6,"numRetries":1},'
        '"disableSubscriptionOverrides":false}}'
    )
    assert policy.effective_json() == (
        '{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":5,"maxDelayTarget":6,"numRetries":1,'
        '"numMaxDelayRetries":0,"numNoDelayRetries":0,"numMinDelayRetries":0,"backoffFunction":"linear"},'
        '"disableSubscriptionOverrides":false,'
        '"defaultRequestPolicy":{"headerContentType":"text/plain; charset=UTF-8"}}}'
    )


@pytest.mark.parametrize("document", [{}, {"http": None}, {"http": {"defaultHealthyRetryPolicy": None}}])
def test_a_topic_without_members(document: Document) -> None:
    assert topic(document).to_json() == '{"http":{"disableSubscriptionOverrides":false}}'
    assert topic(document).effective_json() == (
        f'{{"http":{{"defaultHealthyRetryPolicy":{DEFAULT_RETRY_JSON},"disableSubscriptionOverrides":false,'
        '"defaultRequestPolicy":{"headerContentType":"text/plain; charset=UTF-8"}}}'
    )


def test_a_topic_with_every_member() -> None:
    policy = topic(
        {
            "http": {
                "disableSubscriptionOverrides": True,
                "defaultRequestPolicy": {"headerContentType": "application/json"},
                "defaultThrottlePolicy": {"maxReceivesPerSecond": 7},
            }
        }
    )
    tail = (
        '"disableSubscriptionOverrides":true,"defaultThrottlePolicy":{"maxReceivesPerSecond":7},'
        '"defaultRequestPolicy":{"headerContentType":"application/json"}}}'
    )
    assert policy.to_json() == '{"http":{' + tail
    assert policy.effective_json() == f'{{"http":{{"defaultHealthyRetryPolicy":{DEFAULT_RETRY_JSON},{tail}'


def test_a_subscription_is_written_whole() -> None:
    assert subscription({}).to_json() == (
        '{"healthyRetryPolicy":null,"sicklyRetryPolicy":null,"throttlePolicy":null,"requestPolicy":null,'
        '"guaranteed":false}'
    )
    assert subscription(
        {"healthyRetryPolicy": {"backoffFunction": "geometric"}, "guaranteed": True}
    ).to_json() == (
        '{"healthyRetryPolicy":'
        + DEFAULT_RETRY_JSON.replace("linear", "geometric")
        + ',"sicklyRetryPolicy":null,'
        '"throttlePolicy":null,"requestPolicy":null,"guaranteed":true}'
    )


def test_without_any_policy_the_default_holds() -> None:
    assert effective_policy(None, None).to_json() == (
        f'{{"healthyRetryPolicy":{DEFAULT_RETRY_JSON},"sicklyRetryPolicy":null,"throttlePolicy":null,'
        '"requestPolicy":{"headerContentType":"text/plain; charset=UTF-8"},"guaranteed":false}'
    )


TOPIC = TopicDeliveryPolicy(RetryPolicy(retries=9), 9, "application/json")


@pytest.mark.parametrize(
    ("own", "retries", "receives", "content_type"),
    [
        (SubscriptionDeliveryPolicy(), 9, 9, "application/json"),
        (SubscriptionDeliveryPolicy(retry=RetryPolicy(retries=4)), 4, 9, "application/json"),
        (SubscriptionDeliveryPolicy(receives_per_second_max=4), 9, 4, "application/json"),
        (SubscriptionDeliveryPolicy(content_type="text/css"), 9, 9, "text/css"),
    ],
)
def test_each_member_stands_over_the_topics_as_a_whole(
    own: SubscriptionDeliveryPolicy, retries: int, receives: int, content_type: str
) -> None:
    policy = effective_policy(own, TOPIC)
    assert policy.retry is not None
    assert (policy.retry.retries, policy.receives_per_second_max, policy.content_type) == (
        retries,
        receives,
        content_type,
    )


def test_a_topic_may_disable_overrides() -> None:
    own = SubscriptionDeliveryPolicy(RetryPolicy(retries=4), 4, "text/css", guaranteed=True)
    strict = TopicDeliveryPolicy(RetryPolicy(retries=9), disables_overrides=True)
    assert effective_policy(own, strict) == SubscriptionDeliveryPolicy(
        RetryPolicy(retries=9), None, "text/plain; charset=UTF-8"
    )


retry_documents = st.fixed_dictionaries(
    {},
    optional={
        "minDelayTarget": st.none() | st.integers(0, 100),
        "maxDelayTarget": st.none() | st.integers(0, 3700),
        "numRetries": st.none() | st.integers(-1, 102),
        "numMaxDelayRetries": st.none() | st.integers(-1, 30),
        "numNoDelayRetries": st.none() | st.integers(-1, 30),
        "numMinDelayRetries": st.none() | st.integers(-1, 30),
        "backoffFunction": st.none() | st.sampled_from(["linear", "arithmetic", "geometric", "exponential"]),
    },
)


@given(retry_documents)
def test_an_accepted_policy_makes_a_schedule_and_reads_back(attributes: Document) -> None:
    try:
        policy = subscription({"healthyRetryPolicy": attributes})
    except DeliveryPolicyInvalid:
        return
    assert policy.retry is not None
    schedule = policy.retry.schedule()
    assert schedule.retries_max == policy.retry.retries
    assert schedule.total_ms() <= 3_600_000
    again = read_subscription_policy(policy.to_json(), raw=False)
    assert again.to_json() == policy.to_json()
