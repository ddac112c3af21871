"""Quotas of topics, subscriptions and filter policies.

The numbers are those of "Amazon SNS endpoints and quotas". Those for subscriptions of standard topics (12,500,000) and
topics of an account (100,000) are further than one server reaches, but the second is told all the same. The quota of
filter policies is one that Amazon raises on request: here by a setting.
"""

from collections.abc import Iterable
from typing import Final

from redrive.aws.sns.documents.destinations import PROTOCOLS
from redrive.aws.sns.documents.errors import error, invalid
from redrive.aws.sns.documents.message import BYTES_MAX, bytes_max
from redrive.engine.resources import Subscriptions, Topics
from redrive.model.topic import Subscription, Topic

FIFO_TOPICS_MAX: Final = 1_000
STANDARD_TOPICS_MAX: Final = 100_000
FIFO_SUBSCRIPTIONS_MAX: Final = 100
FILTERS_MAX: Final = 200  # of a topic
LARGE_SUBSCRIPTIONS_MAX: Final = 100  # of a topic for messages of more than 256 KiB
_LARGE_PROTOCOLS: Final = frozenset(name for name, protocol in PROTOCOLS.items() if protocol.of_service)
TOPICS_FILTERED: Final = 50  # an account has filter policies for so many topics that have all they may have


async def check_topics(topics: Topics, topic: Topic) -> None:
    """Refuse a topic beyond what an account's region may have; raises AwsError (`TopicLimitExceeded`)."""
    counts = await topics.count(topic.name.account, topic.name.region)
    topics_max = FIFO_TOPICS_MAX if topic.ordered else STANDARD_TOPICS_MAX
    if (counts.ordered if topic.ordered else counts.unordered) >= topics_max:
        raise error("TopicLimitExceeded", f"There are {topics_max} topics of this kind already")  # chosen


async def check_subscriptions(
    subscriptions: Subscriptions, topic: Topic, subscription: Subscription, filters_max: int
) -> None:
    """Refuse a subscription beyond what its topic may have, or its filter policy.

    Raises:
        AwsError: `SubscriptionLimitExceeded`, `FilterPolicyLimitExceeded`.
    """
    if topic.ordered:
        counts = await subscriptions.count(topic.name)
        if counts.confirmed + counts.unconfirmed >= FIFO_SUBSCRIPTIONS_MAX:
            raise error(
                "SubscriptionLimitExceeded",
                f"A FIFO topic has {FIFO_SUBSCRIPTIONS_MAX} subscriptions at most",  # chosen
            )
    if bytes_max(topic) > BYTES_MAX:
        counts = await subscriptions.count(topic.name)
        check_large([subscription.protocol], counts.confirmed + counts.unconfirmed + 1)
    if subscription.filter_text is not None:
        await check_filters(subscriptions, topic, filters_max)


def check_large(protocols: Iterable[str], number: int) -> None:
    """Refuse what a topic for messages of more than 256 KiB cannot have.

    Args:
        protocols: Of its subscriptions.
        number: How many it has.

    Raises:
        AwsError: `InvalidParameter`.
    """
    if number > LARGE_SUBSCRIPTIONS_MAX or not set(protocols) <= _LARGE_PROTOCOLS:
        raise invalid(
            f"MaximumMessageSize Reason: A topic with a MaximumMessageSize above {BYTES_MAX} has at most"  # chosen
            f" {LARGE_SUBSCRIPTIONS_MAX} subscriptions, of the protocols {', '.join(sorted(_LARGE_PROTOCOLS))}"
        )


async def check_filters(subscriptions: Subscriptions, topic: Topic, filters_max: int) -> None:
    """Refuse a filter policy beyond what a topic or region may have; raises AwsError (`FilterPolicyLimitExceeded`)."""
    topic_filters = (await subscriptions.count(topic.name)).filtered
    account_filters = await subscriptions.count_filtered(topic.name.account, topic.name.region)
    if topic_filters >= filters_max or account_filters >= filters_max * TOPICS_FILTERED:
        raise error(
            "FilterPolicyLimitExceeded",
            f"There are {filters_max} filter policies at most for each topic,"  # chosen
            f" and {filters_max * TOPICS_FILTERED} for each account",
        )
