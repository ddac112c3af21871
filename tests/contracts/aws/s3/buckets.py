"""S3 as boto3 speaks it, a bucket to work in, and refusals."""

from collections.abc import Callable
from typing import Any

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.services.server import Server

ACCOUNT = "000000000000"
OTHER = "111111111111"
BUCKET = "wheels"
_made: list[Any] = []


def client(
    server: Server,
    key_id: str = ACCOUNT,
    region: str = "us-east-1",
    secret: str = "secret",
    **config: Any,
) -> Any:
    """A client of S3; nothing is tried twice."""
    session = boto3.Session(aws_access_key_id=key_id, aws_secret_access_key=secret, region_name=region)
    settings = Config(
        retries={"total_max_attempts": 1},
        connect_timeout=5,
        read_timeout=30,
        parameter_validation=False,
        **{"s3": {"addressing_style": "path"}, **config},
    )
    made = session.client("s3", endpoint_url=server.url, config=settings)
    _made.append(made)
    return made


def close_clients() -> None:
    """Let go of the connections of every client that a test has made."""
    while _made:
        _made.pop().close()


def refusal(call: Callable[..., Any], **params: Any) -> tuple[str, int]:
    """The code and the status of a call that is refused."""
    with pytest.raises(ClientError) as caught:
        call(**params)
    response = caught.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]
