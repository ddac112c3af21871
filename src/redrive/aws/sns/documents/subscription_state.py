"""The state of a subscription: confirmed, waiting for its endpoint to agree, on its way out, or as good as gone.

What the engine must know of it is `Subscription.confirmed`. The rest is kept beside SNS's own attributes, under
names in lower case.
"""

from dataclasses import replace
from typing import Final

from redrive.access.principals import account_root
from redrive.aws.kit.call import Call
from redrive.aws.wire.signatures.sigv4 import credential_scope
from redrive.model.queue import DAY_MS
from redrive.model.topic import Subscription

# An endpoint that has not agreed by then is not asked any more (developer guide).
PENDING_MS: Final = 3 * DAY_MS

PRINCIPAL: Final = "principal"  # who subscribed, as policies name them
_USER: Final = "user"  # and as Amazon shows them: the user that an access key belongs to
_AUTHENTICATED: Final = "authenticated"  # the confirmation was signed
_LOCKED: Final = "locked"  # only a signed call may unsubscribe
_LEAVING: Final = "leaving"  # since when (ms) it is unsubscribed, unless its endpoint objects
_YES: Final = "true"


def is_visible(subscription: Subscription, now: int) -> bool:
    """Returns whether callers see the subscription."""
    if subscription.confirmed:
        return True
    return _LEAVING not in subscription.attributes and now < subscription.created_at + PENDING_MS


def is_leaving(subscription: Subscription, now: int) -> bool:
    """Returns whether it was ended by an unsubscribe link, and its endpoint can still restore it."""
    return _LEAVING in subscription.attributes and not is_over(subscription, now)


def is_over(subscription: Subscription, now: int) -> bool:
    """Returns whether the subscription can no longer be restored, and may be forgotten."""
    since = int(subscription.attributes.get(_LEAVING, subscription.created_at))
    return not subscription.confirmed and now >= since + PENDING_MS


def was_authenticated(subscription: Subscription) -> bool:
    """Returns whether the confirmation was signed."""
    return _AUTHENTICATED in subscription.attributes


def is_locked(subscription: Subscription) -> bool:
    """Returns whether only a signed call may unsubscribe."""
    return _LOCKED in subscription.attributes


def confirm(subscription: Subscription, *, is_signed: bool, is_locked: bool) -> Subscription:
    """The subscription with its endpoint's agreement; one that has it already stays as it is."""
    if subscription.confirmed:
        return subscription
    attributes = {name: value for name, value in subscription.attributes.items() if name != _LEAVING}
    if is_signed:
        attributes[_AUTHENTICATED] = _YES
    if is_signed and is_locked:
        attributes[_LOCKED] = _YES
    return replace(subscription, confirmed=True, attributes=attributes)


def begin_leaving(subscription: Subscription, now: int) -> Subscription:
    """The subscription while its endpoint may still object to its end; it gets no more notifications."""
    return replace(subscription, confirmed=False, attributes={**subscription.attributes, _LEAVING: str(now)})


def subscriber_attributes(call: Call) -> dict[str, str]:
    """The attributes that record who subscribes; where an account's own key is used, also a user named after the key."""
    attributes = {PRINCIPAL: call.principal.name}
    scope = credential_scope(call.request)
    if scope is not None and call.principal == account_root(call.account):
        attributes[_USER] = f"arn:aws:iam::{call.account}:user/{scope.access_key_id}"
    return attributes


def shown_principal(subscription: Subscription) -> str:
    """The ARN of the subscriber that callers are shown."""
    attributes = subscription.attributes
    return attributes.get(_USER) or attributes.get(PRINCIPAL, "")
