import pytest

from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, without_secrets


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("https://user:secret@example.com/hook", "https://user:****@example.com/hook"),
        ("http://u:p@ss:w@rd@[::1]:8080/", "http://u:****@[::1]:8080/"),
        ("https://a@b:secret@example.com", "https://a@b:****@example.com"),
        ("https://:secret@example.com", "https://:****@example.com"),
        ("https://user@example.com/a:b@c", "https://user@example.com/a:b@c"),
        ("https://example.com:8080/a@b?c:d@e", "https://example.com:8080/a@b?c:d@e"),
        ("somebody@example.com", "somebody@example.com"),
        ("arn:aws:sqs:us-east-1:123456789012:q", "arn:aws:sqs:us-east-1:123456789012:q"),
    ],
)
def test_a_password_in_a_url_is_not_shown(endpoint: str, shown: str) -> None:
    subscription = Subscription("id", ResourceName("a", "r", "t"), 1, "a", "https", endpoint)
    assert subscription.endpoint_shown == shown


@pytest.mark.parametrize(
    ("endpoint", "place"),
    [
        ("https://user:secret@example.com/hook?code=secret&b=c", "https://user:****@example.com/hook?…"),
        ("https://example.com/hook?", "https://example.com/hook?…"),
        ("https://example.com/hook", "https://example.com/hook"),
        ("arn:aws:sqs:us-east-1:123456789012:q", "arn:aws:sqs:us-east-1:123456789012:q"),
        ("somebody@example.com", "somebody@example.com"),
    ],
)
def test_screens_show_neither_password_nor_query(endpoint: str, place: str) -> None:
    subscription = Subscription("id", ResourceName("a", "r", "t"), 1, "a", "https", endpoint)
    assert subscription.redacted_endpoint == place
    assert "secret" not in without_secrets(endpoint)
