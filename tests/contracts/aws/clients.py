"""boto3's clients of any service at a test's server, of CloudWatch by each of its three protocols."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

from tests.services.clients import Client

WireProtocol = Literal["json", "query", "smithy-rpc-v2-cbor"]

_CONFIG = Config(
    retries={"total_max_attempts": 1},
    connect_timeout=5,
    read_timeout=30,
    parameter_validation=False,  # what a server checks must reach it
)


class _OneProtocol(Loader):
    """Loads CloudWatch's model as if it had one protocol."""

    def __init__(self, protocol: WireProtocol) -> None:
        super().__init__()
        self._protocol = protocol

    def load_service_model(
        self, service_name: str, type_name: str, api_version: str | None = None
    ) -> Mapping[str, Any]:
        model = super().load_service_model(service_name, type_name, api_version)
        if (service_name, type_name) != ("cloudwatch", "service-2"):
            return model
        metadata = {**model["metadata"], "protocol": self._protocol, "protocols": [self._protocol]}
        if self._protocol == "query":
            del metadata["awsQueryCompatible"]
        return {**model, "metadata": metadata}


@cache
def client(
    url: str, service: str, protocol: WireProtocol, account: str = "000000000000", region: str = "us-east-1"
) -> Client:
    """A boto3 client; with authentication off an access key of twelve digits is the account."""
    session = botocore.session.Session()
    session.register_component("data_loader", _OneProtocol(protocol))
    made = boto3.Session(
        aws_access_key_id=account,
        aws_secret_access_key="secret",
        region_name=region,
        botocore_session=session,
    )
    return made.client(service, endpoint_url=url, config=_CONFIG)
