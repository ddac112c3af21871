import hashlib

import pytest

from redrive.aws.sqs.message import digest_of_body


@pytest.mark.parametrize("body", ["", "m" * 500, "m" * 501, "ü" * 250, "ü" * 251])
def test_a_digest_is_the_same_whoever_makes_it(body: str) -> None:
    """Short texts are digested by another implementation than long ones."""
    assert digest_of_body(body) == hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
