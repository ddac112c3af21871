"""Documents of HTTP APIs."""

from dataclasses import dataclass
from typing import Final

from redrive.aws.apigateway.control.records import EditedApi
from redrive.engine.ports import DocumentKind

DEFAULT_STAGE: Final = "$default"


@dataclass(frozen=True, slots=True)
class HttpApi(EditedApi):
    """An HTTP API: its tree has routes, integrations and stages; stages that deploy by themselves show it as it is."""


HTTP_API: Final = DocumentKind.of("apigateway_http_api", HttpApi)
